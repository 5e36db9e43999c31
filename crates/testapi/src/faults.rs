//! Scripted faults: what goes wrong, for which requests, how often.
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
//! Faults that are armed for a number of times form a queue: a request meets the oldest one that matches it. So of two
//! such faults for the same requests, the first request meets the first and the second request meets the second. A
//! fault that is armed for always happens to every matching request in addition.

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

use std::sync::Arc;

use http::{HeaderMap, Response, StatusCode};
use parking_lot::Mutex;
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

/// The faults of a server. A clone is a handle to the same faults.
#[derive(Debug, Clone)]
pub struct Faults(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rules: Mutex<Vec<Arc<Rule>>>,
    record: Arc<Record>,
    hidden: hidden::Hidden,
    watches: running::Watches,
}

/// A selection of requests, for which no fault is armed yet.
#[must_use = "nothing is armed yet"]
#[derive(Debug)]
pub struct On<'a> {
    faults: &'a Faults,
    matcher: Matcher,
}

impl On<'_> {
    /// Arms a fault, or several at once (`[a, b]`), for the next matching request. An empty list arms nothing.
    pub fn once(self, faults: impl Into<Vec<Fault>>) -> Armed {
        self.times(1, faults)
    }

    /// Arms faults for the next `times` matching requests. 0 or an empty list arms nothing.
    pub fn times(self, times: u64, faults: impl Into<Vec<Fault>>) -> Armed {
        self.faults.arm(Rule::new(self.matcher, Recipe::Always(faults.into()), Some(times)))
    }

    /// Arms faults for all matching requests, until they are disarmed.
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

    /// Selects the requests for faults.
    pub fn on(&self, matcher: Matcher) -> On<'_> {
        On { faults: self, matcher }
    }

    /// Random faults. Seed, verb, resource and namespace of a request, and the number of earlier requests like it,
    /// decide which fault it meets: other requests in between do not matter.
    pub fn random(&self, seed: u64, mix: Mix) -> Armed {
        self.arm(Rule::new(mix.matcher.clone(), Recipe::Random(Random::new(seed, mix)), None))
    }

    /// Forbids these requests until it is disarmed. Running watches go on, as with the real server.
    pub fn deny(&self, matcher: Matcher) -> Armed {
        self.on(matcher).always(Fault::Refuse(Refusal::Forbidden))
    }

    /// Hides a resource, `pods` or `widgets.example.com`: requests get 404, discovery omits it, and its watches end.
    /// Its objects are kept for when it is shown again.
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

    /// Disarms everything and shows hidden resources. Responses that have met a fault keep it: a stalled one stays
    /// stalled.
    pub fn clear(&self) {
        for rule in self.0.rules.lock().drain(..) {
            Armed(rule).disarm();
        }
        self.0.hidden.clear();
    }

    /// The armed faults, one line each.
    pub fn armed(&self) -> Vec<String> {
        self.0.rules.lock().iter().filter(|rule| rule.is_armed()).map(ToString::to_string).collect()
    }

    /// The last 10,000 faults that took effect, oldest first.
    pub fn fired(&self) -> Vec<Fired> {
        self.0.record.all()
    }

    /// How many faults have taken effect.
    pub fn hits(&self) -> u64 {
        self.0.record.hits()
    }

    /// Waits until a fault takes effect.
    pub async fn hit(&self) {
        self.hit_times(1).await;
    }

    /// Waits until this many faults have taken effect since the start of the server.
    pub async fn hit_times(&self, times: u64) {
        self.0.record.reach(times).await;
    }

    /// The faults that a request meets.
    pub(crate) fn meet(&self, call: &Arc<Call>) -> Plan {
        let mut rules = self.0.rules.lock();
        rules.retain(|rule| rule.is_armed());
        let mut counted = false;
        let mut hits = Vec::new();
        for rule in rules.iter() {
            let sees = rule.sees(call);
            // A counted fault waits while an older one matches.
            if !sees || rule.is_counted() && counted {
                continue;
            }
            counted |= rule.is_counted();
            hits.extend(rule.meet(call, &self.0.record));
        }
        Plan { call: call.clone(), hits }
    }

    /// The response to a request for a hidden resource; otherwise prepares the request.
    pub(crate) fn hidden(&self, call: &Call, headers: &mut HeaderMap) -> Option<Response<Body>> {
        if self.0.hidden.concerns(call) {
            hidden::Hidden::prepare(headers);
        }
        self.0.hidden.refuse(call)
    }

    /// The response, changed by the request's faults.
    pub(crate) async fn apply(&self, plan: &Plan, response: Response<Body>) -> Response<Body> {
        let response = match self.0.hidden.concerns(&plan.call) {
            true => self.0.hidden.filter(response).await,
            false => response,
        };
        let runs = plan.call.verb == Verb::Watch && response.status() == StatusCode::OK;
        let orders = runs.then(|| self.0.watches.add(plan.call.clone()));
        // The resource was hidden after the request had arrived. The watch did not run yet, so `hide` did not end it.
        if let Some(refusal) = self.0.hidden.refuse(&plan.call) {
            return refusal;
        }
        plan.apply(response, orders)
    }

    fn arm(&self, rule: Rule) -> Armed {
        let rule = Arc::new(rule);
        self.0.rules.lock().push(rule.clone());
        Armed(rule)
    }
}
