//! Faults by script: what goes wrong, with which requests, how often.
//!
//! ```no_run
//! # async fn f(api: testapi::TestApi) {
//! use testapi::Verb;
//! use testapi::faults::{Events, Fault, Refusal};
//!
//! let faults = api.faults();
//! let cut = faults.on(Verb::Watch.of("pods")).once(Fault::CutAfter(Events(3)));
//! faults.on(Verb::List.of("pods")).times(2, Fault::Refuse(Refusal::Unavailable));
//! cut.hit().await;
//! faults.clear();
//! # }
//! ```
//!
//! Of the faults that are armed for a number of times, a request meets the oldest that is for it: so two that are
//! armed for the same requests happen to the first and to the second. Those that are armed for always happen to every
//! request, in addition.

mod fault;
mod flow;
mod framing;
mod hidden;
mod matcher;
mod plan;
mod random;
mod rule;
mod running;
mod stage;
mod words;

use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderMap, Response, StatusCode};
use serve::Body;

use crate::{Call, Verb};

pub use self::fault::{Bytes, Events, Fault, Point, Refusal, StreamError};
pub use self::matcher::Matcher;
pub(crate) use self::plan::{Control, Plan};
use self::random::Random;
pub use self::random::{Kind, Mix, MixError};
pub use self::rule::{Armed, Fired};
use self::rule::{Recipe, Record, Rule};
pub use self::running::Running;
pub(crate) use self::words::refuse;

/// The faults of a server. Clones are the same.
#[derive(Debug, Clone)]
pub struct Faults(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rules: Mutex<Vec<Arc<Rule>>>,
    record: Arc<Record>,
    hidden: hidden::Hidden,
    watches: running::Watches,
}

/// Faults for some requests, to be armed.
#[must_use = "nothing is armed yet"]
#[derive(Debug)]
pub struct On<'a> {
    faults: &'a Faults,
    matcher: Matcher,
}

impl On<'_> {
    /// The next request meets a fault, or several at once (`[a, b]`). An empty list arms nothing.
    pub fn once(self, faults: impl Into<Vec<Fault>>) -> Armed {
        self.times(1, faults)
    }

    /// The next so many requests do; 0 arms nothing, as does an empty list.
    pub fn times(self, times: u64, faults: impl Into<Vec<Fault>>) -> Armed {
        self.faults.arm(Rule::new(self.matcher, Recipe::Always(faults.into()), Some(times)))
    }

    /// All requests do, until it is disarmed.
    pub fn always(self, faults: impl Into<Vec<Fault>>) -> Armed {
        self.faults.arm(Rule::new(self.matcher, Recipe::Always(faults.into()), None))
    }
}

impl Faults {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            rules: Mutex::default(),
            record: Arc::new(Record::new()),
            hidden: hidden::Hidden::default(),
            watches: running::Watches::default(),
        }))
    }

    /// Faults for these requests.
    pub fn on(&self, matcher: Matcher) -> On<'_> {
        On { faults: self, matcher }
    }

    /// Faults at random. What a request meets follows from the seed, its verb, resource and namespace, and how many
    /// like it came before: not from what other requests come in between.
    pub fn random(&self, seed: u64, mix: Mix) -> Armed {
        self.arm(Rule::new(mix.matcher.clone(), Recipe::Random(Random::new(seed, mix)), None))
    }

    /// These requests are forbidden until it is disarmed. Watches that run go on, as with the real server.
    pub fn deny(&self, matcher: Matcher) -> Armed {
        self.on(matcher).always(Fault::Refuse(Refusal::Forbidden))
    }

    /// Takes a resource away, `pods` or `widgets.example.com`: it is not found, discovery does not name it, and its
    /// watches end. Its objects stay for when it is shown again.
    pub fn hide(&self, resource: &str) {
        self.0.hidden.hide(resource);
        self.running(Verb::Watch.of(resource)).end();
    }

    /// Shows a hidden resource again.
    pub fn show(&self, resource: &str) {
        self.0.hidden.show(resource);
    }

    /// The watches that are running now.
    pub fn running(&self, matcher: Matcher) -> Running {
        self.0.watches.matching(&matcher)
    }

    /// Disarms everything and shows what is hidden. Answers that have met a fault go on as they are: one that is
    /// stalled stays so.
    pub fn clear(&self) {
        for rule in self.rules().drain(..) {
            Armed(rule).disarm();
        }
        self.0.hidden.clear();
    }

    /// What is armed, one line each.
    pub fn armed(&self) -> Vec<String> {
        self.rules().iter().filter(|rule| rule.is_armed()).map(ToString::to_string).collect()
    }

    /// What has taken effect, oldest first: the last 10,000.
    pub fn fired(&self) -> Vec<Fired> {
        self.0.record.all()
    }

    /// How often any fault has taken effect.
    pub fn hits(&self) -> u64 {
        self.0.record.hits()
    }

    /// Waits until some fault has taken effect.
    pub async fn hit(&self) {
        self.hit_times(1).await;
    }

    /// Waits until faults have taken effect so often, all together and since the start of the server.
    pub async fn hit_times(&self, times: u64) {
        self.0.record.reach(times).await;
    }

    /// What happens to a request.
    pub(crate) fn meet(&self, call: &Arc<Call>) -> Plan {
        let mut rules = self.rules();
        rules.retain(|rule| rule.is_armed());
        let mut counted = false;
        let mut hits = Vec::new();
        for rule in rules.iter() {
            let sees = rule.sees(call);
            // One that is for a number of requests waits while an older one has its turn.
            if !sees || rule.is_counted() && counted {
                continue;
            }
            counted |= rule.is_counted();
            hits.extend(rule.meet(call, &self.0.record));
        }
        Plan { call: call.clone(), hits }
    }

    /// The answer to a request for something hidden; else the request is made ready to be served.
    pub(crate) fn hidden(&self, call: &Call, headers: &mut HeaderMap) -> Option<Response<Body>> {
        if self.0.hidden.concerns(call) {
            hidden::Hidden::prepare(headers);
        }
        self.0.hidden.refuse(call)
    }

    /// The answer on its way.
    pub(crate) async fn apply(&self, plan: &Plan, response: Response<Body>) -> Response<Body> {
        let response = match self.0.hidden.concerns(&plan.call) {
            true => self.0.hidden.filter(response).await,
            false => response,
        };
        let runs = plan.call.verb == Verb::Watch && response.status() == StatusCode::OK;
        let orders = runs.then(|| self.0.watches.add(plan.call.clone()));
        // Hidden while it was being served: then it was not among the watches that were ended.
        if let Some(refusal) = self.0.hidden.refuse(&plan.call) {
            return refusal;
        }
        plan.apply(response, orders)
    }

    fn arm(&self, rule: Rule) -> Armed {
        let rule = Arc::new(rule);
        self.rules().push(rule.clone());
        Armed(rule)
    }

    fn rules(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Rule>>> {
        self.0.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
