//! The objects that a history has as existing, page by page.

use kubediff_history::{Error, Present, Reader, Scope, Version};

/// The number of stored states that are read at a time.
const PAGE: usize = 500;

/// Pages of stored objects.
pub(super) struct Stored {
    scope: Scope,
    /// The namespaces that are left; the last one is being read.
    pub(super) namespaces: Vec<Option<String>>,
    /// The objects of it, and how many were read.
    page: Option<(Present, usize)>,
}

impl Stored {
    pub(super) fn new(scope: Scope, namespaces: Vec<Option<String>>) -> Self {
        Self { scope, namespaces, page: None }
    }

    pub(super) fn next(&mut self, reader: &mut Reader) -> Result<Option<Vec<Version>>, Error> {
        let Some(namespace) = self.namespaces.last() else { return Ok(None) };
        let namespaces = namespace.iter().cloned().collect();
        let scope = Scope { namespaces, ..self.scope.clone() };
        let (present, start) = match self.page.take() {
            Some(page) => page,
            None => (reader.present(&scope, None)?, 0),
        };
        let end = present.len().min(start + PAGE);
        let page = reader.states(&present, start..end)?;
        if end < present.len() {
            self.page = Some((present, end));
        } else {
            self.namespaces.pop();
        }
        Ok(Some(page))
    }
}
