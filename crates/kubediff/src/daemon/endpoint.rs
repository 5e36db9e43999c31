//! `/healthz`, `/readyz`, `/status` and `/metrics`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use serde_json::{Value, json};

use super::bearer::{bearer, same};
use super::current::{Current, Waits};
use super::listener::{Listener, Listening};
use super::{ServeError, metrics};
use crate::config::Loaded;

/// The states of all clusters.
type States = Arc<Mutex<Vec<State>>>;

/// The state of a cluster.
struct State {
    /// Its name, where there are several.
    cluster: Option<String>,
    shown: Shown,
}

/// The state that the endpoint reports.
enum Shown {
    /// Nothing runs yet, for this reason.
    Waiting(String),
    /// Another process records.
    StandingBy(Arc<Waits>),
    Running(Arc<Current>),
}

/// The server of health and metrics; none where the configuration wants none.
pub(super) struct Endpoint {
    states: States,
    serving: Option<Listening>,
}

/// What the endpoint shows of one cluster.
#[derive(Clone)]
pub(super) struct Part {
    states: States,
    at: usize,
}

impl Endpoint {
    /// Listens where the configuration says, for clusters of these names.
    ///
    /// # Errors
    ///
    /// When the address is taken, or is not this machine's.
    pub(super) async fn open(loaded: &Loaded, clusters: Vec<Option<String>>) -> Result<Self, ServeError> {
        let begins = |cluster| State { cluster, shown: Shown::Waiting("it has only begun".to_owned()) };
        let states = Arc::new(Mutex::new(clusters.into_iter().map(begins).collect::<Vec<_>>()));
        let Some(listen) = &loaded.config.listen else { return Ok(Self { states, serving: None }) };
        let token = loaded.config.listen_token.as_ref().map(|token| token.reveal(loaded.folder()));
        let failed = |source| ServeError::Token { field: "listenToken", source };
        let expected = token.transpose().map_err(failed)?;
        let mut failed = None;
        for address in listen.0.addresses() {
            match Listener::bind(address).await.and_then(|listener| Ok((listener.address()?, listener))) {
                Ok((address, listener)) => {
                    crate::text::terminal::say(&format!("health and metrics are on http://{address}"));
                    let shown = states.clone();
                    let serving =
                        listener.answer(move |request| answer(request, &shown, expected.as_deref()));
                    return Ok(Self { states, serving: Some(serving) });
                }
                Err(error) => failed = Some(error),
            }
        }
        let source = failed.unwrap_or_else(|| std::io::ErrorKind::AddrNotAvailable.into());
        Err(ServeError::Listen { listen: listen.0.to_string(), source })
    }

    /// The part of the cluster with this place among the names.
    pub(super) fn part(&self, at: usize) -> Part {
        Part { states: self.states.clone(), at }
    }

    pub(super) async fn close(self) {
        if let Some(serving) = self.serving {
            serving.close().await;
        }
    }
}

impl Part {
    /// Nothing runs yet, for this reason.
    pub(super) fn waits(&self, reason: String) {
        self.set(Shown::Waiting(reason));
    }

    /// Whether a configuration has begun.
    pub(super) fn is_running(&self) -> bool {
        lock(&self.states).get(self.at).is_some_and(|state| !matches!(state.shown, Shown::Waiting(_)))
    }

    /// Another process records, and this one stands by.
    pub(super) fn stands_by(&self, waits: Waits) {
        self.set(Shown::StandingBy(Arc::new(waits)));
    }

    /// This runs now.
    pub(super) fn show(&self, current: Current) {
        self.set(Shown::Running(Arc::new(current)));
    }

    fn set(&self, shown: Shown) {
        if let Some(state) = lock(&self.states).get_mut(self.at) {
            state.shown = shown;
        }
    }
}

fn lock(states: &Mutex<Vec<State>>) -> MutexGuard<'_, Vec<State>> {
    states.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The answer to a request. The state and the metrics are for requests with the `expected` token, probes for everybody.
