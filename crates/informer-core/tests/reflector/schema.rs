//! L14: a changed schema starts a list.

use std::time::Duration;

use expect_test::expect;
use informer_core::reflector::ReflectorConfig;

use crate::script::Play;
use crate::watch::watching;

#[test]
fn l14_a_changed_schema_starts_one_paced_list_and_the_watch_goes_on_where_that_fails() {
    expect![[r#"
        > schema
        > schema
        > added b@11
          + b@11
        > deadline
          cancel
          disconnected: a schema has changed, and objects may look different without a write
          connecting
          LIST rv="11"
        > break
          discard
          disconnected: the response broke off: reset
          retrying 1: the response broke off: reset
        > deadline
          WATCH rv="11"
        > accept
          live since resourceVersion 11
        > modified b@12
          ~ b@11 -> b@12
        > deadline
          cancel
          disconnected: a schema has changed, and objects may look different without a write
          connecting
          LIST rv="12"
        > accept
          syncing, 0 objects received
        > items a@5 b@12
        > done rv=13
          commit "13"
          WATCH rv="13"
        > accept
          live since resourceVersion 13
        > +2m
    "#]]
    .assert_eq(&watching(
        "schema
         schema
         added b@11
         deadline
         break
         deadline
         accept
         modified b@12
         deadline
         accept
         items a@5 b@12
         done rv=13
         accept
         +2m",
    ));
}

#[test]
fn l14_a_list_that_begins_after_the_schema_has_changed_is_enough() {
    let record = watching(
        "end
         schema
         +2s
         error 410 Expired
         items a@5
         done rv=13
         accept
         +1m
         +1m",
    );
    assert_eq!(record.matches("LIST").count(), 1, "{record}");
}

#[test]
fn l14_a_watch_without_an_answer_has_its_time_though_a_list_is_due() {
    let config = ReflectorConfig { relist_spread: Duration::from_secs(1), ..ReflectorConfig::default() };
    let mut play = Play::new(config);
    play.skip("start\ndone rv=10");
    play.script("schema\n+2s\naccept");
    // The list is due at once, now that nothing is interrupted.
    play.script("+1ms");
    expect![[r#"
        > schema
        > +2s
        > accept
          live since resourceVersion 10
        > +1ms
          cancel
          disconnected: a schema has changed, and objects may look different without a write
          connecting
          LIST rv="10"
    "#]]
    .assert_eq(&play.into_record());
}
