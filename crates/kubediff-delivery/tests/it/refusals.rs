//! The steps of a delivery whose sink refuses everything.

use std::time::Duration;

use expect_test::expect;
use kubediff_delivery::Policy;

use crate::scripts::check;

/// Issue 19, attack 9: a receiver that answers 400 for a minute.
#[test]
fn k6_a_sink_that_refuses_every_record_is_tried_ever_more_slowly_and_costs_no_dead_letter() {
    check(
        Policy { batch: 2, refusals: 1, ..Policy::default() },
        "log a b c d
         refuse
         refuse
         refuse
         later 1s
         refuse
         later 2s
         refuse
         later 4s
         ok
         ok",
        &expect![[r#"
            > log a b c d
              read 1..=4
              send [1, 2]
            > refuse
              send [1]
            > refuse
              wait until 1 s
            > refuse
              wait until 1 s
            > later 1s
              send [2]
            > refuse
              wait until 3 s
            > later 2s
              send [3]
            > refuse
              wait until 6 s
            > later 4s
              send [4]
            > ok
              send [1]
            > ok
              store 1
              send [2]
        "#]],
    );
}

/// The second attack: a dead letter of such a time came late, after younger records of its object.
#[test]
fn k6_the_records_of_an_object_stay_in_order_when_a_sink_has_refused_everything() {
    check(
        Policy { batch: 1, refusals: 2, ..Policy::default() },
        "log a a b
         refuse
         refuse
         later 1s
         refuse
         later 2s
         refuse
         later 4s
         ok
         ok
         ok",
        &expect![[r#"
            > log a a b
              read 1..=3
              send [1]
            > refuse
              send [3]
            > refuse
              wait until 1 s
            > later 1s
              send [1]
            > refuse
              wait until 3 s
            > later 2s
              send [3]
            > refuse
              wait until 6 s
            > later 4s
              send [1]
            > ok
              store 1
              send [2]
            > ok
              store 2
              send [3]
            > ok
              store 3
        "#]],
    );
}

/// One object alone: it is not known whether the sink would take others.
#[test]
fn k6_a_sink_that_has_one_record_and_refuses_it_gives_it_up_after_long() {
    check(
        Policy { batch: 1, refusals: 2, longest_refusal: Duration::from_secs(60), ..Policy::default() },
        "log a a
         refuse
         later 1s
         refuse
         later 60s
         refuse
         later 2s
         ok",
        &expect![[r#"
            > log a a
              read 1..=2
              send [1]
            > refuse
              wait until 1 s
            > later 1s
              send [1]
            > refuse
              wait until 2 s
            > later 60s
              send [1]
            > refuse
              store 1, dead 1 (413)
              send [2], before 2 lacks [1]
            > later 2s
            > ok
              store 2
        "#]],
    );
}

/// The second attack: after a restart within such a time, dead letters from before are refused before the new process knows it.
#[test]
fn k6_a_dead_letter_that_is_refused_before_anything_was_accepted_is_sent_again() {
    check(
        Policy { batch: 1, refusals: 1, ..Policy::default() },
        "log a
         ok
         restart
         resend 1
         refuse
         later 1s
         refuse
         log b
         refuse
         later 1s
         ok
         ok",
        &expect![[r#"
            > log a
              read 1..=1
              send [1]
            > ok
              store 1
            > restart
            > resend 1
              send late [1]
            > refuse
              wait until 1 s
            > later 1s
              send late [1]
            > refuse
              wait until 3 s
            > log b
              read 2..=2
              send [2]
            > refuse
              wait until 2 s
            > later 1s
              send [2]
            > ok
              store 2
              send late [1]
            > ok
              store 2, resent 1
        "#]],
    );
}
