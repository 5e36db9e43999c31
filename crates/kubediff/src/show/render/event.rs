//! The lines that show an Event.

use kubediff_history::Event;
use serde_json::Value;

use super::header::beginning;
use super::painter::{BOLD, DIM, PLAIN, Painter, RED, YELLOW};
use super::{INDENT, Renderer};

/// `14:05:03  * Pod shop/cart-a  BackOff  (Warning by kubelet, 4 times) #833`, and the message.
pub(super) fn event(renderer: &Renderer, event: &Event, one_line: bool) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let first =
        |values: [&Value; 2]| values.map(text).into_iter().find(|it| !it.is_empty()).unwrap_or_default();
    let Event { number, observed_at, object } = event;
    let about = &object["involvedObject"];
    let name = match text(&about["namespace"]) {
        namespace if namespace.is_empty() => text(&about["name"]),
        namespace => format!("{namespace}/{}", text(&about["name"])),
    };
    let message = text(&object["message"]);
    let (kind, by) =
        (text(&object["type"]), first([&object["source"]["component"], &object["reportingComponent"]]));
    let count = object["series"]["count"].as_u64().or(object["count"].as_u64()).unwrap_or(1);
    let times = if count > 1 { format!(", {count} times") } else { String::new() };
    let by = if by.is_empty() { by } else { format!(" by {by}") };

    let style = if kind == "Warning" { RED } else { YELLOW };
    let mut out = Painter::default();
    out.put(DIM, &beginning(renderer, *observed_at)).spaces(2).put(style.bold(), "*").spaces(1);
    out.put(style, &text(&about["kind"]))
        .spaces(1)
        .put(BOLD, &name)
        .spaces(2)
        .put(PLAIN, &text(&object["reason"]));
    if one_line {
        out.put(PLAIN, &format!(": {message}"));
    }
    out.spaces(2).put(DIM, &format!("({kind}{by}{times}) #{number}")).line();
    if !one_line && !message.is_empty() {
        for line in message.lines() {
            out.spaces(INDENT).put(PLAIN, line).line();
        }
    }
    out.finish()
}
