//! Tables as kubectl prints them.

use crate::text::terminal::width;

/// Between two columns.
const GAP: usize = 3;

/// Rows below heads, in which everything from the cluster is escaped already. The last column may have any width.
pub(crate) fn table(heads: Option<&[String]>, rows: &[Vec<String>]) -> String {
    let all = || heads.into_iter().map(<[String]>::iter).chain(rows.iter().map(|row| row.iter()));
    let mut widths: Vec<usize> = Vec::new();
    for row in all() {
        for (at, cell) in row.enumerate() {
            match widths.get_mut(at) {
                Some(most) => *most = width(cell).max(*most),
                None => widths.push(width(cell)),
            }
        }
    }
    let mut text = String::new();
    for row in all() {
        let mut line = String::new();
        for (cell, most) in row.zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', most.saturating_sub(width(cell)) + GAP));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