fn answer<B>(
    request: &Request<B>,
    states: &Mutex<Vec<State>>,
    expected: Option<&str>,
) -> Response<Full<Bytes>> {
    const TEXT: &str = "text/plain; charset=utf-8";
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return response(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET is answered here\n".to_owned());
    }
    let sent = request.headers().get(header::AUTHORIZATION).and_then(|value| bearer(value.as_bytes()));
    let may_ask = expected.is_none_or(|expected| sent.is_some_and(|sent| same(expected.as_bytes(), sent)));
    if matches!(request.uri().path(), "/status" | "/metrics") && !may_ask {
        return response(StatusCode::UNAUTHORIZED, TEXT, "a bearer token is needed here\n".to_owned());
    }
    let states = lock(states);
    match request.uri().path() {
        "/healthz" | "/livez" => response(StatusCode::OK, TEXT, "ok\n".to_owned()),
        "/readyz" => match why_none_is_ready(&states) {
            None => response(StatusCode::OK, TEXT, format!("ok{}\n", doubts(&states))),
            Some(reason) => response(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{reason}\n")),
        },
        "/status" => response(StatusCode::OK, "application/json", format!("{}\n", status(&states))),
        "/metrics" => {
            let of = |state: &State| state.cluster.clone();
            let running = states.iter().filter_map(|state| Some((of(state), running(&state.shown)?.clone())));
            let standing_by =
                states.iter().filter_map(|state| Some((of(state), standing_by(&state.shown)?.clone())));
            let ready = states.iter().map(|state| (of(state), why_not_ready(&state.shown).is_none()));
            let text = metrics::text(ready, &running.collect::<Vec<_>>(), &standing_by.collect::<Vec<_>>());
            response(StatusCode::OK, metrics::FORMAT.content_type(), text)
        }
        _ => {
            let there = "there are /healthz, /readyz, /status and /metrics\n";
            response(StatusCode::NOT_FOUND, TEXT, there.to_owned())
        }
    }
}

fn running(shown: &Shown) -> Option<&Arc<Current>> {
    match shown {
        Shown::Waiting(_) | Shown::StandingBy(_) => None,
        Shown::Running(current) => Some(current),
    }
}

fn standing_by(shown: &Shown) -> Option<&Arc<Waits>> {
    match shown {
        Shown::Waiting(_) | Shown::Running(_) => None,
        Shown::StandingBy(waits) => Some(waits),
    }
}

/// Why no cluster is recorded; `None` while one is: the others are no reason to be sent nothing.
fn why_none_is_ready(states: &[State]) -> Option<String> {
    let reasons: Option<Vec<_>> =
        states.iter().map(|state| Some(state.named() + &why_not_ready(&state.shown)?)).collect();
    reasons.map(|reasons| reasons.join("; "))
}

/// What else there is to know, in words; empty where all is well.
fn doubts(states: &[State]) -> String {
    let doubts = states.iter().map(|State { cluster, shown }| {
        let not_ready = why_not_ready(shown).map(|reason| format!("; {reason}")).unwrap_or_default();
        let rest = [stands_by, lost, short_memory, over_bounds, troubled_sinks].map(|doubt| doubt(shown));
        let doubts = not_ready + &rest.concat();
        match cluster {
            Some(cluster) if !doubts.is_empty() => {
                format!("; {cluster}: {}", doubts.trim_start_matches("; "))
            }
            _ => doubts,
        }
    });
    doubts.collect()
}

impl State {
    /// The beginning of a sentence about it.
    fn named(&self) -> String {
        self.cluster.as_ref().map(|cluster| format!("{cluster}: ")).unwrap_or_default()
    }
}

/// The process that records, in words; empty where it is this one.
fn stands_by(shown: &Shown) -> String {
    standing_by(shown).map(|waits| format!("; standby of {}", *waits.of.borrow())).unwrap_or_default()
}

fn why_not_ready(shown: &Shown) -> Option<String> {
    match shown {
        Shown::Waiting(reason) => Some(reason.clone()),
        Shown::StandingBy(waits) => waits.standing.borrow().why_not_ready(),
        Shown::Running(current) => {
            let full = current.trouble.borrow().clone();
            full.or_else(|| current.standing.borrow().why_not_ready())
        }
    }
}

/// The watches that are lost while others go on, in words; empty for none.
fn lost(shown: &Shown) -> String {
    let lost = running(shown).and_then(|current| current.standing.borrow().lost());
    lost.map(|lost| format!("; {lost}")).unwrap_or_default()
}

/// The memory, in words; empty while there is enough.
fn short_memory(shown: &Shown) -> String {
    let trouble = running(shown).and_then(|current| current.memory.borrow().trouble());
    trouble.map(|trouble| format!("; {trouble}")).unwrap_or_default()
}

/// The number of values over a bound, in words; empty for none.
fn over_bounds(shown: &Shown) -> String {
    match running(shown).map_or(0, |current| current.secrets.over_bounds()) {
        0 => String::new(),
        over => {
            format!("; {over} values of Secrets are not searched for in other objects: there are too many")
        }
    }
}

/// The sinks that refuse records or fail at the moment, in words; empty for none.
fn troubled_sinks(shown: &Shown) -> String {
    let sinks = running(shown).into_iter().flat_map(|current| &current.sinks);
    let told = sinks.filter_map(|(name, status)| {
        let trouble = status.borrow().trouble.clone()?;
        Some(format!("; the sink {name}: {trouble}"))
    });
    told.collect()
}

/// The state of each watch and sink, of several clusters by their names. `kubediff status` shows it.
fn status(states: &[State]) -> Value {
    if let [State { cluster: None, shown }] = states {
        return status_of(shown);
    }
    let not_ready = why_none_is_ready(states);
    let clusters =
        states.iter().map(|state| (state.cluster.clone().unwrap_or_default(), status_of(&state.shown)));
    json!({
        "ready": not_ready.is_none(),
        "reason": not_ready,
        "clusters": clusters.collect::<serde_json::Map<_, _>>(),
    })
}

fn status_of(shown: &Shown) -> Value {
    let not_ready = why_not_ready(shown);
    if let Some(waits) = standing_by(shown) {
        let (kept, torn) = waits.shadow();
        return json!({
            "ready": not_ready.is_none(),
            "reason": not_ready,
            "standby": {"of": *waits.of.borrow(), "kept": kept, "torn": torn},
            "watches": waits.standing.borrow().watches,
        });
    }
    let Some(current) = running(shown) else { return json!({"ready": false, "reason": not_ready}) };
    let memory = *current.memory.borrow();
    let sinks = current.sinks.iter().map(|(name, status)| {
        let status = status.borrow();
        let told = json!({
            "position": status.position, "behind": status.behind, "dead": status.dead, "trouble": status.trouble,
        });
        (name.clone(), told)
    });
    json!({
        "ready": not_ready.is_none(),
        "reason": not_ready,
        "history": {"path": current.location.to_string(), "records": *current.newest.borrow()},
        "memory": {
            "resident": memory.resident, "limit": memory.limit, "trouble": memory.trouble(),
        },
        "secrets": {"over_bounds": current.secrets.over_bounds()},
        "watches": current.standing.borrow().watches,
        "sinks": sinks.collect::<serde_json::Map<_, _>>(),
    })
}

fn response(status: StatusCode, content: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content));
    response
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use http::{Request, StatusCode, header};

    use super::{Shown, State, answer};

    #[test]
    fn the_scheme_of_a_token_may_be_in_any_letters_and_the_token_may_not() {
        let state = State { cluster: None, shown: Shown::Waiting(String::new()) };
        let shown = Mutex::new(vec![state]);
        for (sent, expected) in [
            ("Bearer Tok", StatusCode::OK),
            ("bearer Tok", StatusCode::OK),
            ("BEARER Tok", StatusCode::OK),
            ("Bearer tok", StatusCode::UNAUTHORIZED),
            ("Bearer", StatusCode::UNAUTHORIZED),
            ("Basic Tok", StatusCode::UNAUTHORIZED),
        ] {
            let request =
                Request::builder().uri("/status").header(header::AUTHORIZATION, sent).body(()).unwrap();
            assert_eq!(answer(&request, &shown, Some("Tok")).status(), expected, "{sent}");
        }
    }
}
