//! Issue 22, archives: a day as a file is what a history of that day alone would be.

use std::path::Path;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use kubediff_history::*;
use postgres_server::{Durability, Server};
use serde_json::json;

use crate::faults::{address, database, settings};
use crate::model::Model;
use crate::random::Play;
use crate::world::{Replaced, at, cluster, known, object, observation, retain};

/// What was written until now is of two days before.
fn two_days_pass(server: &Server, database: &str) {
    let days = "SELECT kubediff.prepare_days(current_date - 7), kubediff.prepare_days(current_date - 4);
                UPDATE kubediff.versions SET day = day - 2 WHERE day > '1970-01-01';
                UPDATE kubediff.contents SET day = day - 2; UPDATE kubediff.days SET day = day - 2";
    server.sql(database, days).unwrap();
}

fn day(before: i64) -> Date {
    Timestamp::now().to_zoned(TimeZone::UTC).date().checked_sub(before.days()).unwrap()
}

/// The history at the end of a day, as later days leave it: a state that noise has led to goes with the next one, and so does the end of an
/// object that was replaced and came back.
fn as_later(mut then: Model, now: &Model) -> Model {
    for (key, it) in &mut then.objects {
        let later = &now.objects[key];
        let is_another = later.rows.len() > it.rows.len();
        let rv = |state: &Option<Observation>| state.as_ref().map(|it| it.record.rv.clone());
        if is_another || rv(&it.state) != rv(&later.state) {
            it.state = None;
        }
        let was_replaced = it.rows.last().is_some_and(|row| row.observation.record.verb != Verb::Deleted);
        if is_another && was_replaced {
            it.ended = None;
        }
    }
    then.positions = now.positions.clone();
    then
}

fn archive(reader: &mut Reader, before: i64, file: &Path) -> Result<(), Error> {
    reader.archive(day(before), file, |notes, until| {
        assert_eq!(notes["a"], "b");
        notes.insert("until".to_owned(), until.unwrap().to_string());
    })
}

#[test]
fn a_day_as_a_file_is_what_a_history_of_that_day_would_be() {
    let server = Server::start(Durability::None).unwrap();
    let seeds = std::env::var("INFORMER_SOAK").map_or(1, |times| times.parse().unwrap());
    for seed in 0..seeds {
        println!("seed {seed}");
        play(&server, seed);
    }
}

