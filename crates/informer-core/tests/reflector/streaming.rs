//! Contract group S.

use std::time::Duration;

use expect_test::expect;
use informer_core::reflector::{ReflectorConfig, StreamingList};

use crate::script::{Play, play_with};

fn play(script: &str) -> String {
    play_with(
        ReflectorConfig { streaming_list: StreamingList::Preferred, ..ReflectorConfig::default() },
        script,
    )
}

#[test]
fn s1_requests_of_streaming_lists() {
    // The query itself is pinned where requests are written; here: which version is asked for, and that no LIST is sent.
    expect![[r#"
        > start
          connecting
          WATCH rv="" initial-events
        > accept
          syncing, 0 objects received
        > added a@5
        > bookmark 10 end
          commit "10"
          + a@5 by list
          live since resourceVersion 10
        > error 410 Expired
          cancel
          disconnected: the resourceVersion is not available: 410 Expired
          connecting
          WATCH rv="10" initial-events
        > refuse 410 Expired
          discard
          disconnected: the resourceVersion is not available: 410 Expired
          connecting
          WATCH rv="" initial-events
        > accept
          syncing, 0 objects received
    "#]]
    .assert_eq(&play(
        "start
         accept
         added a@5
         bookmark 10 end
         error 410 Expired
         refuse 410 Expired
         accept",
    ));
}

#[test]
fn s2_nothing_is_visible_before_the_end_bookmark() {
    expect![[r#"
        > start
          connecting
          WATCH rv="" initial-events
        > accept
          syncing, 0 objects received
        > added a@5
        > bookmark 8
        > cache
           at ""
        > bookmark 10 end
          commit "10"
          + a@5 by list
          live since resourceVersion 10
        > cache
          a@5 at "10"
    "#]]
    .assert_eq(&play(
        "start
         accept
         added a@5
         bookmark 8
         cache
         bookmark 10 end
         cache",
    ));
}

#[test]
fn s3_changes_before_the_end_bookmark_are_applied() {
    expect![[r#"
        > start
          connecting
          WATCH rv="" initial-events
        > accept
          syncing, 0 objects received
        > added a@5
        > added b@6
        > added a@5
        > modified a@8
        > deleted b@9
        > bookmark 10 end
          commit "10"
          + a@8 by list
          live since resourceVersion 10
        > cache
          a@8 at "10"
    "#]]
    .assert_eq(&play(
        "start
         accept
         added a@5
         added b@6
         added a@5
         modified a@8
         deleted b@9
         bookmark 10 end
         cache",
    ));
}

#[test]
fn s4_nothing_of_a_dead_stream_leaks_and_the_next_is_paced() {
    expect![[r#"
        > start
          connecting
          WATCH rv="" initial-events
        > accept
          syncing, 0 objects received
        > added ghost@5
        > end
          discard
          disconnected: the streaming list did not complete its initial events
          retrying 1: the streaming list did not complete its initial events
        > cache
           at ""
        > deadline
          connecting
          WATCH rv="" initial-events
        > accept
          syncing, 0 objects received
        > added a@6
        > bookmark 10 end
          commit "10"
          + a@6 by list
          live since resourceVersion 10
        > cache
          a@6 at "10"
    "#]]
    .assert_eq(&play(
        "start
         accept
         added ghost@5
         end
         cache
         deadline
         accept
         added a@6
         bookmark 10 end
         cache",
    ));
}

#[test]
fn s4_after_three_dead_streams_a_list() {
    expect![[r#"
        > start
          connecting
          WATCH rv="" initial-events
        > accept
          syncing, 0 objects received
        > break
          discard
          disconnected: the response broke off: reset
          retrying 1: the response broke off: reset
        > deadline
          connecting
          WATCH rv="" initial-events
        > accept
          syncing, 0 objects received
        > break
          discard
          disconnected: the response broke off: reset
          retrying 2: the response broke off: reset
        > deadline
          connecting
          WATCH rv="" initial-events
        > accept
          syncing, 0 objects received
        > break
          discard
          disconnected: the response broke off: reset
          connecting
          LIST rv=""
    "#]]
    .assert_eq(&play(
        "start
         accept
         break
         deadline
         accept
         break
         deadline
         accept
         break",
    ));
}

#[test]
fn s5_the_same_stream_is_the_watch_and_a_plain_watch_follows() {
    expect![[r#"
        > start
          connecting
          WATCH rv="" initial-events
        > accept
          syncing, 0 objects received
        > bookmark 10 end
          commit "10"
          live since resourceVersion 10
        > added a@11
          + a@11
        > modified a@12
          ~ a@11 -> a@12
        > +2m
        > end
          disconnected: the server ended the watch
          WATCH rv="12"
    "#]]
    .assert_eq(&play(
        "start
         accept
         bookmark 10 end
         added a@11
         modified a@12
         +2m
         end",
    ));
}

#[test]
fn s6_a_refusal_leads_to_list_and_watch_and_is_remembered() {
    let config = ReflectorConfig {
        streaming_list: StreamingList::Preferred,
        streaming_list_retry: Duration::from_secs(60),
        ..ReflectorConfig::default()
    };
    expect![[r#"
        > start
          connecting
          WATCH rv="" initial-events
        > refuse 422 Invalid
          discard
          disconnected: the server refused: 422 Invalid
          connecting
          LIST rv=""
        > items a@5
        > done rv=10
          commit "10"
          + a@5 by list
          WATCH rv="10"
        > accept
          live since resourceVersion 10
        > error 500 Whatever
          cancel
          disconnected: the watch ended with an error: 500 Whatever
          retrying 1: the watch ended with an error: 500 Whatever
        > deadline
          connecting
          LIST rv="10"
        > done rv=12
          commit "12"
          - a@5 by list
          WATCH rv="12"
        > accept
          live since resourceVersion 12
        > +2m
        > error 500 Whatever
          cancel
          disconnected: the watch ended with an error: 500 Whatever
          retrying 2: the watch ended with an error: 500 Whatever
        > deadline
          connecting
          WATCH rv="12" initial-events
    "#]]
    .assert_eq(&play_with(
        config,
        "start
         refuse 422 Invalid
         items a@5
         done rv=10
         accept
         error 500 Whatever
         deadline
         done rv=12
         accept
         +2m
         error 500 Whatever
         deadline",
    ));
}

#[test]
fn s6_a_429_is_answered_with_the_same_request() {
    expect![[r#"
        > start
          connecting
          WATCH rv="" initial-events
        > refuse 429 TooManyRequests
          discard
          disconnected: the server refused: 429 TooManyRequests
          retrying 1: the server refused: 429 TooManyRequests
        > deadline
          connecting
          WATCH rv="" initial-events
        > accept
          syncing, 0 objects received
        > error 429 TooManyRequests
          cancel
          discard
          disconnected: the server refused: 429 TooManyRequests
          retrying 2: the server refused: 429 TooManyRequests
        > deadline
          connecting
          WATCH rv="" initial-events
    "#]]
    .assert_eq(&play(
        "start
         refuse 429 TooManyRequests
         deadline
         accept
         error 429 TooManyRequests
         deadline",
    ));
}

#[test]
fn s6_a_refused_streaming_list_says_until_when() {
    let config = ReflectorConfig {
        streaming_list: StreamingList::Preferred,
        streaming_list_retry: Duration::from_secs(60),
        ..ReflectorConfig::default()
    };
    let mut play = Play::new(config);
    play.script("start");
    assert_eq!(play.reflector().streaming_refused_until(), None);
    play.script("+1s\nrefuse 422 Invalid");
    assert_eq!(play.reflector().streaming_refused_until(), Some(play.now() + Duration::from_secs(60)));
}

#[test]
fn s6_w15_what_a_list_would_be_denied_too_says_nothing_of_streaming_lists() {
    expect![[r#"
        > start
          connecting
          WATCH rv="" initial-events
        > refuse 401 Unauthorized
          discard
          disconnected: the server refused: 401 Unauthorized
          refresh credentials
          connecting
          WATCH rv="" initial-events
        > refuse 403 Forbidden
          discard
          disconnected: the server refused: 403 Forbidden
          denied: 403 Forbidden
        > deadline
          connecting
          WATCH rv="" initial-events
        > refuse 404 NotFound
          discard
          disconnected: the server refused: 404 NotFound
          denied: 404 NotFound (the server does not serve this resource: check its group, version and plural, or install its definition)
    "#]]
    .assert_eq(&play(
        "start
         refuse 401 Unauthorized
         refuse 403 Forbidden
         deadline
         refuse 404 NotFound",
    ));
}

#[test]
fn s7_no_end_bookmark_within_the_deadline_leads_to_a_list() {
    expect![[r#"
        > start
          connecting
          WATCH rv="" initial-events
        > accept
          syncing, 0 objects received
        > added a@5
        > +29s
        > added b@6
        > +29s
        > +2s
          cancel
          discard
          disconnected: the streaming list did not complete its initial events
          connecting
          LIST rv=""
    "#]]
    .assert_eq(&play(
        "start
         accept
         added a@5
         +29s
         added b@6
         +29s
         +2s",
    ));
}

#[test]
fn s7_events_without_an_end_do_not_put_the_deadline_off() {
    let mut play = Play::new(ReflectorConfig {
        streaming_list: StreamingList::Preferred,
        initial_events_timeout: Duration::from_secs(120),
        ..ReflectorConfig::default()
    });
    play.skip("start\naccept");
    for version in 1..12 {
        assert!(play.skip(&format!("added a@{version}\n+10s")).ends_with("+10s\n"), "{version}");
    }
    expect![[r#"
        > added a@12
        > +10s
          cancel
          discard
          disconnected: the streaming list did not complete its initial events
          connecting
          LIST rv=""
    "#]]
    .assert_eq(&play.skip("added a@12\n+10s"));
}

#[test]
fn s8_an_expired_watch_keeps_the_content_until_the_next_round_has_succeeded() {
    expect![[r#"
        > start
          connecting
          WATCH rv="" initial-events
        > accept
          syncing, 0 objects received
        > added a@5
        > added b@6
        > bookmark 10 end
          commit "10"
          + a@5 by list
          + b@6 by list
          live since resourceVersion 10
        > +2s
        > end
          disconnected: the server ended the watch
          WATCH rv="10"
        > refuse 410 Expired
          disconnected: the resourceVersion is not available: 410 Expired
          connecting
          WATCH rv="10" initial-events
        > accept
          syncing, 0 objects received
        > added b@6
        > cache
          a@5 b@6 at "10"
        > bookmark 14 end
          commit "14"
          - a@5 by list
          live since resourceVersion 14
        > cache
          b@6 at "14"
    "#]]
    .assert_eq(&play(
        "start
         accept
         added a@5
         added b@6
         bookmark 10 end
         +2s
         end
         refuse 410 Expired
         accept
         added b@6
         cache
         bookmark 14 end
         cache",
    ));
}

#[test]
fn s9_an_empty_collection_syncs() {
    expect![[r#"
        > start
          connecting
          WATCH rv="" initial-events
        > accept
          syncing, 0 objects received
        > bookmark 10 end
          commit "10"
          live since resourceVersion 10
        > cache
           at "10"
    "#]]
    .assert_eq(&play(
        "start
         accept
         bookmark 10 end
         cache",
    ));
}

#[test]
fn l12_a_streaming_list_that_goes_back_is_not_applied_unless_the_server_did() {
    expect![[r#"
        > start
          connecting
          WATCH rv="" initial-events
        > accept
          syncing, 0 objects received
        > added a@5
        > bookmark 10 end
          commit "10"
          + a@5 by list
          live since resourceVersion 10
        > error 410 Expired
          cancel
          disconnected: the resourceVersion is not available: 410 Expired
          connecting
          WATCH rv="10" initial-events
        > accept
          syncing, 0 objects received
        > added a@5
        > bookmark 8 end
          discard
          disconnected: the list answered with the older resourceVersion 8; 10 was already seen
          connecting
          WATCH rv="" initial-events
        > accept
          syncing, 0 objects received
        > added a@5
        > bookmark 8 end
          discard
          disconnected: the list answered with the older resourceVersion 8; 10 was already seen
          connecting
          WATCH rv="" initial-events
        > accept
          syncing, 0 objects received
        > added a@5
        > bookmark 8 end
          server restored: 10 -> 8
          commit "8"
          live since resourceVersion 8
        > cache
          a@5 at "8"
    "#]]
    .assert_eq(&play(
        "start
         accept
         added a@5
         bookmark 10 end
         error 410 Expired
         accept
         added a@5
         bookmark 8 end
         accept
         added a@5
         bookmark 8 end
         accept
         added a@5
         bookmark 8 end
         cache",
    ));
}

#[test]
fn an_error_event_before_the_end_bookmark_ends_the_stream() {
    expect![[r#"
        > start
          connecting
          WATCH rv="" initial-events
        > accept
          syncing, 0 objects received
        > added a@5
        > error 429 TooManyRequests
          cancel
          discard
          disconnected: the server refused: 429 TooManyRequests
          retrying 1: the server refused: 429 TooManyRequests
        > added b@6
    "#]]
    .assert_eq(&play(
        "start
         accept
         added a@5
         error 429 TooManyRequests
         added b@6",
    ));
}
