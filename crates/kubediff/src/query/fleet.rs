//! The clusters that a question is about: one, or several of a database.

use kubediff_history::{Error, Location, Reader, Standing, ask_all};

use super::args::SourceArgs;
use super::error::QueryError;
use crate::ask::names::Target;
use crate::ask::{AskError, UnknownName};
use crate::history::mask;
use crate::show::summary::some;
use crate::text::terminal::say;

/// A cluster, with its history.
pub(super) struct Member {
    pub(super) cluster: String,
    pub(super) reader: Reader,
    pub(super) standing: Standing,
}

/// The clusters that a question is about.
pub(super) struct Fleet {
    /// In the order of their names.
    pub(super) members: Vec<Member>,
    /// Whether several are asked for, so that an answer says of which cluster it is.
    pub(super) is_several: bool,
}

impl Fleet {
    /// Those that the command line chooses; the only one without a choice.
    pub(super) fn open(source: &SourceArgs) -> Result<Self, QueryError> {
        let location = source.location()?;
        let clusters = source.clusters(&location)?;
        if !source.all_clusters && clusters.len() < 2 {
            let reader = source.open_at(&location, clusters.first().map(String::as_str))?;
            return Self::of(vec![reader], false);
        }
        Self::all(source, &location, &clusters)
    }

    /// These, or all.
    pub(super) fn all(
        source: &SourceArgs,
        location: &Location,
        clusters: &[String],
    ) -> Result<Self, QueryError> {
        let readers = Reader::several(location, clusters).map_err(|error| source.failed(error))?;
        let fleet = Self::of(readers, true)?;
        if fleet.members.iter().any(|member| member.standing.has_prints) {
            say(mask::WITHOUT_KEY);
        }
        Ok(fleet)
    }

    fn of(readers: Vec<Reader>, is_several: bool) -> Result<Self, QueryError> {
        let member = |mut reader: Reader| -> Result<_, Error> {
            let cluster = reader.cluster()?.shown().to_owned();
            Ok(Member { cluster, reader, standing: Standing::default() })
        };
        let mut members: Vec<Member> = readers.into_iter().map(member).collect::<Result<_, _>>()?;
        ask_all(&mut members, |it| it.reader.standing().map(|standing| it.standing = standing))?;
        Ok(Self { members, is_several })
    }

    /// What `words` mean in each of them, in this namespace or in all. One that does not know a kind has nothing of it, unless none does.
    pub(super) fn targets(
        self,
        words: &[String],
        namespace: Option<&str>,
        remarks: &mut Remarks,
    ) -> Result<Vec<(Member, Target)>, QueryError> {
        let (mut targets, mut unknown) = (Vec::new(), None);
        for mut member in self.members {
            match Target::read(&mut member.reader, words, namespace) {
                Ok(target) => targets.push((member, target)),
                Err(AskError::Name(error @ UnknownName::Kind { .. })) if self.is_several => {
                    if let UnknownName::Kind { kind, .. } = &error {
                        remarks.add(&member.cluster, format!("there is no resource `{kind}`"));
                    }
                    unknown = Some(error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        match unknown {
            Some(error) if targets.is_empty() => Err(error.into()),
            _ => Ok(targets),
        }
    }
}

/// Doubts about an answer, each with the clusters that it is about.
pub(super) struct Remarks {
    is_several: bool,
    remarks: Vec<(String, Vec<String>)>,
}

impl Remarks {
    /// None yet. With `is_several`, they name their clusters.
    pub(super) fn new(is_several: bool) -> Self {
        Self { is_several, remarks: Vec::new() }
    }

    pub(super) fn add(&mut self, cluster: &str, remark: String) {
        match self.remarks.iter_mut().find(|(known, _)| *known == remark) {
            Some((_, clusters)) => clusters.push(cluster.to_owned()),
            None => self.remarks.push((remark, vec![cluster.to_owned()])),
        }
    }

    /// Says them on standard error.
    pub(super) fn say(self) {
        for (remark, clusters) in self.remarks {
            let clusters: Vec<&str> = clusters.iter().map(String::as_str).collect();
            let of = if self.is_several { format!("{}: ", some(&clusters)) } else { String::new() };
            say(&format!("{of}{remark}"));
        }
    }
}
