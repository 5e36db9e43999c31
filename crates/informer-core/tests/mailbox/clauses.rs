//! One promise at a time.

use std::sync::Arc;

use informer_core::mailbox::{Filtered, Mailbox, Notice, WhenFull};
use informer_core::{Change, Object, Origin};

use fuzzing::mailbox::reader::{
    LATEST, added, deleted, drain, every, joined, keeping, listed, object, short, split, updated,
};

#[test]
fn d1_a_queued_deletion_and_a_new_object_are_both_told() {
    let (one, gone, two) = (object("a", 1, 1), object("a", 1, 2), object("a", 2, 3));
    let story = |delivery| {
        let mut mailbox = joined(delivery);
        mailbox.offer(1, &added(&one));
        drain(&mut mailbox);
        mailbox.offer(2, &deleted(&one, &gone));
        mailbox.offer(3, &listed(added(&two)));
        drain(&mut mailbox)
    };
    let both = ["delete a@1 last a@2", "add a@3 listed"];
    assert_eq!(story(every(10, WhenFull::Coalesce)), both);
    assert_eq!(story(every(10, WhenFull::Drop)), both);
    assert_eq!(story(split(LATEST)), both);
    // One pending change per key says both in one.
    assert_eq!(story(LATEST), ["update a@1 -> a@3 listed"]);
}

#[test]
fn d2_a_tombstone_has_the_newest_state_even_of_what_was_only_queued() {
    let (one, two) = (object("a", 1, 1), object("a", 1, 2));
    let mut mailbox = joined(every(10, WhenFull::Coalesce));
    mailbox.offer(1, &added(&one));
    mailbox.offer(2, &updated(&one, &two));
    mailbox.offer(3, &listed(deleted(&two, &two)));
    let told = drain(&mut mailbox);
    assert_eq!(told, ["add a@1", "update a@1 -> a@2", "delete a@2 last a@2 listed"]);

    let mut mailbox = joined(LATEST);
    mailbox.offer(1, &added(&one));
    drain(&mut mailbox);
    mailbox.offer(2, &updated(&one, &two));
    mailbox.offer(3, &listed(deleted(&two, &two)));
    assert_eq!(drain(&mut mailbox), ["delete a@1 last a@2 listed"]);
}

#[test]
fn d2_what_was_never_told_needs_no_deletion() {
    let one = object("a", 1, 1);
    let mut mailbox = joined(LATEST);
    mailbox.offer(1, &added(&one));
    mailbox.offer(2, &listed(deleted(&one, &one)));
    assert_eq!(drain(&mut mailbox), [""; 0]);
}

/// A pending deletion keeps the origin of its own incarnation, whatever happens to later ones before the reader reads.
#[test]
fn h14_a_deletion_has_the_origin_of_its_own_incarnation() {
    let (one, gone) = (object("a", 1, 1), object("a", 1, 2));
    let (two, newer) = (object("a", 2, 3), object("a", 2, 4));
    let story = |changes: &[Change]| {
        let mut mailbox = joined(LATEST);
        mailbox.offer(1, &added(&one));
        drain(&mut mailbox);
        for (revision, change) in (2..).zip(changes) {
            mailbox.offer(revision, change);
        }
        drain(&mut mailbox)
    };
    let left = |change| Change { origin: Origin::Scope, ..change };
    let observed = ["delete a@1 last a@2"];
    let missed = ["delete a@1 last a@1 listed"];
    // A watch shows the deletion; the next incarnation leaves the view.
    assert_eq!(story(&[deleted(&one, &gone), added(&two), left(deleted(&two, &two))]), observed);
    // A list shows another incarnation, which changes, and is deleted.
    let replaced = listed(updated(&one, &two));
    assert_eq!(story(&[replaced.clone(), updated(&two, &newer), deleted(&newer, &newer)]), missed);
    assert_eq!(story(&[replaced, left(deleted(&two, &two))]), missed);
    // The namespace was removed, and has another incarnation when it returns: the former one must have been deleted.
    let returned = [left(deleted(&one, &one)), listed(added(&two)), left(deleted(&two, &two))];
    assert_eq!(story(&returned), missed);
    // The same incarnation returns, and is then deleted before the watch's eyes; or leaves once more.
    let returned = [left(deleted(&one, &one)), listed(added(&one)), deleted(&one, &gone)];
    assert_eq!(story(&returned), ["delete a@1 last a@2"]);
    assert_eq!(
        story(&[deleted(&one, &gone), added(&one), left(deleted(&one, &one))]),
        ["delete a@1 last a@1 left"]
    );
}

