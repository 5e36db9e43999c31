//! Deliveries, step by step.

use expect_test::{Expect, expect};
use kubediff_delivery::{Answer, Delivery, Entry, Policy};
use std::time::Duration;

use crate::stage::play;

pub(crate) fn check(policy: Policy, script: &str, expected: &Expect) {
    expected.assert_eq(&play(policy, script));
}

#[test]
fn records_are_sent_in_batches_and_the_position_is_stored_once_they_are_accepted() {
    check(
        Policy { batch: 2, ..Policy::default() },
        "log a b c\n ok\n ok\n log a\n ok",
        &expect![[r#"
        > log a b c
          read 1..=3
          send [1, 2]
        > ok
          store 2
          send [3]
        > ok
          store 3
        > log a
          read 4..=4
          send [4]
        > ok
          store 4
    "#]],
    );
}

#[test]
fn a_large_record_is_sent_alone() {
    check(
        Policy { batch_bytes: 100, ..Policy::default() },
        "log a:60 b:60 c:500 d:10\n ok\n ok\n ok",
        &expect![[r#"
            > log a:60 b:60 c:500 d:10
              read 1..=4
              send [1]
            > ok
              store 1
              send [2]
            > ok
              store 2
              send [3]
            > ok
              store 3
              send [4]
        "#]],
    );
}

#[test]
fn a_sink_that_is_down_is_tried_ever_more_slowly_and_loses_nothing() {
    check(
        Policy { longest_wait: Duration::from_secs(4), ..Policy::default() },
        "log a
         down
         later 1s
         down
         later 2s
         down
         later 4s
         down
         later 4s
         ok",
        &expect![[r#"
            > log a
              read 1..=1
              send [1]
            > down
              wait until 1 s
            > later 1s
              send [1]
            > down
              wait until 3 s
            > later 2s
              send [1]
            > down
              wait until 7 s
            > later 4s
              send [1]
            > down
              wait until 10 s
            > later 4s
              send [1]
            > ok
              store 1
        "#]],
    );
}

#[test]
fn a_wait_that_the_sink_asks_for_is_kept_within_bounds() {
    check(
        Policy { longest_asked_wait: Duration::from_secs(60), ..Policy::default() },
        "log a
         busy 30s
         later 29s
         later 1s
         busy 9000s
         later 60s
         ok",
        &expect![[r#"
            > log a
              read 1..=1
              send [1]
            > busy 30s
              wait until 30 s
            > later 29s
              wait until 30 s
            > later 1s
              send [1]
            > busy 9000s
              wait until 90 s
            > later 60s
              send [1]
            > ok
              store 1
        "#]],
    );
}

#[test]
fn wrong_credentials_are_no_records_fault() {
    check(
        Policy { failures: 1, ..Policy::default() },
        "log a b
         closed
         later 1s
         closed
         later 2s
         ok
         later 1s
         ok",
        &expect![[r#"
            > log a b
              read 1..=2
              send [1, 2]
            > closed
              wait until 1 s
            > later 1s
              send [1]
            > closed
              wait until 3 s
            > later 2s
              send [2]
            > ok
              wait until 4 s
            > later 1s
              send [1]
            > ok
              store 2
        "#]],
    );
}

#[test]
fn a_refused_batch_is_split_until_the_record_that_is_refused_is_alone() {
    check(
        Policy { refusals: 2, ..Policy::default() },
        "log a b c d
         refuse
         ok
         refuse
         refuse
         ok
         later 1s
         refuse
         log c c
         ok",
        &expect![[r#"
            > log a b c d
              read 1..=4
              send [1, 2, 3, 4]
            > refuse
              send [1, 2]
            > ok
              store 2
              send [3, 4]
            > refuse
              send [3]
            > refuse
              send [4]
            > ok
              wait until 1 s
            > later 1s
              send [3]
            > refuse
              store 4, dead 3 (413)
            > log c c
              read 5..=6
              send [5, 6], before 5 lacks [3]
            > ok
              store 6
        "#]],
    );
}

#[test]
fn later_records_of_an_object_wait_for_one_that_is_refused_and_others_do_not() {
    check(
        Policy { batch: 1, refusals: 2, ..Policy::default() },
        "log a a b
         refuse
         ok
         later 1s
         refuse
         ok
         log a
         ok",
        &expect![[r#"
            > log a a b
              read 1..=3
              send [1]
            > refuse
              send [3]
            > ok
              wait until 1 s
            > later 1s
              send [1]
            > refuse
              store 1, dead 1 (413)
              send [2], before 2 lacks [1]
            > ok
              store 3
            > log a
              read 4..=4
              send [4]
            > ok
              store 4
        "#]],
    );
}

#[test]
fn a_record_that_the_sink_always_fails_with_is_told_from_a_sink_that_is_down() {
    check(
        Policy { batch: 1, refusals: 1, failures: 2, ..Policy::default() },
        "log a b
         down 500
         later 1s
         down 500
         later 2s
         ok",
        &expect![[r#"
            > log a b
              read 1..=2
              send [1]
            > down 500
              wait until 1 s
            > later 1s
              send [1]
            > down 500
              wait until 3 s
            > later 2s
              send [2]
            > ok
              store 2, dead 1 (500, 2 times in a row)
        "#]],
    );
}

#[test]
fn if_the_other_record_fails_too_the_sink_is_down() {
    check(
        Policy { batch: 1, refusals: 1, failures: 2, ..Policy::default() },
        "log a b
         down
         later 1s
         down
         later 2s
         down
         later 4s
         ok
         ok",
        &expect![[r#"
            > log a b
              read 1..=2
              send [1]
            > down
              wait until 1 s
            > later 1s
              send [1]
            > down
              wait until 3 s
            > later 2s
              send [2]
            > down
              wait until 7 s
            > later 4s
              send [1]
            > ok
              store 1
              send [2]
            > ok
              store 2
        "#]],
    );
}

#[test]
fn a_dead_letter_is_sent_again_late_and_can_be_one_again() {
    check(
        Policy { batch: 1, refusals: 1, ..Policy::default() },
        "log a b a
         refuse
         later 1s
         ok
         refuse
         ok
         resend 1
         refuse
         resend 1
         ok",
        &expect![[r#"
            > log a b a
              read 1..=3
              send [1]
            > refuse
              wait until 1 s
            > later 1s
              send [2]
            > ok
              send [1]
            > refuse
              store 2, dead 1 (413)
              send [3], before 3 lacks [1]
            > ok
              store 3
            > resend 1
              send late [1]
            > refuse
              store 3, dead 1 (413)
            > resend 1
              send late [1]
            > ok
              store 3, resent 1
        "#]],
    );
}

#[test]
fn a_late_record_that_the_sink_fails_with_does_not_hold_up_the_others_for_ever() {
    check(
        Policy { batch: 1, refusals: 2, ..Policy::default() },
        "log a b a
         refuse
         ok
         later 1s
         refuse
         ok
         resend 1
         down
         later 1s
         down
         log b
         ok",
        &expect![[r#"
            > log a b a
              read 1..=3
              send [1]
            > refuse
              send [2]
            > ok
              wait until 1 s
            > later 1s
              send [1]
            > refuse
              store 2, dead 1 (413)
              send [3], before 3 lacks [1]
            > ok
              store 3
            > resend 1
              send late [1]
            > down
              wait until 2 s
            > later 1s
              send late [1]
            > down
              store 3, dead 1 (500)
            > log b
              read 4..=4
              send [4]
            > ok
              store 4
        "#]],
    );
}

#[test]
fn who_is_far_behind_gets_digests() {
    check(
        Policy { batch: 1, digest_beyond: Some(3), pace: Duration::from_secs(1), ..Policy::default() },
        "log a b
         ok
         later 1s
         ok
         log a b c d e
         later 1s
         ok
         log f
         later 1s
         ok",
        &expect![[r#"
            > log a b
              read 1..=2
              send [1]
            > ok
              store 1
              wait until 1 s
            > later 1s
              send [2]
            > ok
              store 2
              wait until 2 s
            > log a b c d e
              read 3..=7
              wait until 2 s
            > later 1s
              send digest [3, 4, 5, 6, 7]
            > ok
              store 7
              wait until 3 s
            > log f
              read 8..=8
              wait until 3 s
            > later 1s
              send [8]
            > ok
              store 8
              wait until 4 s
        "#]],
    );
}

#[test]
fn memory_is_bounded_by_records_and_by_bytes() {
    check(
        Policy { window: 2, window_bytes: 50, ..Policy::default() },
        "log a b c:60 d:10 e:40 f:10\n ok\n ok\n ok\n ok",
        &expect![[r#"
            > log a b c:60 d:10 e:40 f:10
              read 1..=2
              send [1, 2]
            > ok
              store 2
              read 3..=3
              send [3]
            > ok
              store 3
              read 4..=5
              send [4, 5]
            > ok
              store 5
              read 6..=6
              send [6]
            > ok
              store 6
        "#]],
    );
}

#[test]
fn a_delivery_names_what_was_missing_before_it_started() {
    let now = std::time::Instant::now();
    let mut delivery = Delivery::new(Policy::default(), 1, 5);
    delivery.remember_missing(7, 4);
    delivery.grown(6);
    delivery.next(now);
    delivery.read([Entry { number: 6, object: 7, namespace: 0, bytes: 1 }], 6).expect("in order");
    let kubediff_delivery::Action::Send(batch) = delivery.next(now) else { panic!("nothing is sent") };
    assert_eq!(batch.missing, [(6, vec![4])]);
}

#[test]
fn what_a_sink_does_not_want_moves_the_position_all_the_same() {
    let now = std::time::Instant::now();
    let mut delivery = Delivery::new(Policy::default(), 1, 0);
    delivery.grown(100);
    delivery.next(now);
    delivery.read([Entry { number: 10, object: 1, namespace: 0, bytes: 1 }], 100).expect("in order");
    assert_eq!((delivery.position(), delivery.behind()), (9, 91));
    while !matches!(delivery.next(now), kubediff_delivery::Action::Send(_)) {}
    delivery.answered(Answer::Accepted, now);
    assert_eq!((delivery.position(), delivery.behind()), (100, 0));
}

#[test]
fn records_out_of_order_are_an_error_that_names_them() {
    let mut delivery = Delivery::new(Policy::default(), 1, 5);
    let entry = |number| Entry { number, object: 1, namespace: 0, bytes: 1 };
    let error = delivery.read([entry(7), entry(6)], 7).expect_err("7 comes before 6");
    expect!["record 6 was read after record 7: records must be read in their order"]
        .assert_eq(&error.to_string());
}

#[test]
fn each_http_status_has_its_meaning() {
    let minute = Some(Duration::from_secs(60));
    let mut said = String::new();
    for status in [200, 202, 204, 301, 400, 401, 403, 404, 408, 410, 413, 422, 425, 429, 500, 502, 503, 504] {
        said += &format!("{status} {:?}\n", Answer::of_http(status, None));
    }
    said += &format!("503 with Retry-After: {:?}\n", Answer::of_http(503, minute));
    said += &format!("429 with Retry-After: {:?}\n", Answer::of_http(429, minute));
    expect![[r#"
        200 Accepted
        202 Accepted
        204 Accepted
        301 Unavailable { reason: "301" }
        400 Refused { reason: "400" }
        401 Unavailable { reason: "401" }
        403 Unavailable { reason: "403" }
        404 Unavailable { reason: "404" }
        408 Unavailable { reason: "408" }
        410 Unavailable { reason: "410" }
        413 Refused { reason: "413" }
        422 Refused { reason: "422" }
        425 Unavailable { reason: "425" }
        429 Busy { wait: None }
        500 Unavailable { reason: "500" }
        502 Unavailable { reason: "502" }
        503 Unavailable { reason: "503" }
        504 Unavailable { reason: "504" }
        503 with Retry-After: Busy { wait: Some(60s) }
        429 with Retry-After: Busy { wait: Some(60s) }
    "#]]
    .assert_eq(&said);
}
