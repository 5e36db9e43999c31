//! The end of a question's time.

use std::time::Instant;

use super::Reader;
use super::fault::Fault;
use crate::error::Error;

/// SQLite looks at the deadline after so many steps of its machine.
const STEPS: i32 = 10_000;

impl Reader {
    /// Ends questions with [`Error::Late`] that are not answered by then; without a deadline, they take as long as they take. The content
    /// that is being unpacked at the deadline delays the error a little.
    ///
    /// # Errors
    ///
    /// When SQLite does not take the deadline.
    pub fn until(&mut self, deadline: Option<Instant>) -> Result<(), Error> {
        self.codec.deadline = deadline;
        let is_late = deadline.map(|deadline| move || Instant::now() >= deadline);
        self.connection.progress_handler(STEPS, is_late).map_err(|error| Fault::from(error).at(&self.path))
    }
}
