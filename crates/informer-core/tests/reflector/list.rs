//! Contract group L.

use expect_test::expect;
use informer_core::reflector::{FirstList, ReflectorConfig};

use crate::script::{play, play_with};

fn any() -> ReflectorConfig {
    ReflectorConfig { first_list: FirstList::Any, ..ReflectorConfig::default() }
}

#[test]
fn l1_first_list_is_consistent_and_the_watch_follows_at_its_version() {
    expect![[r#"
        > start
          connecting
          LIST rv=""
        > accept
          syncing, 0 objects received
        > head rv=10
        > items a@5 b@7
        > done rv=10
          commit "10"
          + a@5 by list
          + b@7 by list
          WATCH rv="10"
        > accept
          live since resourceVersion 10
        > cache
          a@5 b@7 at "10"
    "#]]
    .assert_eq(&play(
        "start
         accept
         head rv=10
         items a@5 b@7
         done rv=10
         accept
         cache",
    ));
}

#[test]
fn l1_by_choice_the_first_list_is_any_state_in_pages() {
    expect![[r#"
        > start
          connecting
          LIST rv="0" limit=500
        > accept
          syncing, 0 objects received
        > items a@5
        > done rv=10
          commit "10"
          + a@5 by list
          WATCH rv="10"
        > accept
          live since resourceVersion 10
    "#]]
    .assert_eq(&play_with(
        any(),
        "start
         accept
         items a@5
         done rv=10
         accept",
    ));
}

#[test]
fn l2_a_later_list_never_asks_for_something_older_than_seen() {
    expect![[r#"
        > start
          connecting
          LIST rv=""
        > done rv=10
          commit "10"
          WATCH rv="10"
        > accept
          live since resourceVersion 10
        > added a@12
          + a@12
        > error 500 Whatever
          cancel
          disconnected: the watch ended with an error: 500 Whatever
          retrying 1: the watch ended with an error: 500 Whatever
        > deadline
          connecting
          LIST rv="12"
    "#]]
    .assert_eq(&play(
        "start
         done rv=10
         accept
         added a@12
         error 500 Whatever
         deadline",
    ));
}

#[test]
fn l3_an_expired_list_is_followed_at_once_by_a_consistent_one() {
    expect![[r#"
        > start
          connecting
          LIST rv=""
        > items a@5 b@7
        > done rv=10
          commit "10"
          + a@5 by list
          + b@7 by list
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
        > refuse 410 Expired
          discard
          disconnected: the resourceVersion is not available: 410 Expired
          connecting
          LIST rv=""
        > accept
          syncing, 0 objects received
        > items a@5 c@11
        > done rv=12
          commit "12"
          - b@7 by list
          + c@11 by list
          WATCH rv="12"
        > cache
          a@5 c@11 at "12"
    "#]]
    .assert_eq(&play(
        "start
         items a@5 b@7
         done rv=10
         accept
         error 500 Whatever
         deadline
         refuse 410 Expired
         accept
         items a@5 c@11
         done rv=12
         cache",
    ));
}

#[test]
fn l3_a_second_410_on_the_consistent_list_is_paced() {
    expect![[r#"
        > start
          connecting
          LIST rv=""
        > done rv=10
          commit "10"
          WATCH rv="10"
        > accept
          live since resourceVersion 10
        > error 410 Expired
          cancel
          disconnected: the resourceVersion is not available: 410 Expired
          connecting
          LIST rv="10"
        > refuse 410 Expired
          discard
          disconnected: the resourceVersion is not available: 410 Expired
          connecting
          LIST rv=""
        > refuse 410 Expired
          discard
          disconnected: the server refused: 410 Expired
          retrying 1: the server refused: 410 Expired
    "#]]
    .assert_eq(&play(
        "start
         done rv=10
         accept
         error 410 Expired
         refuse 410 Expired
         refuse 410 Expired",
    ));
}

#[test]
fn l4_a_410_on_a_later_page_leads_to_one_full_list_at_the_first_version() {
    expect![[r#"
        > start
          connecting
          LIST rv="0" limit=500
        > items a@5
        > done rv=10 continue=p2
          LIST rv="" limit=500 continue=p2
        > items b@7
        > done rv=10
          commit "10"
          + a@5 by list
          + b@7 by list
          WATCH rv="10"
        > accept
          live since resourceVersion 10
        > error 500 Whatever
          cancel
          disconnected: the watch ended with an error: 500 Whatever
          retrying 1: the watch ended with an error: 500 Whatever
        > deadline
          connecting
          LIST rv="10" not-older-than limit=500
        > items a@5
        > done rv=15 continue=p2
          LIST rv="" limit=500 continue=p2
        > refuse 410 Expired
          discard
          disconnected: the resourceVersion is not available: 410 Expired
          connecting
          LIST rv="10"
        > items a@5 c@11
        > done rv=12
          commit "12"
          - b@7 by list
          + c@11 by list
          WATCH rv="12"
        > cache
          a@5 c@11 at "12"
    "#]]
    .assert_eq(&play_with(
        any(),
        "start
         items a@5
         done rv=10 continue=p2
         items b@7
         done rv=10
         accept
         error 500 Whatever
         deadline
         items a@5
         done rv=15 continue=p2
         refuse 410 Expired
         items a@5 c@11
         done rv=12
         cache",
    ));
}

#[test]
fn l5_too_large_resource_version_in_its_three_forms_leads_to_a_consistent_list() {
    for form in ["504 Timeout cause=type", "504 Timeout cause=message", "504 Timeout message"] {
        let record = play(&format!(
            "start
             done rv=20
             accept
             error 500 Whatever
             deadline
             refuse {form}
             done rv=15"
        ));
        // The consistent list is older: the server has lost its history, which takes one more look to believe (l12).
        let lists: Vec<_> = record.lines().filter(|line| line.contains("LIST")).collect();
        assert_eq!(
            lists,
            [r#"  LIST rv="""#, r#"  LIST rv="20""#, r#"  LIST rv="""#, r#"  LIST rv="""#],
            "{form}"
        );
    }
}

#[test]
fn l6_a_relist_is_unpaged_unless_the_first_list_came_in_pages() {
    expect![[r#"
        > start
          connecting
          LIST rv="0" limit=500
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
    "#]]
    .assert_eq(&play_with(
        any(),
        "start
         items a@5
         done rv=10
         accept
         error 500 Whatever
         deadline",
    ));
    expect![[r#"
        > start
          connecting
          LIST rv="0" limit=500
        > items a@5
        > done rv=10 continue=p2
          LIST rv="" limit=500 continue=p2
        > items b@6
        > done rv=10
          commit "10"
          + a@5 by list
          + b@6 by list
          WATCH rv="10"
        > accept
          live since resourceVersion 10
        > error 500 Whatever
          cancel
          disconnected: the watch ended with an error: 500 Whatever
          retrying 1: the watch ended with an error: 500 Whatever
        > deadline
          connecting
          LIST rv="10" not-older-than limit=500
    "#]]
    .assert_eq(&play_with(
        any(),
        "start
         items a@5
         done rv=10 continue=p2
         items b@6
         done rv=10
         accept
         error 500 Whatever
         deadline",
    ));
}

#[test]
fn an_answer_that_is_no_list_is_retried_with_a_wait() {
    expect![[r#"
        > start
          connecting
          LIST rv=""
        > accept
          syncing, 0 objects received
        > garbage
          discard
          disconnected: the response is undecodable: garbage
          retrying 1: the response is undecodable: garbage
        > deadline
          connecting
          LIST rv=""
    "#]]
    .assert_eq(&play(
        "start
         accept
         garbage
         deadline",
    ));
}

#[test]
fn l10_an_item_with_the_cached_version_is_no_change() {
    expect![[r#"
        > start
          connecting
          LIST rv=""
        > items a@5#one b@7
        > done rv=10
          commit "10"
          + a@5 by list
          + b@7 by list
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
        > items a@5#another b@9
        > done rv=12
          commit "12"
          ~ b@7 -> b@9 by list
          WATCH rv="12"
        > cache
          a@5 b@9 at "12"
    "#]]
    .assert_eq(&play(
        "start
         items a@5#one b@7
         done rv=10
         accept
         error 500 Whatever
         deadline
         items a@5#another b@9
         done rv=12
         cache",
    ));
}

#[test]
fn l11_a_list_interrupted_in_the_middle_changes_nothing() {
    expect![[r#"
        > start
          connecting
          LIST rv=""
        > items a@5 b@7
        > done rv=10
          commit "10"
          + a@5 by list
          + b@7 by list
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
        > accept
          syncing, 0 objects received
        > items c@11
        > break
          discard
          disconnected: the response broke off: reset
          retrying 2: the response broke off: reset
        > cache
          a@5 b@7 at "10"
        > deadline
          connecting
          LIST rv="10"
        > accept
          syncing, 0 objects received
        > items c@11 b@7
        > done rv=12
          commit "12"
          - a@5 by list
          + c@11 by list
          WATCH rv="12"
        > cache
          b@7 c@11 at "12"
    "#]]
    .assert_eq(&play(
        "start
         items a@5 b@7
         done rv=10
         accept
         error 500 Whatever
         deadline
         accept
         items c@11
         break
         cache
         deadline
         accept
         items c@11 b@7
         done rv=12
         cache",
    ));
}

#[test]
fn an_unreadable_item_keeps_what_the_cache_has_of_it() {
    expect![[r#"
        > start
          connecting
          LIST rv=""
        > items a@5 b@6
        > done rv=10
          commit "10"
          + a@5 by list
          + b@6 by list
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
        > unreadable a
          quarantined a: of another kind
        > done rv=12
          commit "12"
          - b@6 by list
          WATCH rv="12"
        > cache
          a@5 at "12"
    "#]]
    .assert_eq(&play(
        "start
         items a@5 b@6
         done rv=10
         accept
         error 500 Whatever
         deadline
         unreadable a
         done rv=12
         cache",
    ));
}

#[test]
fn a_list_that_falls_silent_is_given_up() {
    expect![[r#"
        > start
          connecting
          LIST rv=""
        > accept
          syncing, 0 objects received
        > items a@1
        > +59s
        > items b@2
        > +59s
        > +2s
          cancel
          discard
          disconnected: nothing came for 60 s
          retrying 1: nothing came for 60 s
        > cache
           at ""
    "#]]
    .assert_eq(&play(
        "start
         accept
         items a@1
         +59s
         items b@2
         +59s
         +2s
         cache",
    ));
}

#[test]
fn w15_a_list_that_the_server_will_never_answer_is_denied() {
    for refusal in ["400 BadRequest", "405 MethodNotAllowed", "406 NotAcceptable", "415 ", "422 Invalid"] {
        let record = play(&format!("start\nrefuse {refusal}"));
        assert!(record.contains(&format!("denied: {}", refusal.trim())), "{record}");
    }
    // A page is another matter: its token may be at fault, and the whole list is not.
    let record = play_with(any(), "start\naccept\nitems a@5\ndone rv=10 continue=x\nrefuse 400 BadRequest");
    assert!(record.contains("retrying") && !record.contains("denied"), "{record}");
}

#[test]
fn w15_a_version_that_is_refused_is_left_out_once_before_the_list_counts_as_denied() {
    expect![[r#"
        > start
          connecting
          LIST rv=""
        > items a@5
        > done rv=10
          commit "10"
          + a@5 by list
          WATCH rv="10"
        > error 500 Whatever
          cancel
          disconnected: the watch ended with an error: 500 Whatever
          retrying 1: the watch ended with an error: 500 Whatever
        > deadline
          connecting
          LIST rv="10"
        > refuse 400 BadRequest
          discard
          disconnected: the server refused: 400 BadRequest
          connecting
          LIST rv=""
        > items a@5 b@7
        > done rv=12
          commit "12"
          + b@7 by list
          WATCH rv="12"
        > error 500 Whatever
          cancel
          disconnected: the watch ended with an error: 500 Whatever
          retrying 2: the watch ended with an error: 500 Whatever
        > deadline
          connecting
          LIST rv="12"
        > refuse 400 BadRequest
          discard
          disconnected: the server refused: 400 BadRequest
          connecting
          LIST rv=""
        > refuse 400 BadRequest
          discard
          disconnected: the server refused: 400 BadRequest
          denied: 400 BadRequest
        > deadline
          connecting
          LIST rv=""
        > refuse 400 BadRequest
          discard
          disconnected: the server refused: 400 BadRequest
          denied: 400 BadRequest
        > deadline
          connecting
          LIST rv=""
        > done rv=13
          commit "13"
          - a@5 by list
          - b@7 by list
          WATCH rv="13"
        > error 500 Whatever
          cancel
          disconnected: the watch ended with an error: 500 Whatever
          retrying 3: the watch ended with an error: 500 Whatever
        > deadline
          connecting
          LIST rv="13"
    "#]]
    .assert_eq(&play(
        "start
         items a@5
         done rv=10
         error 500 Whatever
         deadline
         refuse 400 BadRequest
         items a@5 b@7
         done rv=12
         error 500 Whatever
         deadline
         refuse 400 BadRequest
         refuse 400 BadRequest
         deadline
         refuse 400 BadRequest
         deadline
         done rv=13
         error 500 Whatever
         deadline",
    ));
}

#[test]
fn w15_each_refusal_of_a_version_leads_to_one_list_without_it() {
    let again = "start\ndone rv=10\nerror 500 Whatever\ndeadline\nrefuse";
    for refusal in ["400 BadRequest", "405 MethodNotAllowed", "406 NotAcceptable", "415 ", "422 Invalid"] {
        let record = play(&format!("{again} {refusal}"));
        assert!(record.ends_with("connecting\n  LIST rv=\"\"\n") && !record.contains("denied"), "{record}");
        let record = play(&format!("{again} {refusal}\nrefuse {refusal}"));
        assert!(record.contains(&format!("denied: {}", refusal.trim())), "{record}");
    }
    // A permission has nothing to do with versions.
    let record = play(&format!("{again} 403 Forbidden"));
    assert!(record.ends_with("denied: 403 Forbidden\n"), "{record}");
    // The version 0 of the first list is one, too.
    let record = play_with(any(), "start\nrefuse 400 BadRequest");
    assert!(record.ends_with("connecting\n  LIST rv=\"\"\n"), "{record}");
}
