//! The lines that show a gap, or a scrub.

use kubediff_history::Scrubbed;

use super::header::{beginning, date_and_time, time};
use super::painter::{BOLD, DIM, Painter, RED};
use super::{INDENT, Renderer};
use crate::changes::facts::duration;
use crate::model::gap::Gap;
use crate::text::terminal::{escape, width};

/// `14:07:12  ! not watched from 14:05:01 to 14:07:12 (2m11s): 58 resources`, and the cause.
pub(super) fn gap(renderer: &Renderer, gap: &Gap, one_line: bool) -> String {
    let from = time(renderer, gap.from);
    let first = beginning(renderer, gap.to.unwrap_or(gap.from));
    let when = match gap.to {
        Some(to) => {
            let lasted = duration(to.as_second().saturating_sub(gap.from.as_second()));
            let is_another_day = renderer.date(gap.from, to).is_some();
            let from = if is_another_day { date_and_time(renderer, gap.from) } else { from };
            format!("not watched from {from} to {} ({lasted})", time(renderer, to))
        }
        None => format!("not watched since {from}"),
    };
    let what = gap.what();
    let used = width(&first) + 4 + width(&when) + 2 + width(&escape(&what));
    let mut out = Painter::default();
    out.put(DIM, &first).spaces(2).put(RED.bold(), "!").spaces(1).put(BOLD, &when).put(DIM, ":");
    if one_line {
        out.spaces(1).put(BOLD, &what).spaces(2).put(DIM, &format!("({})", gap.cause)).line();
        return out.finish();
    }
    if used <= renderer.width {
        out.spaces(1);
    } else {
        out.line();
        out.spaces(INDENT);
    }
    out.put(BOLD, &what).line();
    out.spaces(INDENT).put(DIM, &gap.cause).line();
    out.finish()
}

/// `14:07:12  ! 12 versions were masked: values of Secrets became known (looked at #301 to #20301) #20302`.
pub(super) fn scrubbed(renderer: &Renderer, scrubbed: &Scrubbed) -> String {
    let Scrubbed { number, at, from, to, masked, cause } = scrubbed;
    let mut out = Painter::default();
    out.put(DIM, &beginning(renderer, *at)).spaces(2).put(RED.bold(), "!").spaces(1);
    let versions = if *masked == 1 { "version was" } else { "versions were" };
    out.put(BOLD, &format!("{masked} {versions} masked"))
        .put(DIM, &format!(": {cause} (looked at #{from} to #{to}) #{number}"));
    out.line();
    out.finish()
}