#[test]
fn h1_a_reader_of_the_cache_hears_of_what_came_and_went() {
    let (one, gone, two) = (object("a", 1, 1), object("a", 1, 2), object("a", 2, 3));
    let mut mailbox = joined(keeping(LATEST));
    mailbox.offer(1, &added(&one));
    mailbox.offer(2, &deleted(&one, &gone));
    assert_eq!(mailbox.backlog(), 1);
    assert_eq!(drain(&mut mailbox), ["add a@1", "delete a@1 last a@2"]);

    // It came again: that says enough.
    mailbox.offer(3, &added(&one));
    mailbox.offer(4, &deleted(&one, &gone));
    mailbox.offer(5, &added(&two));
    assert_eq!(drain(&mut mailbox), ["add a@3"]);

    // Its namespace left the view and came back.
    mailbox.offer(6, &listed(deleted(&two, &two)));
    mailbox.offer(7, &listed(added(&two)));
    assert_eq!(drain(&mut mailbox), ["update a@3 -> a@3 listed"]);
}

#[test]
fn d3_h10_two_lists_delete_once_with_the_newest_state() {
    let (one, two) = (object("a", 1, 1), object("a", 1, 5));
    for delivery in [LATEST, split(LATEST)] {
        let mut mailbox = joined(delivery);
        mailbox.offer(1, &added(&one));
        drain(&mut mailbox);
        // A list lacks it, a watch brings it again, the next list lacks it again; nobody has read anything.
        mailbox.offer(2, &listed(deleted(&one, &one)));
        mailbox.offer(3, &added(&two));
        mailbox.offer(4, &listed(deleted(&two, &two)));
        let told = drain(&mut mailbox);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("delete a@1 last") && told[0].ends_with(" listed"), "{told:?}");
    }
    let mut mailbox = joined(LATEST);
    mailbox.offer(1, &added(&one));
    drain(&mut mailbox);
    mailbox.offer(2, &listed(deleted(&one, &one)));
    mailbox.offer(3, &added(&two));
    mailbox.offer(4, &listed(deleted(&two, &two)));
    assert_eq!(drain(&mut mailbox), ["delete a@1 last a@5 listed"]);
}

#[test]
fn d7_h1_pending_keys_keep_their_order() {
    let (a, b, c) = (object("a", 1, 1), object("b", 1, 2), object("c", 1, 3));
    let mut mailbox = joined(LATEST);
    for object in [&c, &a, &b] {
        mailbox.offer(1, &added(object));
    }
    assert_eq!(drain(&mut mailbox), ["add c@3", "add a@1", "add b@2"]);
}

#[test]
fn d7_h1_a_key_that_comes_back_is_behind_the_others() {
    let (a, b, again) = (object("a", 1, 1), object("b", 1, 2), object("a", 2, 3));
    let mut mailbox = joined(LATEST);
    mailbox.offer(1, &added(&a));
    mailbox.offer(2, &deleted(&a, &a));
    mailbox.offer(3, &added(&b));
    mailbox.offer(4, &added(&again));
    assert_eq!(drain(&mut mailbox), ["add b@2", "add a@3"]);
}

#[test]
fn h1_merged_updates_go_from_the_state_told_to_the_newest() {
    let versions: Vec<_> = (1..=5).map(|version| object("a", 1, version)).collect();
    let mut mailbox = joined(LATEST);
    mailbox.offer(1, &added(&versions[0]));
    drain(&mut mailbox);
    for (revision, pair) in (2..).zip(versions.windows(2)) {
        mailbox.offer(revision, &updated(&pair[0], &pair[1]));
    }
    assert_eq!(mailbox.backlog(), 1);
    assert_eq!(drain(&mut mailbox), ["update a@1 -> a@5"]);
}

