//! The questions of a fold to the history.

use kubediff_history::{Error, Number, ObjectId, Reader};
use serde_json::Value;

/// Answers about records that a fold has reached.
pub trait Look {
    /// The object with this uid in a namespace, or in none, then its controller, and so on upwards: those that were known by this
    /// record. Of a controller that was not, the uid follows.
    ///
    /// # Errors
    ///
    /// When the history cannot be read.
    fn lineage(
        &mut self,
        uid: &str,
        namespace: Option<&str>,
        by: Number,
    ) -> Result<(Vec<ObjectId>, Option<String>), Error>;

    /// The object after a record; of a deletion, its last state.
    ///
    /// # Errors
    ///
    /// When the history cannot be read.
    fn object(&mut self, number: Number) -> Result<Option<Value>, Error>;

    /// The object before a record.
    ///
    /// # Errors
    ///
    /// When the history cannot be read.
    fn object_before(&mut self, number: Number) -> Result<Option<Value>, Error>;
}

impl Look for Reader {
    fn lineage(
        &mut self,
        uid: &str,
        namespace: Option<&str>,
        by: Number,
    ) -> Result<(Vec<ObjectId>, Option<String>), Error> {
        Reader::lineage(self, uid, namespace, by)
    }

    fn object(&mut self, number: Number) -> Result<Option<Value>, Error> {
        Ok(self.version_of(number)?.map(|version| version.body.value()))
    }

    fn object_before(&mut self, number: Number) -> Result<Option<Value>, Error> {
        Ok(self.version_before(number)?.map(|version| version.body.value()))
    }
}
