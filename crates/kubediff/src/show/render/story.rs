//! The line that shows a story.

use kubediff_history::ChangeRecord;

use super::header::{authors, beginning};
use super::painter::{BOLD, CYAN, DIM, PLAIN, Painter, RED};
use super::{INDENT, Renderer};
use crate::story::{Story, Verdict};
use crate::text::terminal::wrap;

/// `14:03:10  > deployments.apps shop/cart  rolled out in 2m 11s, 3 pods replaced  (by argocd, 38 changes) #812`, and the change that it
/// began with.
pub(super) fn story(
    renderer: &Renderer,
    story: &Story,
    root: Option<&ChangeRecord>,
    one_line: bool,
) -> String {
    let fails = matches!(story.verdict, Verdict::Failing | Verdict::Stuck);
    let style = if fails { RED } else { CYAN };
    let object = &story.object;
    let name = match &object.namespace {
        Some(namespace) => format!("{namespace}/{}", object.name),
        None => object.name.clone(),
    };
    let by = root.and_then(authors).map(|(_, names)| format!("by {names}, ")).unwrap_or_default();
    let phrases = story.words(root.map(|root| root.summary.as_str()));

    let mut out = Painter::default();
    out.put(DIM, &beginning(renderer, story.opened_at)).spaces(2).put(style.bold(), "▸").spaces(1);
    out.put(style, &object.qualified_resource()).spaces(1).put(BOLD, &name).spaces(2);
    if one_line {
        out.put(PLAIN, &phrases).spaces(2);
    }
    out.put(DIM, &format!("({by}{}) #{}", story.size(), story.id)).line();
    if !one_line {
        for line in wrap(&phrases, ", ", renderer.width.saturating_sub(INDENT)) {
            out.spaces(INDENT).put(PLAIN, &line).line();
        }
    }
    out.finish()
}