#[test]
fn h2_what_is_there_comes_first_then_synced_then_the_changes_since() {
    let (a, b) = (object("a", 1, 1), object("b", 1, 2));
    let mut mailbox = Mailbox::new(LATEST, true);
    mailbox.offer(3, &added(&b));
    assert!(mailbox.take().is_none(), "nothing is told before the content");
    mailbox.join(vec![a], 2);
    assert_eq!(drain(&mut mailbox), ["add a@1 listed initial", "synced", "add b@2"]);
}

#[test]
fn m1_the_backlog_counts_the_first_content_too() {
    let (a, b, c) = (object("a", 1, 1), object("b", 1, 2), object("c", 1, 3));
    let mut mailbox = Mailbox::new(LATEST, true);
    mailbox.offer(3, &added(&c));
    assert_eq!(mailbox.backlog(), 1);
    mailbox.join(vec![a, b], 2);
    for left in [3, 2, 1] {
        assert_eq!(mailbox.backlog(), left);
        while !matches!(mailbox.take(), Some(Notice::Change { .. })) {}
    }
    assert_eq!(mailbox.backlog(), 0);
}

#[test]
fn h2_changes_that_the_snapshot_has_are_not_told_again() {
    let (a, b, c) = (object("a", 1, 1), object("b", 1, 2), object("c", 1, 3));
    for delivery in [LATEST, every(10, WhenFull::Coalesce), every(10, WhenFull::Drop)] {
        let mut mailbox = Mailbox::new(delivery, true);
        mailbox.offer(1, &added(&a));
        mailbox.join(vec![a.clone(), b.clone()], 2);
        // The cache was ahead of this one when the snapshot was taken.
        mailbox.offer(2, &added(&b));
        mailbox.offer(3, &added(&c));
        let told = drain(&mut mailbox);
        assert_eq!(
            told,
            ["add a@1 listed initial", "add b@2 listed initial", "synced", "add c@3"],
            "{delivery:?}"
        );
    }
}

#[test]
fn h3_h4_the_first_content_is_marked_and_synced_comes_after_it() {
    let (a, b, c) = (object("a", 1, 1), object("b", 1, 2), object("c", 1, 3));
    let newer = object("a", 1, 4);
    let mut mailbox = Mailbox::new(LATEST, false);
    mailbox.join(Vec::new(), 0);
    mailbox.offer(1, &added(&a));
    mailbox.offer(1, &added(&b));
    assert_eq!(short(&mailbox.take().unwrap()), "add a@1 initial");
    mailbox.cache_synced();
    mailbox.cache_synced();
    mailbox.offer(2, &added(&c));
    mailbox.offer(3, &updated(&a, &newer));
    let told = drain(&mut mailbox);
    assert_eq!(told, ["add b@2 initial", "synced", "add c@3", "update a@1 -> a@4"]);
}

#[test]
fn h4_nothing_is_also_a_first_content() {
    let mut mailbox = Mailbox::new(LATEST, false);
    mailbox.join(Vec::new(), 0);
    assert_eq!(drain(&mut mailbox), [""; 0]);
    mailbox.cache_synced();
    assert_eq!(drain(&mut mailbox), ["synced"]);
}

#[test]
fn h4_synced_waits_for_the_second_half_of_a_recreation() {
    let (one, two) = (object("a", 1, 1), object("a", 2, 2));
    let mut mailbox = Mailbox::new(split(LATEST), false);
    mailbox.join(Vec::new(), 0);
    mailbox.offer(1, &added(&one));
    drain(&mut mailbox);
    mailbox.offer(2, &deleted(&one, &one));
    mailbox.offer(3, &added(&two));
    mailbox.cache_synced();
    let told = drain(&mut mailbox);
    assert_eq!(told, ["delete a@1 last a@1 initial", "add a@2 initial", "synced"]);
}

