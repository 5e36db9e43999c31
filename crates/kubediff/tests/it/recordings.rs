//! A recording that is read is what was recorded.

use kubediff::render::{Renderer, json_line};
use kubediff::{
    Change, Entry, Gap, Gvk, Noise, Origin, Profile, Recording, Schemas, Secrets, Sighting, Tally,
};
use serde_json::{Value, json};

use crate::{random, support};

fn object(uid: u64, content: Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": "a\u{1b}[1m", "namespace": "shop", "uid": uid.to_string(), "resourceVersion": "7"},
        "spec": content,
    })
}

fn line(entry: &Entry) -> String {
    match entry {
        Entry::Change(change) => json_line(&change.with_objects()).unwrap(),
        Entry::Gap(gap) => json_line(gap).unwrap(),
    }
}

#[test]
fn a_recording_is_read_as_it_was_written() {
    let mut rng = support::seeded("recordings");
    let profile = Profile {
        noise: Noise::none(),
        secrets: Secrets::with_random_key().unwrap(),
        schemas: Schemas::default(),
    };
    let gvk = Gvk::new("example.com/v1", "Thing");
    let mut entries = Vec::new();
    while entries.len() < 2_000 {
        let sighting = Sighting {
            cluster: rng.bool().then_some("prod"),
            gvk: &gvk,
            resource: "things",
            observed_at: "2026-11-23T14:05:00.123456789Z".parse().unwrap(),
            origin: *rng.choice([Origin::Watch, Origin::List, Origin::Restart].iter()).unwrap(),
        };
        if rng.u8(..20) == 0 {
            let gap = Gap::since(sighting.observed_at, vec!["things.example.com".to_owned()], "403");
            entries.push(Entry::Gap(if rng.bool() { gap.until(sighting.observed_at) } else { gap }));
        }
        let (old, mut new) = random::pair(&mut rng);
        if rng.bool() {
            // Any number that JSON has.
            new = json!([new, f64::from_bits(rng.u64(..))]);
        }
        let (old, new) = (object(1, old), object(1 + u64::from(rng.u8(..10) == 0), new));
        let (old, new) = match rng.u8(..10) {
            0 => (None, Some(&new)),
            1 => (Some(&old), None),
            _ => (Some(&old), Some(&new)),
        };
        let mut tally = Tally::default();
        let states = crate::support::both(old, new);
        if let Some(mut change) = Change::between(&sighting, states, 1, &profile, &mut tally).change() {
            change.merged = if rng.u8(..10) == 0 { 3 } else { 1 };
            entries.push(Entry::Change(Box::new(change)));
        }
    }
    let written: String = entries.iter().map(line).collect();
    let read: Vec<Entry> = Recording::new(written.as_bytes()).collect::<Result<_, _>>().unwrap();
    for (read, written) in read.iter().map(line).zip(written.split_inclusive('\n')) {
        assert_eq!(read, written);
    }
    assert_eq!(read.len(), entries.len());
    let renderer = Renderer { width: 120, ..Renderer::default() };
    let text = |entry: &Entry| match entry {
        Entry::Change(change) => renderer.text(change) + &renderer.line(change, None),
        Entry::Gap(gap) => renderer.gap(gap, false),
    };
    for (read, entry) in read.iter().zip(&entries) {
        assert_eq!(text(read), text(entry));
    }
}

#[test]
fn what_is_no_recording_is_an_error_that_names_the_line() {
    let gap = json_line(&Gap::since("2026-11-23T14:05:00Z".parse().unwrap(), Vec::new(), "403")).unwrap();
    let error = |text: &str| {
        let read: Vec<_> = Recording::new(text.as_bytes()).collect();
        let (last, before) = read.split_last().unwrap();
        assert!(before.iter().all(Result::is_ok), "{read:?}");
        last.as_ref().unwrap_err().to_string()
    };
    assert_eq!(
        error(&format!("{gap}{}\n{gap}", r#"{"change": "updated", "name": "secret-value"}"#)),
        "line 2 is neither a change nor a gap as `kubediff record` writes them: missing field `observed_at`; another version of kubediff may \
         have written it"
    );
    assert!(error("hello\n").starts_with("line 1 is neither"));
    assert!(error("\u{1f}\n").starts_with("line 1 is neither"));
    assert_eq!(
        error(&(gap.clone() + gap.trim_end())),
        "line 2, the last one, is cut off: the recording was ended by force, and has everything before that line"
    );
    assert_eq!(Recording::new(&b""[..]).count(), 0);
}
