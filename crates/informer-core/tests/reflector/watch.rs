//! Contract group W.

use std::time::Duration;

use expect_test::expect;
use informer_core::Time;
use informer_core::internals::ListMeta;
use informer_core::reflector::{Input, Output, Reflector, ReflectorConfig, Request};

use crate::script::{Play, play, play_with};

/// A cache with `a@5` at version 10, and a watch.
pub(crate) fn watching(script: &str) -> String {
    let mut play = Play::new(ReflectorConfig::default());
    let record = play.skip("start\nitems a@5\ndone rv=10\naccept");
    assert!(record.contains("live"));
    play.script(script);
    play.into_record()
}

#[test]
fn w1_events_apply_in_order_and_the_last_version_is_the_last_event_s() {
    expect![[r#"
        > added b@11
          + b@11
        > modified a@12
          ~ a@5 -> a@12
        > deleted b@13
          - b@13
        > bookmark 20
        > cache
          a@12 at "20"
        > +2s
        > end
          disconnected: the server ended the watch
          WATCH rv="20"
    "#]]
    .assert_eq(&watching(
        "added b@11
         modified a@12
         deleted b@13
         bookmark 20
         cache
         +2s
         end",
    ));
}

#[test]
fn w2_the_timeout_is_random_between_m_and_2m_and_m_is_at_least_five_minutes() {
    for (asked, shortest) in [(0, 300), (1, 300), (300, 300), (1800, 1800)] {
        let config = ReflectorConfig { min_watch_timeout: Duration::from_secs(asked), ..Default::default() };
        let mut seen = Vec::new();
        for seed in 0..200 {
            let mut reflector = Reflector::new(config.clone(), seed);
            reflector.handle(Time::ZERO, Input::Start);
            reflector.handle(
                Time::ZERO,
                Input::ListEnd(ListMeta { resource_version: "1".into(), ..Default::default() }),
            );
            while let Some(output) = reflector.poll_output() {
                if let Output::Send(Request::Watch(watch)) = output {
                    seen.push(watch.timeout_seconds);
                }
            }
        }
        assert!(seen.iter().all(|seconds| (shortest..=2 * shortest).contains(seconds)), "{asked}: {seen:?}");
        assert!(seen.iter().max() > seen.iter().min(), "{asked}: always the same");
    }
}

#[test]
fn w3_a_clean_end_is_followed_at_once_by_a_watch_from_the_last_version() {
    expect![[r#"
        > +1m
        > added b@11
          + b@11
        > +2m
        > bookmark 17
        > end
          disconnected: the server ended the watch
          WATCH rv="17"
    "#]]
    .assert_eq(&watching(
        "+1m
         added b@11
         +2m
         bookmark 17
         end",
    ));
}

#[test]
fn w4_a_watch_that_ends_at_once_without_an_event_is_a_failure() {
    expect![[r#"
        > +900ms
        > end
          disconnected: the watch ended almost at once, without an event
          retrying 1: the watch ended almost at once, without an event
        > deadline
          WATCH rv="10"
        > accept
          live since resourceVersion 10
        > end
          disconnected: the watch ended almost at once, without an event
          retrying 2: the watch ended almost at once, without an event
        > deadline
          WATCH rv="10"
        > accept
          live since resourceVersion 10
        > end
          disconnected: the watch ended almost at once, without an event
          retrying 3: the watch ended almost at once, without an event
        > deadline
          connecting
          LIST rv="10"
    "#]]
    .assert_eq(&watching(
        "+900ms
         end
         deadline
         accept
         end
         deadline
         accept
         end
         deadline",
    ));
}

#[test]
fn w4_so_is_one_that_ends_after_one_event_time_and_again() {
    expect![[r#"
        > added b@11
          + b@11
        > end
          disconnected: the server ended the watch
          WATCH rv="11"
        > accept
          live since resourceVersion 11
        > added c@12
          + c@12
        > end
          disconnected: the watch ended almost at once, without an event
          retrying 1: the watch ended almost at once, without an event
        > deadline
          WATCH rv="12"
        > accept
          live since resourceVersion 12
        > +2s
        > end
          disconnected: the server ended the watch
          WATCH rv="12"
    "#]]
    .assert_eq(&watching(
        "added b@11
         end
         accept
         added c@12
         end
         deadline
         accept
         +2s
         end",
    ));
}

#[test]
fn w5_refused_connections_and_429_are_retried_without_a_list() {
    expect![[r#"
        > +5s
        > end
          disconnected: the server ended the watch
          WATCH rv="10"
        > unreachable connection refused
          disconnected: the server cannot be reached: connection refused
          retrying 1: the server cannot be reached: connection refused
        > deadline
          WATCH rv="10"
        > refuse 429 TooManyRequests
          disconnected: the server refused: 429 TooManyRequests
          retrying 2: the server refused: 429 TooManyRequests
        > deadline
          WATCH rv="10"
        > accept
          live since resourceVersion 10
        > error 429 TooManyRequests
          cancel
          disconnected: the watch ended with an error: 429 TooManyRequests
          retrying 3: the watch ended with an error: 429 TooManyRequests
        > deadline
          WATCH rv="10"
    "#]]
    .assert_eq(&watching(
        "+5s
         end
         unreachable connection refused
         deadline
         refuse 429 TooManyRequests
         deadline
         accept
         error 429 TooManyRequests
         deadline",
    ));
}

#[test]
fn w5_retry_after_is_honoured() {
    let mut play = Play::new(ReflectorConfig::default());
    play.skip("start\ndone rv=10");
    play.script("refuse 429 TooManyRequests retry-after=40");
    let wait = play.reflector().deadline().unwrap().since(play.now());
    assert!((40.0..=44.0).contains(&wait.as_secs_f64()), "{wait:?}");
}

#[test]
fn w6_an_expired_watch_is_followed_by_a_list_from_the_last_version() {
    expect![[r#"
        > added b@12
          + b@12
        > error 410 Expired
          cancel
          disconnected: the resourceVersion is not available: 410 Expired
          connecting
          LIST rv="12"
        > items a@5 b@12
        > done rv=14
          commit "14"
          WATCH rv="14"
        > refuse 410 Gone
          disconnected: the resourceVersion is not available: 410 Gone
          retrying 1: the resourceVersion is not available: 410 Gone
        > deadline
          connecting
          LIST rv="14"
    "#]]
    .assert_eq(&watching(
        "added b@12
         error 410 Expired
         items a@5 b@12
         done rv=14
         refuse 410 Gone
         deadline",
    ));
}

#[test]
fn w7_other_errors_in_the_stream_lead_to_a_list() {
    expect![[r#"
        > error 500 InternalError
          cancel
          disconnected: the watch ended with an error: 500 InternalError
          retrying 1: the watch ended with an error: 500 InternalError
        > deadline
          connecting
          LIST rv="10"
    "#]]
    .assert_eq(&watching(
        "error 500 InternalError
         deadline",
    ));
}

#[test]
fn w7_internal_errors_may_be_retried_without_a_list_for_a_time() {
    let config = ReflectorConfig { internal_error_retry: Duration::from_secs(10), ..Default::default() };
    expect![[r#"
        > start
          connecting
          LIST rv=""
        > done rv=10
          commit "10"
          WATCH rv="10"
        > accept
          live since resourceVersion 10
        > error 500 InternalError
          cancel
          disconnected: the watch ended with an error: 500 InternalError
          retrying 1: the watch ended with an error: 500 InternalError
        > deadline
          WATCH rv="10"
        > accept
          live since resourceVersion 10
        > +11s
        > error 500 InternalError
          cancel
          disconnected: the watch ended with an error: 500 InternalError
          retrying 2: the watch ended with an error: 500 InternalError
        > deadline
          connecting
          LIST rv="10"
    "#]]
    .assert_eq(&play_with(
        config,
        "start
         done rv=10
         accept
         error 500 InternalError
         deadline
         accept
         +11s
         error 500 InternalError
         deadline",
    ));
}

#[test]
fn w8_an_event_that_cannot_be_read_is_skipped_and_the_version_stays() {
    expect![[r#"
        > unreadable a
          quarantined a: of another kind
        > added b@12
          + b@12
        > cache
          a@5 b@12 at "12"
        > unreadable a
          quarantined a: of another kind
        > +2s
        > end
          disconnected: the server ended the watch
          WATCH rv="12"
    "#]]
    .assert_eq(&watching(
        "unreadable a
         added b@12
         cache
         unreadable a
         +2s
         end",
    ));
}

#[test]
fn w9_versions_of_initial_events_are_not_taken_as_the_last_one() {
    // A server whose lists have no version: the watch begins with what is there, in no order.
    expect![[r#"
        > start
          connecting
          LIST rv=""
        > items a@5
        > done
          commit ""
          + a@5 by list
          WATCH rv=""
        > accept
          live
        > added b@9
          + b@9
        > added c@7
          + c@7
        > +2s
        > end
          disconnected: the server ended the watch
          WATCH rv=""
        > accept
          live
        > added b@9
        > modified a@11
          ~ a@5 -> a@11
        > +2s
        > end
          disconnected: the server ended the watch
          WATCH rv="11"
    "#]]
    .assert_eq(&play(
        "start
         items a@5
         done
         accept
         added b@9
         added c@7
         +2s
         end
         accept
         added b@9
         modified a@11
         +2s
         end",
    ));
}

#[test]
fn w10_a_store_read_error_ends_in_a_list_without_the_lost_object() {
    expect![[r#"
        > added b@11
          + b@11
        > error 500 StoreReadError
          cancel
          disconnected: the watch ended with an error: 500 StoreReadError
          retrying 1: the watch ended with an error: 500 StoreReadError
        > deadline
          connecting
          LIST rv="11"
        > items b@11
        > done rv=13
          commit "13"
          - a@5 by list
          WATCH rv="13"
        > cache
          b@11 at "13"
    "#]]
    .assert_eq(&watching(
        "added b@11
         error 500 StoreReadError
         deadline
         items b@11
         done rv=13
         cache",
    ));
}

#[test]
fn w11_an_event_older_than_the_cached_version_is_dropped() {
    expect![[r#"
        > modified a@12
          ~ a@5 -> a@12
        > modified a@11
        > added a@12
        > deleted a@11
        > cache
          a@12 at "12"
    "#]]
    .assert_eq(&watching(
        "modified a@12
         modified a@11
         added a@12
         deleted a@11
         cache",
    ));
}

#[test]
fn w12_a_silent_watch_is_given_up_and_the_server_asked_where_it_stands() {
    expect![[r#"
        > +100s
        > bookmark 11
        > +129s
        > +1s
          cancel
          disconnected: nothing came for 130 s
          LIST rv="" limit=1
        > accept
        > items a@5
        > done rv=11
          WATCH rv="11"
        > accept
          live since resourceVersion 11
    "#]]
    .assert_eq(&watching(
        "+100s
         bookmark 11
         +129s
         +1s
         accept
         items a@5
         done rv=11
         accept",
    ));
}

#[test]
fn w12_a_watch_at_a_version_that_the_server_has_not_reached_is_found_out() {
    expect![[r#"
        > added b@20
          + b@20
        > deadline
          cancel
          disconnected: nothing came for 130 s
          LIST rv="" limit=1
        > accept
        > items a@5
        > done rv=7 continue=more
          connecting
          LIST rv=""
        > accept
          syncing, 0 objects received
        > head rv=7
        > items a@5
        > done rv=7
          server restored: 20 -> 7
          commit "7"
          - b@20 by list
          WATCH rv="7"
        > cache
          a@5 at "7"
    "#]]
    .assert_eq(&watching(
        "added b@20
         deadline
         accept
         items a@5
         done rv=7 continue=more
         accept
         head rv=7
         items a@5
         done rv=7
         cache",
    ));
}

#[test]
fn w12_the_bound_can_be_set() {
    let config = ReflectorConfig { silence_limit: Duration::from_secs(10), ..Default::default() };
    let mut play = Play::new(config);
    play.skip("start\ndone rv=10\naccept");
    assert_eq!(play.reflector().deadline().unwrap().since(play.now()), Duration::from_secs(10));
}

#[test]
fn w13_a_deletion_carries_the_last_state_with_its_own_version() {
    expect![[r#"
        > deleted a@12
          - a@12
    "#]]
    .assert_eq(&watching("deleted a@12"));
}

#[test]
fn w14_a_failing_list_makes_the_wait_grow_and_stop_ends_it_at_once() {
    let mut play = Play::new(ReflectorConfig::default());
    play.skip("start");
    let mut waits = Vec::new();
    for _ in 0..6 {
        play.skip("unreachable no route");
        waits.push(play.reflector().deadline().unwrap().since(play.now()));
        play.skip("deadline");
    }
    for (index, wait) in waits.iter().enumerate() {
        let base = 0.8 * f64::from(1 << index);
        assert!((base..=2.0 * base).contains(&wait.as_secs_f64()), "{index}: {wait:?}");
    }
    play.skip("unreachable no route");
    play.script("stop");
    assert!(play.reflector().deadline().is_none());
    expect![[r#"
        > stop
          cancel
          stopped
    "#]]
    .assert_eq(&play.into_record());
}

#[test]
fn w15_credentials_are_read_once_more_before_a_401_counts_as_denied() {
    expect![[r#"
        > +5s
        > end
          disconnected: the server ended the watch
          WATCH rv="10"
        > refuse 401 Unauthorized
          disconnected: the server refused: 401 Unauthorized
          refresh credentials
          WATCH rv="10"
        > refuse 401 Unauthorized
          disconnected: the server refused: 401 Unauthorized
          denied: 401 Unauthorized
        > deadline
          connecting
          LIST rv="10"
        > refuse 401 Unauthorized
          discard
          disconnected: the server refused: 401 Unauthorized
          refresh credentials
          connecting
          LIST rv="10"
        > accept
          syncing, 0 objects received
        > done rv=12
          commit "12"
          - a@5 by list
          WATCH rv="12"
    "#]]
    .assert_eq(&watching(
        "+5s
         end
         refuse 401 Unauthorized
         refuse 401 Unauthorized
         deadline
         refuse 401 Unauthorized
         accept
         done rv=12",
    ));
}

#[test]
fn w15_403_and_404_are_denials_retried_slowly_until_the_cause_ends() {
    let mut play = Play::new(ReflectorConfig::default());
    play.script(
        "start
         refuse 403 Forbidden",
    );
    let wait = play.reflector().deadline().unwrap().since(play.now()).as_secs_f64();
    assert!((30.0..=60.0).contains(&wait), "{wait}");
    play.script(
        "deadline
         refuse 404 NotFound
         wake
         accept
         items a@1
         done rv=3
         accept",
    );
    expect![[r#"
        > start
          connecting
          LIST rv=""
        > refuse 403 Forbidden
          discard
          disconnected: the server refused: 403 Forbidden
          denied: 403 Forbidden
        > deadline
          connecting
          LIST rv=""
        > refuse 404 NotFound
          discard
          disconnected: the server refused: 404 NotFound
          denied: 404 NotFound (the server does not serve this resource: check its group, version and plural, or install its definition)
        > wake
          connecting
          LIST rv=""
        > accept
          syncing, 0 objects received
        > items a@1
        > done rv=3
          commit "3"
          + a@1 by list
          WATCH rv="3"
        > accept
          live since resourceVersion 3
    "#]]
    .assert_eq(&play.into_record());
}

#[test]
fn a_broken_watch_goes_on_from_the_last_version() {
    expect![[r#"
        > added b@12
          + b@12
        > +2s
        > break
          disconnected: the response broke off: reset
          WATCH rv="12"
        > accept
          live since resourceVersion 12
    "#]]
    .assert_eq(&watching(
        "added b@12
         +2s
         break
         accept",
    ));
}

#[test]
fn nothing_happens_after_a_stop() {
    expect![[r#"
        > stop
          cancel
          stopped
        > added b@12
        > end
        > wake
        > start
    "#]]
    .assert_eq(&watching(
        "stop
         added b@12
         end
         wake
         start",
    ));
}
