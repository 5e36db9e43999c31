//! The lines that show an Event.

use kubediff_history::Event;
use serde_json::Value;

use super::header::beginning;
use super::painter::{BOLD, DIM, PLAIN, Painter, RED, YELLOW};
use super::{INDENT, Renderer};

/// The parts of an Event that people read.
pub(crate) struct Remark {
    pub(crate) kind: String,
    /// `shop/cart-a`.
    pub(crate) name: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) is_warning: bool,
    /// `Warning by kubelet, 4 times`.
    pub(crate) words: String,
}

impl Remark {
    pub(crate) fn of(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let first =
            |values: [&Value; 2]| values.map(text).into_iter().find(|it| !it.is_empty()).unwrap_or_default();
        let about = &object["involvedObject"];
        let kind = text(&object["type"]);
        let by = first([&object["source"]["component"], &object["reportingComponent"]]);
        let by = if by.is_empty() { by } else { format!(" by {by}") };
        let count = object["series"]["count"].as_u64().or(object["count"].as_u64()).unwrap_or(1);
        let times = if count > 1 { format!(", {count} times") } else { String::new() };
        Self {
            kind: text(&about["kind"]),
            name: match text(&about["namespace"]) {
                namespace if namespace.is_empty() => text(&about["name"]),
                namespace => format!("{namespace}/{}", text(&about["name"])),
            },
            reason: text(&object["reason"]),
            message: text(&object["message"]),
            is_warning: kind == "Warning",
            words: format!("{kind}{by}{times}"),
        }
    }
}

/// `14:05:03  * Pod shop/cart-a  BackOff  (Warning by kubelet, 4 times) #833`, and the message.
pub(super) fn event(renderer: &Renderer, event: &Event, one_line: bool) -> String {
    let Event { number, observed_at, object } = event;
    let Remark { kind, name, reason, message, is_warning, words } = Remark::of(object);
    let style = if is_warning { RED } else { YELLOW };
    let mut out = Painter::default();
    out.put(DIM, &beginning(renderer, *observed_at)).spaces(2).put(style.bold(), "*").spaces(1);
    out.put(style, &kind).spaces(1).put(BOLD, &name).spaces(2).put(PLAIN, &reason);
    if one_line {
        out.put(PLAIN, &format!(": {message}"));
    }
    out.spaces(2).put(DIM, &format!("({words}) #{number}")).line();
    if !one_line && !message.is_empty() {
        for line in message.lines() {
            out.spaces(INDENT).put(PLAIN, line).line();
        }
    }
    out.finish()
}