#[test]
fn h8_one_pending_change_per_key_however_many_there_were() {
    let mut mailbox = joined(LATEST);
    let mut now: Vec<_> = (0..100).map(|key| object(&format!("pod-{key}"), 1, 1)).collect();
    for object in &now {
        mailbox.offer(1, &added(object));
    }
    drain(&mut mailbox);
    let weak: Vec<_> = (2..102)
        .flat_map(|version| {
            let mut replaced = Vec::new();
            for (key, held) in now.iter_mut().enumerate() {
                let next = object(&format!("pod-{key}"), 1, version);
                mailbox.offer(version, &updated(held, &next));
                replaced.push(std::sync::Arc::downgrade(held));
                *held = next;
            }
            replaced
        })
        .collect();
    assert_eq!(mailbox.backlog(), 100);
    // Of the 10,000 replaced versions it keeps the 100 that were told last.
    assert_eq!(weak.iter().filter(|version| version.strong_count() > 0).count(), 100);
    assert_eq!(drain(&mut mailbox).len(), 100);
}

#[test]
fn h8_of_a_large_backlog_nothing_is_lost() {
    let mut mailbox = Mailbox::new(LATEST, false);
    mailbox.join(Vec::new(), 0);
    for number in 1..=1_000 {
        mailbox.offer(number, &listed(added(&object(&format!("a-{number}"), 1, number))));
    }
    mailbox.cache_synced();
    let told = drain(&mut mailbox);
    assert_eq!(told.len(), 1_001);
    assert_eq!(told[999], "add a-1000@1000 listed initial");
    assert_eq!(told[1_000], "synced");
}

#[test]
fn h8_every_change_up_to_its_bound_then_merged() {
    let versions: Vec<_> = (1..=6).map(|version| object("a", 1, version)).collect();
    let mut mailbox = joined(every(2, WhenFull::Coalesce));
    mailbox.offer(1, &added(&versions[0]));
    for (revision, pair) in (2..).zip(versions.windows(2)) {
        mailbox.offer(revision, &updated(&pair[0], &pair[1]));
    }
    assert_eq!(mailbox.backlog(), 3);
    assert_eq!(drain(&mut mailbox), ["add a@1", "update a@1 -> a@2", "update a@2 -> a@6"]);
}

#[test]
fn h8_dropped_changes_are_counted() {
    let versions: Vec<_> = (1..=6).map(|version| object("a", 1, version)).collect();
    let mut mailbox = joined(every(2, WhenFull::Drop));
    mailbox.offer(1, &added(&versions[0]));
    for (revision, pair) in (2..).zip(versions.windows(2)) {
        mailbox.offer(revision, &updated(&pair[0], &pair[1]));
    }
    assert_eq!(mailbox.backlog(), 2);
    assert_eq!(drain(&mut mailbox), ["lagged 4", "update a@4 -> a@5", "update a@5 -> a@6"]);
}

#[test]
fn h2_h8_the_first_content_is_not_dropped() {
    let mut mailbox = Mailbox::new(every(2, WhenFull::Drop), false);
    mailbox.join(Vec::new(), 0);
    let objects: Vec<_> = (0..5).map(|key| object(&format!("pod-{key}"), 1, key + 1)).collect();
    for object in &objects {
        mailbox.offer(1, &added(object));
    }
    mailbox.cache_synced();
    let newer = object("pod-0", 1, 9);
    mailbox.offer(2, &updated(&objects[0], &newer));
    let told = drain(&mut mailbox);
    assert_eq!(told.iter().filter(|line| line.ends_with(" initial")).count(), 5, "{told:?}");
    assert_eq!(told[5..], ["synced", "update pod-0@1 -> pod-0@9"]);
}

#[test]
fn h11_a_recreation_is_one_update_or_two_changes_by_choice() {
    let (one, two) = (object("a", 1, 1), object("a", 2, 5));
    let story = |delivery| {
        let mut mailbox = joined(delivery);
        mailbox.offer(1, &added(&one));
        drain(&mut mailbox);
        mailbox.offer(2, &listed(updated(&one, &two)));
        drain(&mut mailbox)
    };
    let both = ["delete a@1 last a@1 listed", "add a@5 listed"];
    assert_eq!(story(LATEST), ["update a@1 -> a@5 listed"]);
    assert_eq!(story(every(9, WhenFull::Drop)), ["update a@1 -> a@5 listed"]);
    assert_eq!(story(split(LATEST)), both);
    assert_eq!(story(split(every(9, WhenFull::Drop))), both);
    assert_eq!(story(split(every(9, WhenFull::Coalesce))), both);
}

