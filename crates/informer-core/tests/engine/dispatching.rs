//! The notices of readers and the answers to callers after operations were applied, also by user code.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use informer_core::engine::{Input, Question, QuestionId, Start};
use informer_core::mailbox::{Delivery, Mode, WhenFull};
use informer_core::{Object, Scope};

use crate::play::{Play, namespace, pod, pods};

const ALL: Scope = Scope::All;

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn h8_a_sleeping_reader_is_woken_by_the_first_of_several_outcomes() {
    let mut play = Play::with_user_code([ALL]);
    play.list(&ALL, 10, &[]);
    play.accept(&ALL);
    let mode = Mode::Every { capacity: 10, when_full: WhenFull::Coalesce };
    let subscriber = play.engine.fanout().subscribe(Delivery { mode, ..Delivery::default() }).unwrap();
    subscriber.with_mailbox(|mailbox| mailbox.join(Vec::new(), 0));
    while subscriber.take().is_some() {}
    let woken = Arc::<Woken>::default();
    subscriber.register(&Waker::from(woken.clone()));
    play.holds = true;
    // The second one waits for the first one's user code, and both are dispatched together.
    play.event(&ALL, &pod("shop", "a", 11));
    play.event(&ALL, &pod("shop", "b", 12));
    play.user_code_returns();
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    assert_eq!(subscriber.backlog(), 2);
}

#[test]
fn h3_the_initial_list_is_reported_when_its_last_slice_is_dispatched() {
    let mut play = Play::new();
    let mode = Mode::Every { capacity: 10, when_full: WhenFull::Coalesce };
    let subscriber = play.engine.fanout().subscribe(Delivery { mode, ..Delivery::default() }).unwrap();
    subscriber.with_mailbox(|mailbox| mailbox.join(Vec::new(), 0));
    let mut start = Start::new(pods(), [ALL]);
    start.changes_at_once = 1;
    play.input(Input::Start(Box::new(start)));
    play.slices = true;
    play.list(&ALL, 10, &[pod("shop", "a", 5), pod("shop", "b", 6), pod("shop", "c", 7)]);
    assert_eq!(play.take("Synced"), [""; 0]);
    assert_eq!(subscriber.backlog(), 2);
    play.slices = false;
    play.input(Input::Tick);
    assert_eq!(play.take("Synced"), ["Synced"]);
}

#[test]
fn c3_an_index_function_that_fails_in_user_code_is_reported() {
    let mut play = Play::new();
    let cache = play.engine.cache().clone();
    let _index =
        cache.add_index(|_: &Arc<Object>| -> Result<Vec<String>, Box<dyn std::error::Error + Send + Sync>> {
            panic!("a bug of the user's")
        });
    play.input(Input::Start(Box::new(Start::new(pods(), [ALL]))));
    play.list(&ALL, 10, &[pod("shop", "a", 5)]);
    assert_eq!(play.take("IndexFailed").len(), 1);
}

#[test]
fn a_question_that_comes_while_user_code_runs_is_answered_when_it_returns() {
    let shop = namespace("shop");
    let mut play = Play::with_user_code([shop.clone()]);
    play.list(&shop, 10, &[]);
    play.accept(&shop);
    play.input(Input::Ask(QuestionId(1), Question::Reach(shop.clone())));
    assert_eq!(play.take("Answer").len(), 1);
    play.holds = true;
    play.event(&shop, &pod("shop", "a", 11));
    play.input(Input::Ask(QuestionId(2), Question::Reach(shop)));
    play.input(Input::Ask(QuestionId(3), Question::Checkpoint));
    assert_eq!(play.take("Answer"), [""; 0]);
    play.user_code_returns();
    let answers = play.take("Answer");
    assert_eq!(answers.len(), 2);
    assert!(answers[0].starts_with("Answer(QuestionId(2)") && answers[0].contains("11"), "{answers:?}");
}
