//! The requests of informers: recorded, and answered differently where a test asks for it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use informer::ResourceType;
use tokio::sync::watch;

use crate::wait::DEADLINE;

/// The requests of a factory, for its `tweak_list_options`. A handle.
#[derive(Clone)]
pub struct Wire {
    asked: watch::Sender<Vec<Asked>>,
    edits: Arc<Mutex<Vec<Edit>>>,
}

/// One list or watch.
#[derive(Clone, PartialEq, Eq)]
pub struct Asked {
    /// The resource, as kubectl writes it.
    pub resource: String,
    /// The parameters.
    pub query: Vec<(String, String)>,
}

/// Changes a request; `true` when it has done its work for good.
type Edit = Box<dyn FnMut(&mut Asked) -> bool + Send>;

impl Wire {
    pub(crate) fn new() -> Self {
        Self { asked: watch::Sender::new(Vec::new()), edits: Arc::default() }
    }

    /// To be called with each request.
    pub fn tweak(&self, resource: &ResourceType, query: &mut Vec<(String, String)>) {
        let mut asked = Asked { resource: resource.to_string(), query: std::mem::take(query) };
        let as_asked = asked.clone();
        self.edits.lock().unwrap_or_else(PoisonError::into_inner).retain_mut(|edit| !edit(&mut asked));
        *query = asked.query;
        // Last, so that who waits for the request finds it edited.
        self.asked.send_modify(|all| all.push(as_asked));
    }

    /// Changes requests from now on, until `edit` returns `true`.
    pub fn edit(&self, edit: impl FnMut(&mut Asked) -> bool + Send + 'static) {
        self.edits.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(edit));
    }

    /// Until the next list, watches ask for a version whose history no server has: they are answered with 410.
    pub fn expire_next_watch(&self) {
        self.edit(|asked| {
            let lists = !asked.is_watch() || asked.is_streaming_list();
            if !lists {
                asked.set("resourceVersion", "1");
            }
            lists
        });
    }

    /// Watches end by themselves after this many seconds.
    pub fn end_watches_after(&self, seconds: u32) {
        self.edit(move |asked| {
            if asked.is_watch() {
                asked.set("timeoutSeconds", &seconds.to_string());
            }
            false
        });
    }

    /// All requests so far, as they were asked for, before any edit.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.borrow().clone()
    }

    /// The lists so far.
    pub fn lists(&self) -> Vec<Asked> {
        self.asked().into_iter().filter(|asked| !asked.is_watch()).collect()
    }

    /// The watches so far, streaming lists among them.
    pub fn watches(&self) -> Vec<Asked> {
        self.asked().into_iter().filter(Asked::is_watch).collect()
    }

    /// Waits for requests.
    ///
    /// # Panics
    ///
    /// When they do not come.
    pub async fn until(&self, what: &str, is_it: impl Fn(&[Asked]) -> bool) {
        let mut asked = self.asked.subscribe();
        let waiting = async { asked.wait_for(|asked| is_it(asked)).await.map(drop) };
        if tokio::time::timeout(DEADLINE, waiting).await.is_err() {
            panic!("{what}: not among {:#?}", self.asked());
        }
    }

    /// Waits for the `count`th list and a watch after it.
    ///
    /// # Panics
    ///
    /// When they do not come.
    pub async fn until_listed(&self, count: usize) {
        let is_it = |asked: &[Asked]| {
            let mut lists = asked.iter().enumerate().filter(|(_, asked)| !asked.is_watch());
            let last = lists.nth(count.saturating_sub(1));
            last.is_some_and(|(at, _)| asked[at..].iter().any(Asked::is_watch))
        };
        self.until("a list and its watch", is_it).await;
    }
}

impl Asked {
    /// A parameter's value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// Gives a parameter a value.
    pub fn set(&mut self, name: &str, value: &str) {
        self.query.retain(|(given, _)| given != name);
        self.query.push((name.to_owned(), value.to_owned()));
    }

    /// Takes a parameter away.
    pub fn unset(&mut self, name: &str) {
        self.query.retain(|(given, _)| given != name);
    }

    /// Whether this is a watch.
    pub fn is_watch(&self) -> bool {
        self.get("watch") == Some("true")
    }

    /// Whether this is a watch that begins with the present objects.
    pub fn is_streaming_list(&self) -> bool {
        self.get("sendInitialEvents") == Some("true")
    }

    /// The resourceVersion asked for; empty for the most recent.
    pub fn version(&self) -> &str {
        self.get("resourceVersion").unwrap_or_default()
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters: Vec<_> = self.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        write!(f, "{}?{}", self.resource, parameters.join("&"))
    }
}
