//! Time never goes back, unless the server itself did (contract L12).

use expect_test::expect;

use crate::script::play;

#[test]
fn l12_an_older_list_is_not_applied() {
    expect![[r#"
        > start
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
        > items
        > done rv=8
          discard
          disconnected: the list answered with the older resourceVersion 8; 10 was already seen
          connecting
          LIST rv=""
        > items a@5 b@11
        > done rv=12
          commit "12"
          + b@11 by list
          WATCH rv="12"
        > cache
          a@5 b@11 at "12"
    "#]]
    .assert_eq(&play(
        "start
         items a@5
         done rv=10
         accept
         error 500 Whatever
         deadline
         items
         done rv=8
         items a@5 b@11
         done rv=12
         cache",
    ));
}

#[test]
fn l12_a_restored_server_is_reported_and_followed() {
    // After the backup was restored, version 11 was given anew, to another state of `b`.
    expect![[r#"
        > start
          connecting
          LIST rv=""
        > items a@5 b@11#lost c@12
        > done rv=12
          commit "12"
          + a@5 by list
          + b@11 by list
          + c@12 by list
          WATCH rv="12"
        > accept
          live since resourceVersion 12
        > error 500 Whatever
          cancel
          disconnected: the watch ended with an error: 500 Whatever
          retrying 1: the watch ended with an error: 500 Whatever
        > deadline
          connecting
          LIST rv="12"
        > refuse 504 Timeout cause=type
          discard
          disconnected: the resourceVersion is not available: 504 Timeout
          connecting
          LIST rv=""
        > head rv=11
        > items a@5 b@11#again
        > done rv=11
          server restored: 12 -> 11
          commit "11"
          - c@12 by list
          ~ b@11 -> b@11 by list
          WATCH rv="11"
        > accept
          live since resourceVersion 11
        > cache
          a@5 b@11 at "11"
    "#]]
    .assert_eq(&play(
        "start
         items a@5 b@11#lost c@12
         done rv=12
         accept
         error 500 Whatever
         deadline
         refuse 504 Timeout cause=type
         head rv=11
         items a@5 b@11#again
         done rv=11
         accept
         cache",
    ));
}

#[test]
fn l12_a_restored_server_is_found_out_though_its_version_comes_last() {
    expect![[r#"
        > start
          connecting
          LIST rv=""
        > items b@11#lost
        > done rv=12
          commit "12"
          + b@11 by list
          WATCH rv="12"
        > accept
          live since resourceVersion 12
        > error 500 Whatever
          cancel
          disconnected: the watch ended with an error: 500 Whatever
          retrying 1: the watch ended with an error: 500 Whatever
        > deadline
          connecting
          LIST rv="12"
        > items b@11#again
        > done rv=11
          discard
          disconnected: the list answered with the older resourceVersion 11; 12 was already seen
          connecting
          LIST rv=""
        > items b@11#again
        > done rv=11
          discard
          disconnected: the list answered with the older resourceVersion 11; 12 was already seen
          connecting
          LIST rv=""
        > items b@11#again
        > done rv=11
          server restored: 12 -> 11
          commit "11"
          ~ b@11 -> b@11 by list
          WATCH rv="11"
        > cache
          b@11 at "11"
    "#]]
    .assert_eq(&play(
        "start
         items b@11#lost
         done rv=12
         accept
         error 500 Whatever
         deadline
         items b@11#again
         done rv=11
         items b@11#again
         done rv=11
         items b@11#again
         done rv=11
         cache",
    ));
}