#[test]
fn h11_a_second_incarnation_that_came_and_went_is_not_told() {
    let (one, two) = (object("a", 1, 1), object("a", 2, 5));
    let mut mailbox = joined(split(LATEST));
    mailbox.offer(1, &added(&one));
    drain(&mut mailbox);
    mailbox.offer(2, &updated(&one, &two));
    mailbox.offer(3, &deleted(&two, &two));
    assert_eq!(drain(&mut mailbox), ["delete a@1 last a@1"]);
}

#[test]
fn h1_h11_a_merged_deletion_names_the_incarnation_that_was_told() {
    let (one, two, three) = (object("a", 1, 1), object("a", 2, 5), object("a", 3, 7));
    let (gone, later) = (object("a", 1, 4), object("a", 2, 6));
    for (changes, last) in [
        ([updated(&one, &two), deleted(&two, &later)].as_slice(), "a@1"),
        // The event of the deletion has the last state of this incarnation.
        (&[deleted(&one, &gone), added(&two), deleted(&two, &later)], "a@4"),
        (&[updated(&one, &two), updated(&two, &three), deleted(&three, &three)], "a@1"),
    ] {
        let mut mailbox = joined(LATEST);
        mailbox.offer(1, &added(&one));
        drain(&mut mailbox);
        for (revision, change) in (2..).zip(changes) {
            mailbox.offer(revision, change);
        }
        assert_eq!(drain(&mut mailbox), [format!("delete a@1 last {last}")], "{changes:?}");
    }
}

#[test]
fn the_revision_is_that_of_the_last_change_offered() {
    let mut mailbox = Mailbox::new(LATEST, true);
    assert_eq!(mailbox.revision(), 0);
    mailbox.join(Vec::new(), 7);
    assert_eq!(mailbox.revision(), 7);
    mailbox.offer(5, &added(&object("a", 1, 1)));
    assert_eq!((mailbox.revision(), mailbox.backlog()), (7, 0));
    mailbox.offer(8, &added(&object("a", 1, 1)));
    assert_eq!((mailbox.revision(), mailbox.backlog()), (8, 1));
    assert!(matches!(mailbox.take(), Some(Notice::Synced)));
}

#[test]
fn h3_changes_that_were_dropped_are_told_of_after_the_first_content() {
    // Told before it, nothing would say that what the first content has of `a` is outdated.
    let (one, gone) = (object("a", 1, 1), object("a", 1, 2));
    let mut mailbox = Mailbox::new(every(1, WhenFull::Drop), false);
    mailbox.join(Vec::new(), 0);
    mailbox.offer(1, &added(&one));
    mailbox.cache_synced();
    mailbox.offer(2, &deleted(&one, &gone));
    mailbox.offer(3, &added(&object("b", 2, 3)));
    assert_eq!(drain(&mut mailbox), ["add a@1 initial", "synced", "lagged 1", "add b@3"]);
}

#[test]
fn h9_what_is_the_same_again_is_not_told() {
    // As when a namespace is looked at no more, and then again.
    let one = || object("a", 1, 1);
    let mut mailbox = joined(LATEST);
    mailbox.offer(1, &added(&one()));
    drain(&mut mailbox);
    mailbox.offer(2, &deleted(&one(), &one()));
    mailbox.offer(3, &listed(added(&one())));
    assert_eq!(drain(&mut mailbox), [""; 0]);
    assert_eq!(mailbox.backlog(), 0);
}

/// The saved objects are delivered before anything else, and objects that are gone since are delivered as deleted.
#[test]
fn p2_h2_a_snapshot_from_after_a_load_is_newer_than_what_was_loaded() {
    let (a, b) = (object("a", 1, 1), object("b", 1, 2));
    let mut mailbox = Mailbox::new(LATEST, true);
    mailbox.load(1, vec![a.clone()]);
    mailbox.offer(2, &added(&b));
    mailbox.join(vec![a, b], 2);
    assert_eq!(drain(&mut mailbox), ["add a@1 listed initial", "add b@2 listed initial", "synced"]);
}

