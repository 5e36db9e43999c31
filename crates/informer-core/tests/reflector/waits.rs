//! Why a wait begins, what follows it, and that nobody makes it longer.

use expect_test::expect;
use informer_core::reflector::ReflectorConfig;

use crate::script::{Play, play};
use crate::watch::watching;

#[test]
fn a_watch_that_breaks_at_once_says_why() {
    expect![[r#"
        > break
          disconnected: the response broke off: reset
          retrying 1: the response broke off: reset
    "#]]
    .assert_eq(&watching("break"));
}

#[test]
fn w6_a_watch_that_expires_again_at_the_list_s_version_is_followed_by_a_consistent_list() {
    expect![[r#"
        > error 410 Expired
          cancel
          disconnected: the resourceVersion is not available: 410 Expired
          connecting
          LIST rv="10"
        > items a@5
        > done rv=10
          commit "10"
          WATCH rv="10"
        > refuse 410 Expired
          disconnected: the resourceVersion is not available: 410 Expired
          retrying 1: the resourceVersion is not available: 410 Expired
        > deadline
          connecting
          LIST rv=""
        > items a@5 b@12
        > done rv=12
          commit "12"
          + b@12 by list
          WATCH rv="12"
        > accept
          live since resourceVersion 12
    "#]]
    .assert_eq(&watching(
        "error 410 Expired
         items a@5
         done rv=10
         refuse 410 Expired
         deadline
         items a@5 b@12
         done rv=12
         accept",
    ));
}

#[test]
fn w12_a_probe_that_is_answered_with_nonsense_is_asked_for_again() {
    expect![[r#"
        > deadline
          cancel
          disconnected: nothing came for 130 s
          LIST rv="" limit=1
        > accept
        > garbage
          disconnected: the response is undecodable: garbage
          retrying 1: the response is undecodable: garbage
        > deadline
          WATCH rv="10"
        > accept
          live since resourceVersion 10
    "#]]
    .assert_eq(&watching(
        "deadline
         accept
         garbage
         deadline
         accept",
    ));
}

#[test]
fn being_woken_gives_a_request_no_more_time() {
    let requests = [
        ("a list", "start"),
        ("its content", "start\naccept"),
        ("a watch", "start\ndone rv=3"),
        ("its events", "start\ndone rv=3\naccept"),
        ("a probe", "start\ndone rv=3\naccept\ndeadline"),
    ];
    for (what, before) in requests {
        let mut play = Play::new(ReflectorConfig::default());
        play.skip(before);
        let deadline = play.reflector().deadline();
        play.skip("+20s\nwake\nstart");
        assert_eq!(play.reflector().deadline(), deadline, "{what}");
    }
}

#[test]
fn f9_a_watch_that_nobody_reads_goes_on_from_where_it_was() {
    expect![[r#"
        > added b@11
          + b@11
        > stall
          cancel
          disconnected: a transform or an index function did not return
          stalled: a transform or an index function does not return
        > +10m
        > wake
          WATCH rv="11"
    "#]]
    .assert_eq(&watching(
        "added b@11
         stall
         +10m
         wake",
    ));
}

#[test]
fn f9_a_list_that_nobody_reads_begins_again() {
    expect![[r#"
        > start
          connecting
          LIST rv=""
        > items a@5
        > stall
          discard
          cancel
          disconnected: a transform or an index function did not return
          stalled: a transform or an index function does not return
        > wake
          connecting
          LIST rv=""
    "#]]
    .assert_eq(&play(
        "start
         items a@5
         stall
         wake",
    ));
}

/// A server that refuses one namespace and is out of reach for another one got requests for both without a pause.
#[test]
fn w14_the_end_of_an_outage_sends_what_was_not_answered_and_nothing_else() {
    expect![[r#"
        > start
          connecting
          LIST rv=""
        > refuse 403 Forbidden no
          discard
          disconnected: the server refused: 403 Forbidden
          denied: 403 Forbidden
        > released
        > wake
          connecting
          LIST rv=""
        > refuse 503 ServiceUnavailable no
          discard
          disconnected: the server refused: 503 ServiceUnavailable
          retrying 1: the server refused: 503 ServiceUnavailable
        > released
        > wake
          connecting
          LIST rv=""
        > unreachable refused
          discard
          disconnected: the server cannot be reached: refused
          retrying 2: the server cannot be reached: refused
        > released
          connecting
          LIST rv=""
    "#]]
    .assert_eq(&play(
        "start
         refuse 403 Forbidden no
         released
         wake
         refuse 503 ServiceUnavailable no
         released
         wake
         unreachable refused
         released",
    ));
}
