//! Packing returns the bytes unchanged, makes a dictionary when it pays, and keeps within bounds.

use std::borrow::Cow;
use std::sync::Arc;

use super::*;

/// Objects of kinds that share only their form: about 3 KB each, of which some 50 bytes are unique.
fn object(kind: u64, number: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(kind);
    let mut text = format!(r#"{{"kind":"Kind{kind}","metadata":{{"name":"{number}","uid":"#);
    text.push_str(&format!("\"{:032x}\"}}", fastrand::Rng::with_seed(number ^ (kind << 32)).u128(..)));
    for _ in 0..60 {
        let (name, value) = (random.u64(..), random.u128(..));
        text.push_str(&format!(r#","field{name:x}":"{value:x}""#));
    }
    text.push('}');
    text.into_bytes()
}

fn keep(storage: &PackedStorage, bytes: &[u8]) -> Stored {
    storage.keep(Cow::Borrowed(bytes))
}

fn kept(storage: &PackedStorage, kind: u64, count: u64) -> Vec<(Vec<u8>, Stored)> {
    let objects = (0..count).map(|number| object(kind, number));
    objects.map(|bytes| (bytes.clone(), keep(storage, &bytes))).collect()
}

fn assert_readable(objects: &[(Vec<u8>, Stored)]) {
    for (bytes, stored) in objects {
        assert_eq!(*stored.read().unwrap(), **bytes);
        assert_eq!(stored.length(), bytes.len());
    }
}

#[test]
fn a_few_objects_have_no_dictionary() {
    let storage = PackedStorage::new();
    let objects = kept(&storage, 1, 10);
    assert_eq!(storage.choice().dictionaries(), 0);
    assert_readable(&objects);
    assert!(storage.shared_bytes() < 32 << 10, "{storage:?}");
}

#[test]
fn many_that_resemble_each_other_take_a_few_bytes_each() {
    let storage = PackedStorage::new();
    let objects = kept(&storage, 1, 400);
    assert_eq!(storage.choice().dictionaries(), 1);
    let (bytes, last) = objects.last().unwrap();
    assert!(last.held_bytes() * 20 < bytes.len(), "{last:?} of {}", bytes.len());
    assert_readable(&objects);
}

#[test]
fn a_dictionary_grows_by_what_it_does_not_cover_and_older_objects_stay_readable() {
    let storage = PackedStorage::new();
    let mut all = kept(&storage, 1, 400);
    for kind in 2..8 {
        let objects = kept(&storage, kind, 200);
        let (first, last) = (&objects.first().unwrap().1, &objects.last().unwrap().1);
        assert!(last.held_bytes() * 5 < first.held_bytes(), "kind {kind}: {first:?}, then {last:?}");
        all.extend(objects);
    }
    assert_eq!(storage.choice().dictionaries(), 1);
    assert_readable(&all);
    // The dictionary still covers the former kind.
    let again = keep(&storage, &object(1, 1_000));
    assert!(again.held_bytes() < 200, "{again:?}");
}

#[test]
fn what_is_new_packs_well_after_more_content_than_one_dictionary_has() {
    let storage = PackedStorage::new();
    let (mut cache, mut some) = (Vec::new(), Vec::new());
    let (mut content, mut missed) = (0, Vec::new());
    for kind in 0..200_u64 {
        let shape: Vec<u8> = (0..4).flat_map(|part| object(4 * kind + part, 0)).collect();
        content += shape.len();
        let mut random = fastrand::Rng::with_seed(kind);
        let objects = (0..48).map(|_| [&random.u128(..).to_le_bytes()[..], &shape].concat());
        let mut objects: Vec<_> = objects.map(|bytes| (keep(&storage, &bytes), bytes)).collect();
        let (last, bytes) = objects.pop().unwrap();
        if last.held_bytes() * 10 >= bytes.len() {
            missed.push(kind);
        }
        some.push((bytes, last));
        // The cache keeps the objects, so that the content of dictionaries may grow.
        cache.extend(objects.into_iter().map(|(stored, _)| stored));
    }
    assert!(content > zstd_dictionary::MOST_CONTENT * 5 / 4, "{content}");
    // One or two kinds are missed before the storage notices that the first dictionary is full.
    assert!(missed.len() <= 2, "{missed:?} of 200, {storage:?}");
    assert_eq!(storage.choice().dictionaries(), 2, "{storage:?}");
    assert_readable(&some);
}

#[test]
fn dictionaries_follow_what_changes_and_those_that_nothing_needs_are_freed() {
    let storage = PackedStorage::new();
    let mut some = Vec::new();
    for kind in 0..60 {
        let objects = kept(&storage, kind, 100);
        // One object of each kind stays alive.
        some.extend(objects.into_iter().take(1));
        let count = storage.choice().dictionaries();
        let held = storage.shared_bytes();
        assert!(count <= 4 && held < 700 << 10, "kind {kind}: {storage:?}");
    }
    assert_readable(&some);
    drop(some);
    // When the old objects go, their dictionaries are freed.
    kept(&storage, 1_000, 100);
    assert!(storage.choice().dictionaries() <= 2, "{storage:?}");
}

#[test]
fn what_does_not_shrink_is_kept_as_it_is() {
    let storage = PackedStorage::new();
    let mut random = fastrand::Rng::with_seed(7);
    for length in [0, 1, 10, 1_000, 100_000] {
        let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
        let stored = keep(&storage, &bytes);
        assert_eq!(*stored.read().unwrap(), *bytes);
        assert!(stored.held_bytes() >= length, "{length} bytes");
    }
    assert_eq!(storage.choice().dictionaries(), 0);
}

#[test]
fn objects_of_any_length_come_back() {
    let storage = PackedStorage::new();
    let mut objects = kept(&storage, 1, 200);
    for parts in [1, 10, 30, 100, 1_000] {
        let bytes = (0..parts).flat_map(|number| object(number % 50, number)).collect::<Vec<u8>>();
        let stored = keep(&storage, &bytes);
        assert!(stored.held_bytes() < bytes.len());
        objects.push((bytes, stored));
    }
    assert_readable(&objects);
}

#[test]
fn one_thread_packs_while_others_unpack() {
    let storage = PackedStorage::new();
    let (to_readers, objects) = std::sync::mpsc::channel::<Arc<(Vec<u8>, Stored)>>();
    let objects = Mutex::new(objects);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let next = objects.lock().unwrap().recv();
                    let Ok(next) = next else { break };
                    assert_eq!(*next.1.read().unwrap(), *next.0);
                }
            });
        }
        for kind in 0..5 {
            kept(&storage, kind, 100).into_iter().for_each(|it| to_readers.send(Arc::new(it)).unwrap());
        }
        drop(to_readers);
    });
    assert!(storage.choice().dictionaries() > 0);
}

