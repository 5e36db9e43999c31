//! The plan of retention, and the contents that its next step needs.

use jiff::Timestamp;

use super::Reader;
use crate::error::Error;
use crate::report::{Plan, Retention};
use crate::sql::retain;

impl Reader {
    /// The plan of a run of [`History::retain`](crate::History::retain): the records that `retention` does not keep, but no more than those of
    /// the oldest day, as recorded. A clock that jumps ahead removes no more.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub fn plan(&mut self, retention: &Retention, now: Timestamp) -> Result<Plan, Error> {
        self.at_once(|db, _, _| retain::plan(db, retention, now))
    }

    /// Reads what the next step of a plan packs again, so that the writer does not wait for it. In a database, steps are larger then. In a file,
    /// this does nothing.
    ///
    /// # Errors
    ///
    /// When the database cannot be read, or is damaged.
    #[cfg_attr(not(feature = "postgres"), expect(unused_variables, reason = "a file has small steps"))]
    pub fn prepare(&mut self, plan: &mut Plan) -> Result<(), Error> {
        #[cfg(feature = "postgres")]
        self.at_once(|db, codec, _| retain::prepare(db, codec, plan))?;
        Ok(())
    }
}
