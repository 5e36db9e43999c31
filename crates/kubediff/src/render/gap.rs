//! The lines that show a gap.

use super::header::time;
use super::painter::{BOLD, DIM, Painter, RED};
use super::{INDENT, Renderer};
use crate::facts::duration;
use crate::gap::Gap;

/// `14:07:12  ! not watched from 14:05:01 to 14:07:12 (2m11s): 58 resources`, and the cause.
pub(super) fn gap(renderer: &Renderer, gap: &Gap, one_line: bool) -> String {
    let from = time(renderer, gap.from);
    let mut out = Painter::default();
    let shown_at = gap.to.unwrap_or(gap.from);
    let when = match gap.to {
        Some(to) => {
            let lasted = duration(to.as_second().saturating_sub(gap.from.as_second()));
            let from = match renderer.date(gap.from, to) {
                Some(_) => {
                    gap.from.to_zoned(renderer.time_zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
                }
                None => from,
            };
            format!("not watched from {from} to {} ({lasted})", time(renderer, to))
        }
        None => format!("not watched since {from}"),
    };
    out.put(DIM, &time(renderer, shown_at)).spaces(2).put(RED.bold(), "!").spaces(1);
    out.put(BOLD, &when).put(DIM, ":").spaces(1).put(BOLD, &gap.what());
    if one_line {
        out.spaces(2).put(DIM, &format!("({})", gap.cause)).line();
        return out.finish();
    }
    out.line();
    out.spaces(INDENT).put(DIM, &gap.cause).line();
    out.finish()
}
