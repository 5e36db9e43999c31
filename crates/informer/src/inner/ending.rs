//! The result of a stop with a time limit.

use std::fmt;
use std::time::Duration;

use crate::options::resource::ResourceType;
use crate::options::selection::Selection;

/// Something had not ended when the time limit of a stop had passed.
///
/// ```
/// # async fn example(factory: informer::SharedInformerFactory) {
/// use std::time::Duration;
///
/// if let Err(not_ended) = factory.shutdown_within(Duration::from_secs(10)).await {
///     // not ended within 10 s: pods.v1 (all namespaces): a handler call (dropped); secrets.v1 (all namespaces): the file
///     // of the cache (still runs)
///     eprintln!("{not_ended}");
/// }
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct NotEnded {
    limit: Duration,
    unfinished: Vec<Unfinished>,
}

/// Work of an informer that did not end by itself within the time limit of a stop.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unfinished {
    /// The informer's resource.
    pub resource: ResourceType,
    /// The informer's selection.
    pub selection: Selection,
    /// The kind of the work.
    pub work: Work,
    /// Whether the work still runs, because it blocks a thread. Otherwise it was dropped.
    pub still_runs: bool,
}

/// Work that a stop waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Work {
    /// A call of a handler.
    HandlerCall,
    /// A call of an index function or a transform.
    UserCode,
    /// A load or save of the informer's file ([`FactoryBuilder::saved_in`](crate::FactoryBuilder::saved_in)).
    File,
    /// A request of [`Deleted::confirm`](crate::Deleted::confirm).
    Confirmation,
}

impl NotEnded {
    pub(crate) fn new(limit: Duration, unfinished: Vec<Unfinished>) -> Self {
        Self { limit, unfinished }
    }

    /// The work that did not end by itself; at least one.
    pub fn unfinished(&self) -> &[Unfinished] {
        &self.unfinished
    }

    /// Whether some of the work still runs.
    pub fn still_runs(&self) -> bool {
        self.unfinished.iter().any(|unfinished| unfinished.still_runs)
    }
}

impl std::error::Error for NotEnded {}

impl fmt::Display for NotEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not ended within {} s: ", self.limit.as_secs_f64())?;
        for (index, Unfinished { resource, selection, work, still_runs }) in
            self.unfinished.iter().enumerate()
        {
            let separator = if index == 0 { "" } else { "; " };
            let end = if *still_runs { "still runs" } else { "dropped" };
            write!(f, "{separator}{resource} ({selection}): {work} ({end})")?;
        }
        Ok(())
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HandlerCall => "a handler call",
            Self::UserCode => "an index function or a transform",
            Self::File => "the file of the cache",
            Self::Confirmation => "a request to confirm a deletion",
        })
    }
}
