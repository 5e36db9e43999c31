//! Q8: elections against the embedded server, in simulated time.

#![expect(clippy::unwrap_used, reason = "a test may stop at a surprise, its helpers too")]

mod wire;

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use informer::kube::client::Api as KubeApi;
use informer::kube::client::api::PostParams;
use informer_controller::Clock;
use informer_controller::election::Election;
use informer_controller::gate::{Loss, is_not_leading};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use testapi::{Api, TestApi};
use tokio::time::{Instant, timeout};

use wire::{Fault, Lease, Wire, host, pass};

const SECOND: Duration = Duration::from_secs(1);

/// The names that lead, in turn.
async fn leader_of(election: &Election) -> Option<String> {
    let mut changes = pin!(election.status_changes());
    changes.next().await.unwrap().leader
}

#[tokio::test(start_paused = true)]
async fn q8_one_leads_and_another_follows_after_its_release() {
    let api = Api::default();
    let [one, two] = ["a", "b"].map(|name| Wire::to(&api).candidate(name).build().unwrap());
    let term = one.acquire().await.unwrap();
    assert_eq!((term.generation(), one.status().is_leading()), (0, true));
    let waiting = {
        let two = two.clone();
        tokio::spawn(async move { two.acquire().await.unwrap() })
    };
    pass(60 * SECOND).await;
    assert!(!waiting.is_finished() && term.gate().is_open());
    assert_eq!((leader_of(&two).await.as_deref(), two.status().is_leading()), (Some("a"), false));

    let gate = term.gate();
    let released = Instant::now();
    term.release().await;
    assert!(!gate.is_open() && !one.status().is_leading());
    assert_eq!((one.status().leader, Lease(&api).spec("holderIdentity")), (None, json!("")));
    let term = waiting.await.unwrap();
    // At its next look.
    assert!(released.elapsed() < 5 * SECOND);
    assert_eq!((term.generation(), Lease(&api).spec("leaseTransitions")), (1, json!(1)));
    assert_eq!(
        two.metrics().to_text(Default::default()).lines().nth(2),
        Some("leader_election_master_status{name=\"cart\"} 1")
    );
}

/// A wall clock that jumps by days, to and fro, with each look at it.
struct Jumping(AtomicUsize);

