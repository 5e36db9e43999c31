//! Random stories, as the crate `fuzzing` tells them to mailboxes and believes them.

use fuzzing::mailbox::reader::{LATEST, every, keeping, split};
use fuzzing::{Choices, mailbox, seeds};
use informer_core::mailbox::{Delivery, WhenFull};

fn all_runs(delivery: Delivery) {
    seeds::each(0..400, |seed| {
        let bytes = seeds::bytes(seed, fastrand::Rng::with_seed(seed).usize(..400));
        mailbox::run_with(Choices::new(&bytes), delivery);
    });
}

#[test]
fn h1_h2_h3_h4_h8_random_stories_with_one_pending_change_per_key() {
    all_runs(LATEST);
    all_runs(split(LATEST));
    all_runs(keeping(LATEST));
    all_runs(keeping(split(LATEST)));
}

#[test]
fn h1_h2_h3_h4_h8_random_stories_of_every_change_merged_when_full() {
    for capacity in [1, 3, 10, 1_000] {
        all_runs(every(capacity, WhenFull::Coalesce));
        all_runs(split(every(capacity, WhenFull::Coalesce)));
        all_runs(keeping(every(capacity, WhenFull::Coalesce)));
    }
}

#[test]
fn h1_h2_h3_h4_h8_random_stories_of_every_change_dropped_when_full() {
    for capacity in [1, 3, 10, 1_000] {
        all_runs(every(capacity, WhenFull::Drop));
        all_runs(split(every(capacity, WhenFull::Drop)));
    }
}

#[test]
fn h1_every_change_is_every_change() {
    seeds::each(0..300, |seed| mailbox::run_with_room(Choices::new(&seeds::bytes(seed, 800))));
}
