//! Tables as kubectl prints them.

use crate::text::terminal::width;

/// Between two columns.
const GAP: usize = 3;
/// Ends a cell. Nothing that is escaped has it.
const END: char = '\0';

/// Rows, in which everything from the cluster is escaped already. The last column may have any width. A table may have very many rows, so
/// they are kept as one text.
#[derive(Default)]
pub(crate) struct Table {
    cells: String,
    widths: Vec<usize>,
}

impl Table {
    /// Adds a row below the others.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        for (at, cell) in cells.into_iter().enumerate() {
            let cell = cell.as_ref();
            match self.widths.get_mut(at) {
                Some(most) => *most = width(cell).max(*most),
                None => self.widths.push(width(cell)),
            }
            self.cells.push_str(cell);
            self.cells.push(END);
        }
        self.cells.push('\n');
    }

    /// The rows as lines.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.cells.split_terminator('\n').map(|row| {
            let mut line = String::new();
            for (cell, most) in row.split_terminator(END).zip(&self.widths) {
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', most.saturating_sub(width(cell)) + GAP));
            }
            line.truncate(line.trim_end().len());
            line + "\n"
        })
    }

    /// All lines.
    pub(crate) fn text(&self) -> String {
        self.lines().collect()
    }
}