#[test]
fn p2_a_deletion_since_the_save_is_told_to_whoever_has_not_heard_of_the_object() {
    let (one, two, new) = (object("a", 1, 1), object("b", 1, 2), object("b", 1, 5));
    let content = [one.clone(), two.clone()];
    let told = ["add a@1 listed initial", "add b@2 listed initial", "delete a@1 last a@1 listed initial"];
    let after = ["update b@2 -> b@5 listed initial", "synced"];
    let expected: Vec<_> = told.into_iter().chain(after).collect();
    for delivery in [LATEST, every(1, WhenFull::Coalesce), every(1, WhenFull::Drop), split(LATEST)] {
        let changes = |mailbox: &mut Mailbox| {
            mailbox.offer(2, &listed(deleted(&one, &one)));
            mailbox.offer(2, &listed(updated(&two, &new)));
            mailbox.cache_synced();
        };
        // Joined before, in the middle with an older snapshot, and afterwards with the cache's content.
        let mut mailbox = Mailbox::new(delivery, false);
        mailbox.join(Vec::new(), 0);
        mailbox.load(1, content.to_vec());
        changes(&mut mailbox);
        assert_eq!(drain(&mut mailbox), expected, "{delivery:?}");

        let mut mailbox = Mailbox::new(delivery, false);
        mailbox.load(1, content.to_vec());
        mailbox.join(Vec::new(), 0);
        changes(&mut mailbox);
        assert_eq!(drain(&mut mailbox), expected, "{delivery:?}");

        let mut mailbox = Mailbox::new(delivery, false);
        mailbox.load(1, content.to_vec());
        mailbox.join(content.to_vec(), 1);
        changes(&mut mailbox);
        assert_eq!(drain(&mut mailbox), expected, "{delivery:?}");

        let mut mailbox = Mailbox::new(delivery, false);
        mailbox.join(content.to_vec(), 1);
        mailbox.load(1, content.to_vec());
        changes(&mut mailbox);
        assert_eq!(drain(&mut mailbox), expected, "{delivery:?}");
    }
}

/// The change as a filter of odd versions passes it.
fn odd(change: Change) -> String {
    let is_odd =
        |object: &Arc<Object>| object.resource_version().to_string().ends_with(['1', '3', '5', '7', '9']);
    match Filtered::of(change.delta, is_odd, is_odd) {
        None => "nothing".to_owned(),
        Some(Filtered::Added(new)) => format!("add {new:?}"),
        Some(Filtered::Updated { old, new }) => format!("update {old:?} -> {new:?}"),
        Some(Filtered::Left { last }) => format!("left {last:?}"),
        Some(Filtered::Deleted { old, last }) => format!("delete {old:?} last {last:?}"),
    }
}

#[test]
fn h12_a_filter_makes_additions_and_deletions_of_updates_across_its_border() {
    let version = |version| object("a", 1, version);
    assert_eq!(odd(added(&version(1))), "add a@1");
    assert_eq!(odd(added(&version(2))), "nothing");
    assert_eq!(odd(updated(&version(1), &version(3))), "update a@1 -> a@3");
    assert_eq!(odd(updated(&version(2), &version(3))), "add a@3");
    assert_eq!(odd(updated(&version(1), &version(2))), "left a@1");
    assert_eq!(odd(updated(&version(2), &version(4))), "nothing");
    assert_eq!(odd(deleted(&version(1), &version(2))), "delete a@1 last a@2");
    assert_eq!(odd(deleted(&version(2), &version(3))), "nothing");
}

#[test]
fn h11_h12_an_incarnation_whose_next_one_does_not_match_was_deleted() {
    let (one, again) = (object("a", 1, 1), |version| object("a", 2, version));
    assert_eq!(odd(updated(&one, &again(2))), "delete a@1 last a@1");
    assert_eq!(odd(updated(&one, &again(3))), "update a@1 -> a@3");
}