#[test]
fn several_threads_pack_at_once_and_each_object_comes_back() {
    for threads in [2_u64, 4] {
        let storage = PackedStorage::new();
        // Each thread packs objects of its own shapes all the time; one dictionary grows for all of them.
        let shapes_of = |thread: u64| (0..24).map(move |shape| shape * threads + thread);
        let all = std::thread::scope(|scope| {
            let keeping = |thread| {
                let storage = &storage;
                scope.spawn(move || {
                    shapes_of(thread).flat_map(|kind| kept(storage, kind, 60)).collect::<Vec<_>>()
                })
            };
            let writers: Vec<_> = (0..threads).map(keeping).collect();
            writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(storage.choice().dictionaries() > 0, "{threads} threads: {storage:?}");
        assert_readable(&all);
    }
}

#[test]
fn after_an_attempt_that_panicked_there_are_others() {
    let storage = PackedStorage::new();
    std::thread::scope(|scope| {
        let attempt = scope.spawn(|| {
            let _alone = storage.attempts.lock();
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(attempt.join().is_err() && storage.attempts.is_poisoned());
    });
    assert_readable(&kept(&storage, 1, 200));
    assert_eq!(storage.choice().dictionaries(), 1);
}

#[test]
fn a_damaged_frame_is_an_error_or_other_bytes_of_the_same_length() {
    let storage = PackedStorage::new();
    let whole = object(1, 1);
    kept(&storage, 1, 200);
    let current = storage.choice().current().unwrap();
    let frame = pack(&whole, Some(&current.packing)).unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..2_000 {
        let mut damaged = frame.to_vec();
        let at = random.usize(..damaged.len());
        match round % 3 {
            0 => damaged[at] ^= 1 << random.u8(..8),
            1 => damaged.truncate(at),
            _ => damaged.insert(at, random.u8(..)),
        }
        let length = u32::try_from(whole.len()).unwrap() - u32::from(round % 7 == 0);
        let stored = Stored::packed(damaged.into(), length, Some(current.family.clone()));
        match stored.read() {
            Ok(bytes) => assert_eq!(bytes.len(), length as usize, "round {round}"),
            Err(error) => assert!(!error.to_string().is_empty(), "round {round}"),
        }
    }
}

#[test]
fn what_is_kept_is_small() {
    assert_eq!(size_of::<Stored>(), 32);
}
