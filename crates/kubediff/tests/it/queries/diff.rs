//! `diff` between states of which other values were known or hidden.

use expect_test::{Expect, expect};
use kubediff::Secrets;
use serde_json::json;

use super::blame::{hiding, widget};
use super::run::run;
use super::world::World;

/// The answer to `kubediff diff` from half past twelve on.
fn check(seen: impl FnOnce(&mut World), expected: &Expect) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut world = World::open(&path, [7; 32]);
    seen(&mut world);
    drop(world);
    expected.assert_eq(&run(
        &path,
        &["diff", "widgets", "--from", "2026-03-01 12:30", "--to", "2026-03-01 13:30"],
    ));
}

#[test]
fn k4_a_field_that_is_hidden_at_one_of_the_times_only_does_not_differ() {
    let state = |size: u32, token: &str| {
        let list = json!([{"name": "a", "x": 1}, {"name": "b", "x": 2}]);
        widget(&json!({"size": size, "token": token, "deep": {"a": 1}, "list": list}))
    };
    let paths = ["spec.token", "spec.deep", "spec.list[*].name"];
    let hidden_before = |then: &'static str| {
        move |world: &mut World| {
            world.hides(hiding(&paths));
            world.wrote("12:00:00", "carol", state(1, "tokenwordsofcarol"));
            world.hides(hiding(&[]));
            world.wrote("12:40:00", "eve", state(2, then));
        }
    };
    check(
        hidden_before("tokenwordsofcarol"),
        &expect![[r#"
        2026-03-01 12:40:00  ~ widgets.example.com shop/w  (updated by eve) #2
            ~ spec.size: 1 → 2
        kubediff: the history ends at 2026-03-01 12:40:00: what happened later is not known
    "#]],
    );
    check(
        hidden_before("otherwordsofeve"),
        &expect![[r#"
            2026-03-01 12:40:00  ~ widgets.example.com shop/w  (updated by eve) #2
                ~ spec.size:  1 → 2
                ~ spec.token: <hmac:4408a3d1e7a9b4af 17 bytes> → otherwordsofeve
            kubediff: the history ends at 2026-03-01 12:40:00: what happened later is not known
        "#]],
    );
    check(
        |world| {
            world.wrote("12:00:00", "carol", state(1, "tokenwordsofcarol"));
            world.hides(hiding(&paths));
            world.wrote("12:40:00", "eve", state(2, "tokenwordsofcarol"));
        },
        &expect![[r#"
            2026-03-01 12:40:00  ~ widgets.example.com shop/w  (updated by eve) #2
                ~ spec.size: 1 → 2
            kubediff: the history ends at 2026-03-01 12:40:00: what happened later is not known
        "#]],
    );
    // All that differs is what is known.
    check(
        |world| {
            world.hides(hiding(&paths));
            world.wrote("12:00:00", "carol", state(1, "tokenwordsofcarol"));
            world.hides(hiding(&[]));
            world.wrote("12:40:00", "eve", state(2, "tokenwordsofcarol"));
            world.wrote("12:50:00", "eve", state(1, "tokenwordsofcarol"));
        },
        &expect![[r#"
            kubediff: nothing of widgets.example.com differs between 2026-03-01 12:30:00 and 2026-03-01 13:30:00; the history covers 2026-03-01 12:00:00 to 2026-03-01 12:50:00
            kubediff: the history ends at 2026-03-01 12:50:00: what happened later is not known
        "#]],
    );
}

#[test]
fn k4_marks_of_two_keys_are_no_difference_unless_a_record_says_so() {
    let state =
        |size: u32, token: &str, other: &str| widget(&json!({"size": size, "token": token, "other": other}));
    check(
        |world| {
            world.hides(hiding(&["spec.token", "spec.other"]));
            world.wrote("12:00:00", "carol", state(1, "tokenwordsofcarol", "a"));
            let mut secrets = Secrets::with_key([8; 32]);
            for path in ["spec.token", "spec.other"] {
                secrets.hide("Widget.example.com".parse().unwrap(), path.parse().unwrap());
            }
            world.hides(secrets);
            world.wrote("12:40:00", "eve", state(2, "tokenwordsofcarol", "b"));
        },
        &expect![[r#"
            2026-03-01 12:40:00  ~ widgets.example.com shop/w  (updated by eve) #2
                ~ spec.other: <hmac:ba6f3300411faf6a 1 bytes> → <hmac:9a65025387960070 1 bytes>
                ~ spec.size:  1 → 2
            kubediff: the hashes of 1 object were made with different keys: hidden values cannot be compared, and those are shown that a record has as changed
            kubediff: the history ends at 2026-03-01 12:40:00: what happened later is not known
        "#]],
    );
}

#[test]
fn k4_an_element_without_a_key_has_other_places_in_the_records() {
    let state = |args: &[&str]| widget(&json!({"args": args}));
    check(
        |world| {
            world.hides(hiding(&["spec.args[*]"]));
            world.wrote("12:00:00", "ann", state(&["a", "b"]));
            world.wrote("12:40:00", "bob", state(&["a", "c"]));
            world.wrote("12:50:00", "bob", state(&["z", "a", "c"]));
        },
        &expect![[r#"
            2026-03-01 12:50:00  ~ widgets.example.com shop/w  (updated by bob) #3
                + spec.args[0]: <hmac:4dad8aa07c4899ec 1 bytes>
                ~ spec.args[2]: <hmac:a387ee7713949c4a 1 bytes> → <hmac:8f9139a9bdf1dda5 1 bytes>
            kubediff: the history ends at 2026-03-01 12:50:00: what happened later is not known
        "#]],
    );
}

/// The eighth attack: the deletion had the number of a later creation, and the time of the question.
#[test]
fn k4_an_object_that_exists_again_later_was_deleted_when_it_was() {
    check(
        |world| {
            world.wrote("12:00:00", "ann", widget(&json!({"size": 1})));
            world.deleted("12:40:00", "Widget", "w");
            let mut again = widget(&json!({"size": 2}));
            again["metadata"]["uid"] = "w2".into();
            world.wrote("13:40:00", "bob", again);
        },
        &expect![[r#"
            2026-03-01 12:40:00  - widgets.example.com shop/w  (deleted) #2
                size  1
        "#]],
    );
}
