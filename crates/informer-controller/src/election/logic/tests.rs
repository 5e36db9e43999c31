//! One candidate, step by step: input, expected command.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;

/// Milliseconds.
fn at(millis: u64) -> Time {
    Time::from_start(Duration::from_millis(millis))
}

fn wall(millis: u64) -> MicroTime {
    MicroTime::new(
        jiff::Timestamp::from_millisecond(1_800_000_000_000 + i64::try_from(millis).unwrap()).unwrap(),
    )
}

fn lease(version: u64, spec: Value) -> Lease {
    let metadata = json!({ "name": "cart", "namespace": "shop", "resourceVersion": version.to_string() });
    let object = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec });
    serde_json::from_value(object).unwrap()
}

fn held_by(holder: &str, version: u64) -> Lease {
    lease(version, json!({ "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 4 }))
}

/// A candidate with the default durations, and the server's last version of the lease.
struct Script {
    candidate: Candidate,
    version: u64,
}

impl Script {
    fn new() -> Self {
        Self { candidate: Candidate::new("cart", "a", Timing::default(), 7), version: 100 }
    }

    /// A candidate whose first term began with a request at 0 that was answered at 100.
    fn leading() -> Self {
        let mut script = Self::new();
        assert_eq!(script.wakes(0), Command::Send(Request::Get));
        let create = script.answered(0, 0, Answer::NotFound);
        assert_eq!(script.stored(create, 0, 100), Command::Wait(at(2_000)));
        assert_eq!(script.candidate.deadline(), Some(at(10_000)));
        script
    }

    fn wakes(&mut self, now: u64) -> Command {
        self.candidate.wake(at(now), wall(now))
    }

    fn answered(&mut self, sent: u64, now: u64, answer: Answer) -> Command {
        self.candidate.answered(at(sent), at(now), wall(now), answer)
    }

    /// The server stores what the command sends.
    fn stored(&mut self, command: Command, sent: u64, now: u64) -> Command {
        let stored = self.store(command);
        self.answered(sent, now, Answer::Lease(stored))
    }

    fn store(&mut self, command: Command) -> Lease {
        let Command::Send(Request::Create(lease) | Request::Update(lease)) = command else {
            panic!("not a write: {command:?}")
        };
        self.version += 1;
        let mut object = serde_json::to_value(lease).unwrap();
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        serde_json::from_value(object).unwrap()
    }
}

/// The spec and the version of a write.
fn written(command: &Command) -> (Value, Value) {
    let Command::Send(Request::Create(lease) | Request::Update(lease)) = command else {
        panic!("not a write: {command:?}")
    };
    let object = serde_json::to_value(lease).unwrap();
    (object["spec"].clone(), object["metadata"]["resourceVersion"].clone())
}

/// Whether the command is to wait for a random time from `from` on, within the stated range.
fn is_look(command: &Command, from: u64) -> bool {
    matches!(command, Command::Wait(until) if (at(from + 1_000)..=at(from + 2_000)).contains(until))
}

#[test]
fn q8_a_missing_lease_is_created_and_renewed() {
    let mut script = Script::new();
    assert_eq!(script.wakes(0), Command::Send(Request::Get));
    let create = script.answered(0, 50, Answer::NotFound);
    let expected = json!({
        "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0,
        "acquireTime": "2027-01-15T08:00:00.050000Z", "renewTime": "2027-01-15T08:00:00.050000Z",
    });
    assert_eq!(written(&create), (expected, Value::Null));
    assert_eq!(script.candidate.deadline(), None);
    assert_eq!(script.stored(create, 50, 90), Command::Wait(at(2_050)));
    assert_eq!(script.candidate.deadline(), Some(at(10_050)));

    let renewal = script.wakes(2_050);
    let (spec, version) = written(&renewal);
    assert_eq!(version, "101");
    assert_eq!(spec["renewTime"], "2027-01-15T08:00:02.050000Z");
    assert_eq!(spec["acquireTime"], "2027-01-15T08:00:00.050000Z");
    script.stored(renewal, 2_050, 2_060);
    assert_eq!(script.candidate.deadline(), Some(at(12_050)));
}

#[test]
fn q8_a_renewal_counts_from_its_sending() {
    let mut script = Script::leading();
    let renewal = script.wakes(2_000);
    assert_eq!(script.stored(renewal, 2_000, 9_999), Command::Wait(at(9_999)));
    assert_eq!(script.candidate.deadline(), Some(at(12_000)));
}

#[test]
fn q8_a_renewal_that_is_answered_too_late_ends_the_term() {
    let mut script = Script::leading();
    let renewal = script.wakes(2_000);
    assert_eq!(script.stored(renewal, 2_000, 10_000), Command::Lost(Loss::Expired));
    assert_eq!(script.candidate.deadline(), None);
    // The lease is this candidate's, so it may begin a new term at once.
    assert_eq!(script.wakes(10_000), Command::Send(Request::Get));
}

#[test]
fn q8_a_lease_that_was_taken_too_long_ago_is_taken_again() {
    let mut script = Script::new();
    script.wakes(0);
    let create = script.answered(0, 0, Answer::NotFound);
    let stored = script.store(create);
    // The process was frozen for longer than the renew deadline.
    assert_eq!(script.answered(0, 12_000, Answer::Lease(stored.clone())), Command::Send(Request::Get));
    let again = script.answered(12_000, 12_001, Answer::Lease(stored));
    let (spec, version) = written(&again);
    assert_eq!((&spec["leaseTransitions"], version), (&json!(1), json!("101")));
    script.stored(again, 12_001, 12_002);
    assert_eq!(script.candidate.deadline(), Some(at(22_001)));
}

#[test]
fn q8_a_held_lease_is_taken_when_its_record_has_not_changed_for_its_duration() {
    let mut script = Script::new();
    script.wakes(0);
    assert!(is_look(&script.answered(0, 10, Answer::Lease(held_by("b", 5))), 10));
    script.wakes(4_000);
    // Renewed: another record.
    let renewed =
        lease(6, json!({ "holderIdentity": "b", "leaseDurationSeconds": 15, "leaseTransitions": 5 }));
    assert!(is_look(&script.answered(4_000, 4_010, Answer::Lease(renewed.clone())), 4_010));
    script.wakes(18_000);
    // The wait ends when the lease is free, and not later.
    let wait = script.answered(18_000, 18_500, Answer::Lease(renewed.clone()));
    assert_eq!(wait, Command::Wait(at(19_010)));
    script.wakes(19_010);
    let take = script.answered(19_010, 19_020, Answer::Lease(renewed));
    let (spec, version) = written(&take);
    assert_eq!((&spec["holderIdentity"], &spec["leaseTransitions"]), (&json!("a"), &json!(6)));
    assert_eq!(version, "6");
    // Somebody else was faster.
    assert!(is_look(&script.answered(19_020, 19_030, Answer::Conflict), 19_030));
    assert_eq!(script.candidate.deadline(), None);
}

#[test]
fn q8_a_released_lease_is_free() {
    let mut script = Script::new();
    script.wakes(0);
    let released =
        lease(5, json!({ "holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 4 }));
    let take = script.answered(0, 10, Answer::Lease(released));
    assert_eq!(written(&take).0["leaseTransitions"], 5);
}

#[test]
fn q8_a_lease_with_the_same_identity_is_somebody_elses() {
    let mut script = Script::new();
    script.wakes(0);
    assert!(is_look(&script.answered(0, 10, Answer::Lease(held_by("a", 5))), 10));
    script.wakes(15_010);
    let take = script.answered(15_010, 15_020, Answer::Lease(held_by("a", 5)));
    assert_eq!(written(&take).0["leaseTransitions"], 5);
}

#[test]
fn q8_a_lost_answer_to_a_renewal_costs_nothing() {
    let mut script = Script::leading();
    let renewal = script.wakes(2_000);
    let stored = script.store(renewal);
    assert_eq!(script.answered(2_000, 7_000, Answer::Unknown), Command::Wait(at(7_000)));
    script.wakes(7_000);
    assert_eq!(script.answered(7_000, 7_010, Answer::Conflict), Command::Send(Request::Get));
    let again = script.answered(7_010, 7_020, Answer::Lease(stored));
    assert_eq!(written(&again).1, "102");
    script.stored(again, 7_020, 7_030);
    assert_eq!(script.candidate.deadline(), Some(at(17_020)));
    assert_eq!(script.candidate.slow_renewals(), 1);
}

#[test]
fn q8_a_lost_answer_to_the_acquisition_is_found_out() {
    let mut script = Script::new();
    script.wakes(0);
    let create = script.answered(0, 0, Answer::NotFound);
    let stored = script.store(create);
    assert!(is_look(&script.answered(0, 5_000, Answer::Unknown), 5_000));
    script.wakes(8_000);
    let again = script.answered(8_000, 8_010, Answer::Lease(stored));
    assert_eq!(written(&again).1, "101");
    script.stored(again, 8_010, 8_020);
    assert_eq!(script.candidate.deadline(), Some(at(18_010)));
}

#[test]
fn q8_a_lease_that_another_has_taken_ends_the_term() {
    let mut script = Script::leading();
    script.wakes(2_000);
    assert_eq!(script.answered(2_000, 2_010, Answer::Conflict), Command::Send(Request::Get));
    let lost = script.answered(2_010, 2_020, Answer::Lease(held_by("b", 102)));
    assert_eq!(lost, Command::Lost(Loss::Taken));
    assert_eq!(script.candidate.deadline(), None);
    // The new holder has its whole time.
    script.wakes(2_020);
    assert!(is_look(&script.answered(2_020, 2_030, Answer::Lease(held_by("b", 102))), 2_030));
}

#[test]
fn q8_a_lease_that_a_process_with_the_same_identity_has_taken_ends_the_term() {
    let mut script = Script::leading();
    script.wakes(2_000);
    script.answered(2_000, 2_010, Answer::Conflict);
    let lost = script.answered(2_010, 2_020, Answer::Lease(held_by("a", 102)));
    assert_eq!(lost, Command::Lost(Loss::Taken));
}

#[test]
fn q8_a_deleted_lease_ends_the_term() {
    let mut script = Script::leading();
    script.wakes(2_000);
    assert_eq!(script.answered(2_000, 2_010, Answer::NotFound), Command::Lost(Loss::Deleted));
    script.wakes(2_010);
    let create = script.answered(2_010, 2_020, Answer::NotFound);
    // The number of the term goes on.
    assert_eq!(written(&create).0["leaseTransitions"], 1);
}

#[test]
fn q8_a_lease_deleted_under_another_leader_is_left_alone_until_it_would_have_expired() {
    let mut script = Script::new();
    script.wakes(0);
    script.answered(0, 10, Answer::Lease(held_by("b", 5)));
    script.wakes(3_000);
    assert!(is_look(&script.answered(3_000, 3_010, Answer::NotFound), 3_010));
    script.wakes(15_010);
    let create = script.answered(15_010, 15_020, Answer::NotFound);
    assert_eq!(written(&create).0["leaseTransitions"], 5);
}

#[test]
fn q8_a_lease_cleared_by_hand_is_left_alone_until_it_would_have_expired() {
    let cleared = [
        json!(null),
        json!({}),
        json!({ "holderIdentity": "", "leaseDurationSeconds": 15, "leaseTransitions": 4 }),
        json!({ "holderIdentity": "", "leaseDurationSeconds": -3 }),
    ];
    for spec in cleared {
        let mut script = Script::new();
        script.wakes(0);
        script.answered(0, 10, Answer::Lease(held_by("b", 5)));
        script.wakes(3_000);
        let left_alone = script.answered(3_000, 3_010, Answer::Lease(lease(6, spec.clone())));
        assert!(is_look(&left_alone, 3_010), "{spec}: {left_alone:?}");
        script.wakes(18_010);
        let take = script.answered(18_010, 18_020, Answer::Lease(lease(6, spec)));
        assert_eq!(written(&take).0["holderIdentity"], "a");
    }
    // A lease that never had a holder is free.
    let mut script = Script::new();
    script.wakes(0);
    let take = script.answered(0, 10, Answer::Lease(lease(5, json!(null))));
    assert_eq!(written(&take).0["holderIdentity"], "a");
}

#[test]
fn q8_absurd_durations_and_times_are_bounded() {
    let expected = [
        (json!(null), 15_000),
        (json!(0), 15_000),
        (json!(-7), 15_000),
        (json!(2), 2_000),
        (json!(40), 40_000),
        (json!(2_000_000_000), 3_600_000),
    ];
    for (seconds, free_after) in expected {
        let mut script = Script::new();
        let spec = json!({
            "holderIdentity": "b", "leaseDurationSeconds": seconds, "leaseTransitions": i32::MAX,
            "acquireTime": "9999-01-01T00:00:00.000000Z", "renewTime": "9999-01-01T00:00:00.000000Z",
        });
        script.wakes(0);
        script.answered(0, 0, Answer::Lease(lease(5, spec.clone())));
        let early = script.answered(free_after - 1, free_after - 1, Answer::Lease(lease(5, spec.clone())));
        assert_eq!(early, Command::Wait(at(free_after)), "{seconds}");
        let take = script.answered(free_after, free_after, Answer::Lease(lease(5, spec)));
        let spec = written(&take).0;
        assert_eq!(
            (&spec["holderIdentity"], &spec["leaseTransitions"]),
            (&json!("a"), &json!(0)),
            "{seconds}"
        );
        assert!(spec["renewTime"].as_str().unwrap().starts_with("2027-"), "{spec}");
    }
}

#[test]
fn q8_what_others_change_beside_the_record_is_kept() {
    let mut script = Script::leading();
    let renewal = script.wakes(2_000);
    let mut object = serde_json::to_value(script.store(renewal)).unwrap();
    object["metadata"]["annotations"] = json!({ "note": "do not touch" });
    object["metadata"]["resourceVersion"] = "200".into();
    let changed: Lease = serde_json::from_value(object).unwrap();
    assert_eq!(script.answered(2_000, 2_010, Answer::Conflict), Command::Send(Request::Get));
    let again = script.answered(2_010, 2_020, Answer::Lease(changed));
    let Command::Send(Request::Update(lease)) = &again else { panic!("{again:?}") };
    let object = serde_json::to_value(lease).unwrap();
    assert_eq!(object["metadata"]["annotations"]["note"], "do not touch");
    assert_eq!(object["metadata"]["resourceVersion"], "200");
    // One further look per renewal: somebody who writes all the time does not make this a loop.
    assert_eq!(script.answered(2_020, 2_030, Answer::Conflict), Command::Wait(at(4_020)));
}

#[test]
fn q8_the_dates_rise_when_the_wall_clock_goes_back() {
    let mut script = Script::leading();
    let mut before = String::new();
    for step in 1..5u64 {
        let now = at(step * 2_000);
        // It goes back by a day, and stands still.
        let jumped = MicroTime::new("2027-01-14T08:00:00Z".parse().unwrap());
        let renewal = script.candidate.wake(now, jumped);
        let renewed = written(&renewal).0["renewTime"].as_str().unwrap().to_owned();
        assert!(renewed > before, "{renewed} after {before}");
        before = renewed;
        script.stored(renewal, step * 2_000, step * 2_000 + 5);
    }
    assert_eq!(script.candidate.deadline(), Some(at(18_000)));
}

#[test]
fn q8_a_release_clears_the_holder_and_nothing_else() {
    let mut script = Script::leading();
    let release = script.candidate.release(wall(3_000));
    assert_eq!(script.candidate.deadline(), None);
    let expected = json!({
        "holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 0,
        "acquireTime": "2027-01-15T08:00:03.000000Z", "renewTime": "2027-01-15T08:00:03.000000Z",
    });
    assert_eq!(written(&release), (expected, json!("101")));
    assert_eq!(script.stored(release, 3_000, 3_010), Command::Done);
    assert_eq!(script.candidate.seen(), Some((0, None)));
    // Nothing is left to release.
    assert_eq!(script.candidate.release(wall(3_020)), Command::Done);
}

#[test]
fn q8_a_release_that_races_with_a_renewal_looks_again() {
    let mut script = Script::leading();
    let renewal = script.wakes(2_000);
    let stored = script.store(renewal);
    // The renewal was carried out, its answer was not awaited.
    script.candidate.release(wall(2_005));
    assert_eq!(script.answered(2_005, 2_010, Answer::Conflict), Command::Send(Request::Get));
    let release = script.answered(2_010, 2_020, Answer::Lease(stored));
    assert_eq!(written(&release), (written(&release).0, json!("102")));
    assert_eq!(written(&release).0["holderIdentity"], "");
    // Another candidate's lease is not touched.
    assert_eq!(script.answered(2_020, 2_030, Answer::Conflict), Command::Send(Request::Get));
    assert_eq!(script.answered(2_030, 2_040, Answer::Lease(held_by("b", 9))), Command::Done);
}

#[test]
fn q8_a_campaign_that_is_dropped_releases_what_it_may_have_taken() {
    let mut script = Script::new();
    assert_eq!(script.candidate.release(wall(0)), Command::Done);
    script.wakes(0);
    let create = script.answered(0, 0, Answer::NotFound);
    let stored = script.store(create);
    assert_eq!(script.candidate.release(wall(10)), Command::Send(Request::Get));
    let release = script.answered(10, 20, Answer::Lease(stored));
    assert_eq!(written(&release).0["holderIdentity"], "");
}