fn play(server: &Server, seed: u64) {
    let name = database(server);
    let location = address(&server.address(&name));
    let open = || History::at(&location, &cluster(), &settings("a")).unwrap();
    let mut play = Play::new(seed, false);
    let mut ends = Vec::new();
    for _ in 0..2 {
        let mut history = open();
        play.model.reopened();
        for batch in 0..8 {
            history.commit(&play.batch()).unwrap();
            if batch == 4 {
                let edition = ends.len().to_string();
                let content = edition.clone().into_bytes();
                history.document(&Document { name: "version".to_owned(), edition, content }).unwrap();
            }
        }
        ends.push(play.model.clone());
        drop(history);
        two_days_pass(server, &name);
    }
    let [before, mut then] = ends.try_into().unwrap();
    // The third day begins after a time that was not watched.
    let mut history = open();
    let mut reader = history.reader().unwrap();
    play.model.reopened();
    let (from, last) = (at(play.clock), play.model.last);
    play.clock += 3_600;
    let until = at(play.clock);
    let mut batch = Batch::default();
    batch.gap(from, until, None, "nobody was there");
    play.model.gap(last, from, until, "nobody was there");
    then.gaps.push(play.model.gaps.last().unwrap().clone());
    let first = object("pods", Some("shop"), "first", "uid-first");
    let first = observation(&first, 1, until, &json!({}), known());
    play.model.observe(&first);
    batch.observe(first);
    batch.note("a", "b");
    history.commit(&batch).unwrap();
    play.clock += 60;
    for _ in 0..8 {
        history.commit(&play.batch()).unwrap();
    }
    // Something was masked since, and a part of the first day was removed.
    let masked = Replaced("abc");
    let mut scrub = history.scrub_of_all();
    while history.scrub(&mut scrub, &masked).unwrap() {}
    let mut then = as_later(then, &play.model);
    then.mask(&masked);
    let now = play.model.clone();
    play.model.mask(&masked);
    let all = Filter { gaps: true, ..Filter::default() };
    let kept = |after: u64| {
        let (records, _) = now.records(&all, &Page::oldest(usize::MAX));
        let count = records.iter().filter(|record| record.number().0 > after).count() as u64;
        Retention { count: Some(count), ..Retention::default() }
    };
    retain(&mut history, &kept(before.last / 2), at(play.clock));

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("day.db");
    assert_eq!(reader.days().unwrap(), [day(4), day(2)], "today is not over");
    archive(&mut reader, 2, &file).unwrap();
    then.forget(before.last);
    play.model = then;
    is_as(&mut play, &file, &mut reader, seed);
    assert_eq!(Reader::open(&file).unwrap().notes().unwrap()["until"], until.to_string());

    // A day of which a part was removed is what is left of it.
    let cut = before.last + (last - before.last) / 2;
    let cut = retain(&mut history, &kept(cut), at(play.clock)).complete_after.0;
    assert!(cut > before.last && cut < last, "seed {seed}: {cut}");
    let rest = folder.path().join("rest.db");
    // A process that was killed has left a part of it.
    std::fs::write(folder.path().join("rest.db-part"), "a part").unwrap();
    archive(&mut reader, 2, &rest).unwrap();
    play.model.forget(cut);
    is_as(&mut play, &rest, &mut reader, seed);

    // Whatever fails leaves nothing.
    let again = archive(&mut reader, 2, &file).unwrap_err();
    assert!(std::error::Error::source(&again).unwrap().to_string().contains("remove it"), "{again:?}");
    let other = folder.path().join("other.db");
    for (before, wanted) in [(0, "no day"), (4, "that are over and not removed")] {
        let none = archive(&mut reader, before, &other).unwrap_err().to_string();
        assert!(none.contains(wanted) && none.contains(&day(2).to_string()), "{none}");
    }
    let damage =
        format!("UPDATE kubediff.versions SET crc = crc + 1 WHERE number > {cut} AND number <= {last}");
    server.sql(&name, &damage).unwrap();
    let damaged = archive(&mut reader, 2, &other).unwrap_err();
    assert!(matches!(damaged, Error::Damaged { .. }), "{damaged:?}");
    let mut names: Vec<_> = folder.path().read_dir().unwrap().map(|it| it.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["day.db", "rest.db"]);
}

/// Whether a file is the model, with the ids of the history that it was copied from.
fn is_as(play: &mut Play, file: &Path, whole: &mut Reader, seed: u64) {
    let place = format!("seed {seed}, {}", file.display());
    let mut reader = Reader::open(file).unwrap();
    let checked = reader.check().unwrap();
    assert_eq!(checked.problems, [""; 0], "{place}");
    let versions: usize = play.model.objects.values().map(|it| it.rows.len()).sum();
    assert_eq!(checked.versions, versions as u64, "{place}");
    for _ in 0..5 {
        play.compare(&mut reader, &place);
    }
    let (here, there) = (reader.ids().unwrap(), whole.ids().unwrap());
    let last = Number(play.model.last);
    assert_eq!(here.of(last), there.of(last), "{place}");
    let since = reader.complete_since().unwrap().unwrap();
    let first = reader.first_since(since).unwrap();
    for number in first.0..=last.0 {
        let document = |reader: &mut Reader| reader.document("version", Number(number)).unwrap().unwrap();
        assert_eq!(document(&mut reader), document(whole), "{place}, record {number}");
    }
    assert_eq!(reader.cluster().unwrap(), whole.cluster().unwrap());
}