impl Clock for Jumping {
    fn now(&self) -> Timestamp {
        let days = [0, 3, -400, 20_000, -20_000][self.0.fetch_add(1, Ordering::Relaxed) % 5];
        Timestamp::from_second(1_800_000_000 + days * 86_400).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn q8_a_wall_clock_that_jumps_changes_nothing() {
    let api = Api::default();
    let one = Wire::to(&api)
        .candidate("a")
        .host(host("a").with_clock(Jumping(AtomicUsize::new(0))))
        .build()
        .unwrap();
    let two = Wire::to(&api).candidate("b").build().unwrap();
    let term = one.acquire().await.unwrap();
    let waiting = tokio::spawn(async move { two.acquire().await.unwrap() });
    let mut last = String::new();
    for _ in 0..30 {
        pass(2 * SECOND).await;
        let renewed = Lease(&api).spec("renewTime").as_str().unwrap().to_owned();
        assert!(renewed > last, "{renewed} after {last}");
        last = renewed;
        assert!(term.gate().is_open() && !waiting.is_finished());
    }
    term.release().await;
    assert_eq!(waiting.await.unwrap().generation(), 1);
}

#[tokio::test(start_paused = true)]
async fn q8_a_leader_that_cannot_renew_stops_before_another_begins() {
    for fault in [Fault::Hangs, Fault::WritesUnanswered, Fault::Answers(503, ""), Fault::Answers(403, "{}")] {
        let api = Api::default();
        let wires = ["a", "b"].map(|_| Wire::to(&api));
        let [one, two] = [0, 1].map(|index| wires[index].candidate(["a", "b"][index]).build().unwrap());
        let term = one.acquire().await.unwrap();
        let next = tokio::spawn(async move { (two.acquire().await.unwrap(), Instant::now()) });
        pass(30 * SECOND).await;
        wires[0].set(fault);
        let failing = Instant::now();
        assert_eq!(term.lost().await, Loss::Expired);
        let closed = Instant::now();
        assert!(!term.gate().is_open());
        // The last good renewal was sent at most a retry period and a request before.
        let (least, most) = (Duration::from_millis(7_990), 10 * SECOND);
        let lasted = closed - failing;
        assert!((least..=most).contains(&lasted), "{lasted:?}");
        let (next, begun) = next.await.unwrap();
        // The lease lasts five seconds longer than the deadline.
        assert!(begun >= closed + 5 * SECOND, "{:?}", begun - closed);
        assert_eq!(next.generation(), 1);
        drop(term);
        assert!(next.gate().is_open());
    }
}

#[tokio::test(start_paused = true)]
async fn q8_a_short_outage_costs_nothing_and_is_shown() {
    let api = Api::default();
    let wire = Wire::to(&api);
    let election = wire.candidate("a").build().unwrap();
    let term = election.acquire().await.unwrap();
    let outages = [
        (Fault::Hangs, "no answer within 5s"),
        (Fault::WritesUnanswered, "no answer within 5s"),
        (Fault::Answers(500, ""), "HTTP status 500"),
        (Fault::Answers(429, ""), "HTTP status 429"),
        (Fault::Answers(401, ""), "HTTP status 401"),
        (Fault::Answers(403, ""), "is forbidden"),
    ];
    for (fault, expected) in outages {
        wire.set(fault);
        let shown = async {
            let mut changes = pin!(election.status_changes());
            loop {
                if let Some(problem) = changes.next().await.unwrap().problem {
                    return problem;
                }
            }
        };
        let outage = async {
            pass(2 * SECOND + SECOND / 2).await;
            wire.set(Fault::None);
        };
        let (problem, ()) = tokio::join!(shown, outage);
        assert!(problem.contains(expected), "{problem}");
        pass(6 * SECOND).await;
        assert_eq!((election.status().problem, term.gate().is_open()), (None, true));
    }
    assert!(wire.refreshed() > 0);
    assert_eq!((election.metrics().slow_renewals, term.generation()), (1, 0));
}

/// Issue 20: one refusal ended a candidate that waited, for good. A leader has always tolerated it.
#[tokio::test(start_paused = true)]
async fn q8_a_refusal_ends_no_candidate_that_has_seen_the_lease() {
    for code in [401, 403, 404, 422, 500, 503] {
        let api = Api::default();
        let wires = ["a", "b"].map(|_| Wire::to(&api));
        let [one, two] = [0, 1].map(|index| wires[index].candidate(["a", "b"][index]).build().unwrap());
        let term = one.acquire().await.unwrap();
        let statuses = two.status_changes();
        let next = tokio::spawn(async move { two.acquire().await });
        pass(4 * SECOND).await;
        wires[1].set(Fault::Answers(code, "{}"));
        let mut statuses = pin!(statuses);
        let shown = async { while statuses.next().await.unwrap().problem.is_none() {} };
        tokio::time::timeout(30 * SECOND, shown).await.expect("a problem is shown");
        assert!(!next.is_finished(), "{code}");
        wires[1].set(Fault::None);
        term.release().await;
        assert_eq!(next.await.unwrap().unwrap().generation(), 1, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn q8_a_stop_gives_the_lease_up() {
    let api = Api::default();
    let election = Wire::to(&api).candidate("a").build().unwrap();
    // Before an answer, in the middle of the acquisition, and as a leader.
    for millis in [0, 7, 12, 50, 3_000, 3_007] {
        let acquiring = {
            let election = election.clone();
            tokio::spawn(async move {
                let _term = election.acquire().await.unwrap();
                std::future::pending::<()>().await;
            })
        };
        pass(Duration::from_millis(millis)).await;
        acquiring.abort();
        pass(SECOND).await;
        let next = timeout(SECOND, Wire::to(&api).candidate("b").build().unwrap().acquire()).await;
        assert!(next.is_ok(), "not free after a stop at {millis} ms: {}", Lease(&api).get()["spec"]);
        next.unwrap().unwrap().release().await;
    }
    // By choice it expires instead.
    let election = Wire::to(&api).candidate("a").release_on_stop(false).build().unwrap();
    election.acquire().await.unwrap().release().await;
    let begin = Instant::now();
    let _term = Wire::to(&api).candidate("b").build().unwrap().acquire().await.unwrap();
    assert!(begin.elapsed() >= 15 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn q8_a_candidate_has_one_term_at_a_time() {
    let api = Api::default();
    let election = Wire::to(&api).candidate("a").build().unwrap();
    let first = election.acquire().await.unwrap();
    assert!(timeout(60 * SECOND, election.acquire()).await.is_err());
    assert!(first.gate().is_open());
    let gate = first.gate();
    drop(first);
    let second = election.acquire().await.unwrap();
    assert!(second.generation() == 1 && second.gate().is_open() && !gate.is_open());
    assert_eq!(format!("{second:?}"), "Term { generation: 1, gate: Gate(open), .. }");
}

#[tokio::test(start_paused = true)]
async fn q8_edits_of_the_lease_have_stated_effects() {
    let api = Api::default();
    let lease = Lease(&api);
    let election = Wire::to(&api).candidate("a").build().unwrap();
    let term = election.acquire().await.unwrap();

    let harmless: [fn(&mut Value); 3] = [
        |lease| lease["metadata"]["annotations"] = json!({ "note": "do not touch" }),
        |lease| lease["spec"]["leaseDurationSeconds"] = json!(2_000_000_000),
        |lease| lease["spec"]["renewTime"] = json!("2999-01-01T00:00:00.000000Z"),
    ];
    for edit in harmless {
        lease.edit(edit);
        pass(20 * SECOND).await;
        assert!(term.gate().is_open());
    }
    assert_eq!(lease.get()["metadata"]["annotations"]["note"], "do not touch");
    assert!(lease.spec("renewTime").as_str().unwrap() < "2999");
    assert_eq!(election.metrics().slow_renewals, 3);

    let taken: [fn(&mut Value); 4] = [
        |lease| lease["spec"]["holderIdentity"] = json!("b"),
        |lease| lease["spec"]["holderIdentity"] = json!(""),
        |lease| drop(lease.as_object_mut().unwrap().remove("spec")),
        |lease| lease["spec"]["leaseTransitions"] = json!(-5),
    ];
    let mut term = term;
    for edit in taken {
        lease.edit(edit);
        let edited = Instant::now();
        assert_eq!(term.lost().await, Loss::Taken);
        assert!(edited.elapsed() <= Duration::from_millis(2_010));
        drop(term);
        // Free again at the latest when the longest duration that was stated has passed.
        term = timeout(3_700 * SECOND, election.acquire()).await.unwrap().unwrap();
    }

    lease.delete();
    assert_eq!(term.lost().await, Loss::Deleted);
    let generation = term.generation();
    drop(term);
    assert_eq!(election.acquire().await.unwrap().generation(), generation + 1);
}

#[tokio::test(start_paused = true)]
async fn q8_a_lease_deleted_under_a_leader_is_not_taken_before_its_time() {
    let api = Api::default();
    let wires = ["a", "b"].map(|_| Wire::to(&api));
    let [one, two] = [0, 1].map(|index| wires[index].candidate(["a", "b"][index]).build().unwrap());
    let term = one.acquire().await.unwrap();
    let next = tokio::spawn(async move { two.acquire().await.unwrap() });
    pass(20 * SECOND).await;
    // The leader does not notice.
    wires[0].set(Fault::Hangs);
    Lease(&api).delete();
    let next = next.await.unwrap();
    assert!(!term.gate().is_open() && next.gate().is_open());
}

#[tokio::test(start_paused = true)]
async fn q8_what_waiting_does_not_cure_is_an_error() {
    let api = Api::default();
    let wire = Wire::to(&api);
    let election = wire.candidate("a").build().unwrap();
    let refusals = [
        (403, r#"{"kind":"Status","code":403,"message":"leases is forbidden: User \"x\" cannot get"}"#),
        (404, r#"{"kind":"Status","code":404,"message":"the server could not find the requested resource"}"#),
        (422, r#"{"kind":"Status","code":422,"message":"Lease is invalid"}"#),
        (
            200,
            r#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"cart"},"spec":{"renewTime":"secret"}}"#,
        ),
        (200, "<html>"),
    ];
    let mut errors = Vec::new();
    for (code, body) in refusals {
        wire.set(Fault::Answers(code, body));
        let error = election.acquire().await.unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
        errors.push(error);
    }
    assert!(
        errors[0].is_forbidden() && errors[0].to_string().contains("get, create and update"),
        "{}",
        errors[0]
    );
    assert!(errors[1].is_not_served(), "{}", errors[1]);
    assert_eq!(errors[2].api_status().unwrap().code, 422);
    assert!(errors[3].is_malformed() && errors[4].is_malformed());
    // It may be cured: the next call tries again.
    wire.set(Fault::None);
    election.acquire().await.unwrap().release().await;

    let elsewhere = Election::builder_with_transport(Wire::to(&api), "nowhere", "cart").build().unwrap();
    let error = elsewhere.acquire().await.unwrap_err();
    assert!(error.is_no_namespace(), "{error}");
}

#[tokio::test]
async fn q8_options_that_make_no_sense_are_refused() {
    let refused = |change: fn(
        informer_controller::election::ElectionBuilder,
    ) -> informer_controller::election::ElectionBuilder| {
        change(Wire::to(&Api::default()).candidate("a")).build().unwrap_err().to_string()
    };
    assert!(refused(|it| it.renew_deadline(15 * SECOND)).contains("lease duration"));
    assert!(refused(|it| it.identity("")).contains("identity"));
    for name in ["", "a/b", "a?b", "..", "A"] {
        let builder = Election::builder_with_transport(Wire::to(&Api::default()), "default", name);
        assert!(builder.build().unwrap_err().to_string().contains("not the name"), "{name}");
    }
    let wire = Wire::to(&Api::default());
    let built = std::thread::spawn(move || {
        Election::builder_with_transport(wire, "default", "cart").build().map(drop)
    });
    assert!(built.join().unwrap().unwrap_err().to_string().contains("tokio runtime"));
    // Unique by default.
    let identities = [0, 1].map(|_| {
        let wire = Wire::to(&Api::default());
        Election::builder_with_transport(wire, "default", "cart").build().unwrap().identity().to_owned()
    });
    assert_ne!(identities[0], identities[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn q8_a_leader_writes_over_tls_until_its_term_ends() {
    let server = TestApi::builder().tls().token("secret", "admin").start().await.unwrap();
    let election = Election::builder(server.config(), "default", "cart").build().unwrap();
    let term = election.acquire().await.unwrap();
    let maps: KubeApi<ConfigMap> = KubeApi::default_namespaced(term.client(server.config()).await.unwrap());
    let map = |name: &str| serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    maps.create(&PostParams::default(), &map("one")).await.unwrap();
    term.release().await;
    let refused = maps.create(&PostParams::default(), &map("two")).await.unwrap_err();
    assert!(is_not_leading(&refused), "{refused}");
    let log: Vec<_> = server.requests().all().iter().map(ToString::to_string).collect();
    // The candidate may renew its lease in between, on a slow machine.
    let writes: Vec<_> = log.iter().filter(|line| line.contains("/configmaps")).collect();
    assert!(writes.len() == 1 && writes[0].contains("CREATE"), "{log:#?}");
    assert!(log.last().is_some_and(|line| line.contains("UPDATE") && line.contains("/leases")), "{log:#?}");
}
