//! A text with holes: cut once, filled often.

use std::fmt;

/// The parts that differ from pod to pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hole {
    /// The end of the pod's name; the same everywhere in a pod.
    Suffix,
    /// A uid; another one in each place.
    Uid,
    /// The same everywhere in a pod, as are the addresses.
    Node,
    HostIp,
    PodIp,
    /// 64 hexadecimal digits; others in each place.
    Digest,
    /// A time, in seconds after the pod's creation.
    Time(u16),
    Restarts,
}

/// A byte that never occurs in JSON text.
const MARK: char = '\u{1}';

pub(super) struct Template {
    /// The text before each hole.
    pieces: Vec<(String, Hole)>,
    tail: String,
}

impl fmt::Display for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Suffix => write!(f, "{MARK}s{MARK}"),
            Self::Uid => write!(f, "{MARK}u{MARK}"),
            Self::Node => write!(f, "{MARK}n{MARK}"),
            Self::HostIp => write!(f, "{MARK}h{MARK}"),
            Self::PodIp => write!(f, "{MARK}p{MARK}"),
            Self::Digest => write!(f, "{MARK}d{MARK}"),
            Self::Restarts => write!(f, "{MARK}r{MARK}"),
            Self::Time(seconds) => write!(f, "{MARK}{seconds}{MARK}"),
        }
    }
}

impl Template {
    pub(super) fn new(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut parts = text.split(MARK);
        let mut tail = parts.next().unwrap_or_default().to_owned();
        while let (Some(name), Some(next)) = (parts.next(), parts.next()) {
            pieces.push((std::mem::replace(&mut tail, next.to_owned()), hole(name)));
        }
        Self { pieces, tail }
    }

    pub(super) fn fill(&self, out: &mut String, mut fill: impl FnMut(Hole, &mut String)) {
        for (before, hole) in &self.pieces {
            out.push_str(before);
            fill(*hole, out);
        }
        out.push_str(&self.tail);
    }
}

fn hole(name: &str) -> Hole {
    match name {
        "s" => Hole::Suffix,
        "u" => Hole::Uid,
        "n" => Hole::Node,
        "h" => Hole::HostIp,
        "p" => Hole::PodIp,
        "d" => Hole::Digest,
        "r" => Hole::Restarts,
        seconds => Hole::Time(seconds.parse().unwrap_or_default()),
    }
}
