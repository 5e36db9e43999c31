//! A cache that was saved goes on from where it was (contract P2).

use expect_test::expect;
use informer_core::reflector::Resume;

use crate::script::Play;

fn resumed(from: Resume, script: &str) -> String {
    let mut play = Play::resuming(from, "a@5 b@7");
    play.script(script);
    play.into_record()
}

fn watching(script: &str) -> String {
    resumed(Resume::Watch("10".into()), script)
}

#[test]
fn p2_the_watch_goes_on_from_the_saved_version() {
    expect![[r#"
        > cache
          a@5 b@7 at "10"
        > start
          connecting
          LIST rv="" limit=1
        > accept
        > items a@5
        > done rv=14
          WATCH rv="10"
        > accept
        > +100ms
        > deadline
          confirm
          live since resourceVersion 10
        > deleted a@11
          - a@11
        > added c@12
          + c@12
        > cache
          b@7 c@12 at "12"
        > end
          disconnected: the server ended the watch
          WATCH rv="12"
        > accept
          live since resourceVersion 12
        > end
          disconnected: the watch ended almost at once, without an event
          retrying 1: the watch ended almost at once, without an event
    "#]]
    .assert_eq(&watching(
        "cache
         start
         accept
         items a@5
         done rv=14
         accept
         +100ms
         deadline
         deleted a@11
         added c@12
         cache
         end
         accept
         end",
    ));
}

#[test]
fn p2_after_an_expired_version_the_list_is_compared_with_what_was_saved() {
    expect![[r#"
        > start
          connecting
          LIST rv="" limit=1
        > done rv=14
          WATCH rv="10"
        > refuse 410 Expired
          disconnected: the resourceVersion is not available: 410 Expired
          connecting
          LIST rv="10"
        > accept
          syncing, 0 objects received
        > items b@7 c@12
        > done rv=15
          commit "15"
          - a@5 by list
          + c@12 by list
          WATCH rv="15"
        > accept
          live since resourceVersion 15
        > cache
          b@7 c@12 at "15"
    "#]]
    .assert_eq(&watching(
        "start
         done rv=14
         refuse 410 Expired
         accept
         items b@7 c@12
         done rv=15
         accept
         cache",
    ));
}

#[test]
fn p2_an_expired_version_may_be_told_inside_of_the_watch() {
    expect![[r#"
        > start
          connecting
          LIST rv="" limit=1
        > done rv=14
          WATCH rv="10"
        > accept
        > error 410 Expired
          cancel
          disconnected: the resourceVersion is not available: 410 Expired
          connecting
          LIST rv="10"
        > items b@8
        > done rv=15
          commit "15"
          - a@5 by list
          ~ b@7 -> b@8 by list
          WATCH rv="15"
        > cache
          b@8 at "15"
    "#]]
    .assert_eq(&watching(
        "start
         done rv=14
         accept
         error 410 Expired
         items b@8
         done rv=15
         cache",
    ));
}

#[test]
fn p2_l12_a_server_that_is_behind_what_was_saved_is_found_out_before_the_watch() {
    expect![[r#"
        > start
          connecting
          LIST rv="" limit=1
        > items a@5
        > done rv=8
          connecting
          LIST rv=""
        > head rv=8
        > items a@5 b@7#other
        > done rv=8
          server restored: 10 -> 8
          commit "8"
          ~ b@7 -> b@7 by list
          WATCH rv="8"
        > accept
          live since resourceVersion 8
        > cache
          a@5 b@7 at "8"
    "#]]
    .assert_eq(&watching(
        "start
         items a@5
         done rv=8
         head rv=8
         items a@5 b@7#other
         done rv=8
         accept
         cache",
    ));
}

#[test]
fn p2_the_first_event_confirms_what_was_saved() {
    expect![[r#"
        > start
          connecting
          LIST rv="" limit=1
        > done rv=14
          WATCH rv="10"
        > accept
        > bookmark 12
          confirm
          live since resourceVersion 10
        > end
          disconnected: the server ended the watch
          WATCH rv="12"
        > accept
          live since resourceVersion 12
    "#]]
    .assert_eq(&watching(
        "start
         done rv=14
         accept
         bookmark 12
         end
         accept",
    ));
}

#[test]
fn p2_a_watch_that_ends_at_once_confirms_nothing() {
    expect![[r#"
        > start
          connecting
          LIST rv="" limit=1
        > done rv=14
          WATCH rv="10"
        > accept
        > end
          disconnected: the watch ended almost at once, without an event
          retrying 1: the watch ended almost at once, without an event
        > deadline
          connecting
          LIST rv="" limit=1
        > done rv=14
          WATCH rv="10"
        > accept
        > deadline
          confirm
          live since resourceVersion 10
        > deadline
          cancel
          disconnected: nothing came for 130 s
          LIST rv="" limit=1
    "#]]
    .assert_eq(&watching(
        "start
         done rv=14
         accept
         end
         deadline
         done rv=14
         accept
         deadline
         deadline",
    ));
}

#[test]
fn p2_what_was_unread_is_listed() {
    expect![[r#"
        > start
          connecting
          LIST rv="10"
        > items a@5 b@9
        > done rv=14
          commit "14"
          ~ b@7 -> b@9 by list
          WATCH rv="14"
        > accept
          live since resourceVersion 14
        > cache
          a@5 b@9 at "14"
    "#]]
    .assert_eq(&resumed(
        Resume::List("10".into()),
        "start
         items a@5 b@9
         done rv=14
         accept
         cache",
    ));
}

#[test]
fn p2_a_server_that_cannot_be_reached_is_asked_again() {
    expect![[r#"
        > start
          connecting
          LIST rv="" limit=1
        > unreachable down
          disconnected: the server cannot be reached: down
          retrying 1: the server cannot be reached: down
        > deadline
          connecting
          LIST rv="" limit=1
        > deadline
          cancel
          disconnected: nothing came for 60 s
          retrying 2: nothing came for 60 s
        > deadline
          connecting
          LIST rv="" limit=1
        > refuse 503 Unavailable
          disconnected: the server refused: 503 Unavailable
          retrying 3: the server refused: 503 Unavailable
        > deadline
          connecting
          LIST rv="" limit=1
        > break
          disconnected: the response broke off: reset
          retrying 4: the response broke off: reset
        > deadline
          connecting
          LIST rv="" limit=1
        > items
        > end
          disconnected: the response broke off: the list is incomplete
          retrying 5: the response broke off: the list is incomplete
        > deadline
          connecting
          LIST rv="" limit=1
        > done rv=10
          WATCH rv="10"
        > accept
    "#]]
    .assert_eq(&watching(
        "start
         unreachable down
         deadline
         deadline
         deadline
         refuse 503 Unavailable
         deadline
         break
         deadline
         items
         end
         deadline
         done rv=10
         accept",
    ));
}

#[test]
fn p2_a_server_that_refuses_the_question_is_listed() {
    expect![[r#"
        > start
          connecting
          LIST rv="" limit=1
        > refuse 400 BadRequest
          disconnected: the server refused: 400 BadRequest
          retrying 1: the server refused: 400 BadRequest
        > deadline
          connecting
          LIST rv="10"
        > items a@5 b@7
        > done rv=10
          commit "10"
          WATCH rv="10"
    "#]]
    .assert_eq(&watching(
        "start
         refuse 400 BadRequest
         deadline
         items a@5 b@7
         done rv=10",
    ));
}

#[test]
fn p2_a_denial_ends_in_a_list() {
    expect![[r#"
        > start
          connecting
          LIST rv="" limit=1
        > refuse 403 Forbidden
          disconnected: the server refused: 403 Forbidden
          denied: 403 Forbidden
        > cache
          a@5 b@7 at "10"
        > deadline
          connecting
          LIST rv="10"
        > items b@7
        > done rv=16
          commit "16"
          - a@5 by list
          WATCH rv="16"
        > accept
          live since resourceVersion 16
    "#]]
    .assert_eq(&watching(
        "start
         refuse 403 Forbidden
         cache
         deadline
         items b@7
         done rv=16
         accept",
    ));
}

#[test]
fn p2_without_a_version_there_is_nothing_to_go_on_from() {
    let mut play = Play::resuming(Resume::Watch("".into()), "");
    play.script("start");
    expect![[r#"
        > start
          connecting
          LIST rv=""
    "#]]
    .assert_eq(&play.into_record());
}

#[test]
fn p2_l12_a_server_restored_before_anything_is_confirmed_is_found_out() {
    expect![[r#"
        > start
          connecting
          LIST rv="" limit=1
        > done rv=14
          WATCH rv="10"
        > accept
        > break
          disconnected: the response broke off: reset
          retrying 1: the response broke off: reset
        > deadline
          connecting
          LIST rv="" limit=1
        > done rv=8
          connecting
          LIST rv=""
        > head rv=8
        > items a@5
        > done rv=8
          server restored: 10 -> 8
          commit "8"
          - b@7 by list
          WATCH rv="8"
        > cache
          a@5 at "8"
    "#]]
    .assert_eq(&watching(
        "start
         done rv=14
         accept
         break
         deadline
         done rv=8
         head rv=8
         items a@5
         done rv=8
         cache",
    ));
}
