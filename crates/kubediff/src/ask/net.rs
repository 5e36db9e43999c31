//! The net difference between two times. A field that changed and changed back is none.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kubediff_history::{
    Filter, Incarnation, KindName, Number, Origin, Page, Places, Reader, Record, Scope, Version,
};

use super::error::AskError;
use super::period::doubts;
use super::{names, stored};
use crate::hide::secret::may_have_mark;
use crate::model::diff::Difference;
use crate::model::path::{Path, Segment};
use crate::{Change, Noise, Profile, Schemas, Secrets, Sighting, Tally};

/// The moment after a time, as exactly as the history knows times.
const MOMENT: jiff::SignedDuration = jiff::SignedDuration::from_micros(1);

/// Records that are read at once.
const PAGE: usize = 500;

/// The net differences of objects, one at a time, by kind, namespace and name.
pub(crate) struct Net {
    objects: std::vec::IntoIter<Scope>,
    scope: Scope,
    comparison: Comparison,
}

impl Net {
    /// The comparison of two times.
    pub(crate) fn of(
        reader: &mut Reader,
        scope: &Scope,
        (from, to): (Timestamp, Timestamp),
        noise: Noise,
    ) -> Result<Self, AskError> {
        let comparison = Comparison {
            between: (from, to),
            // Stored objects have no secrets: none is hidden here, and no key is used.
            profile: Profile { noise, secrets: Secrets::with_key([0; 32]), schemas: Schemas::default() },
            shows_kind: !scope.kinds.is_empty(),
            tally: Tally::default(),
            late: 0,
            other_keys: 0,
        };
        Ok(Self { objects: changed(reader, scope, from, to)?.into_iter(), scope: scope.clone(), comparison })
    }

    /// The next object that differs.
    pub(crate) fn next(&mut self, reader: &mut Reader) -> Result<Option<Change>, AskError> {
        for object in self.objects.by_ref() {
            if let Some(change) = self.comparison.change(reader, &object)? {
                return Ok(Some(change));
            }
        }
        Ok(None)
    }

    /// The objects so far that differ in noise only, by rule.
    pub(crate) fn noise(&self) -> Option<String> {
        let rules: Vec<String> =
            self.comparison.tally.beyond_traces().map(|(rule, count)| format!("{rule} {count}")).collect();
        (!rules.is_empty()).then(|| format!("objects that differ in noise only: {}", rules.join(", ")))
    }

    /// How many objects are left to compare.
    pub(crate) fn left(&self) -> usize {
        self.objects.len()
    }

    /// The doubts about the answer so far.
    pub(crate) fn remarks(&self, reader: &mut Reader, zone: &TimeZone) -> Result<Vec<String>, AskError> {
        self.comparison.remarks(reader, &self.scope, zone)
    }
}

/// The objects of a scope that changed after `from`, up to `to`: by kind, namespace and name.
fn changed(
    reader: &mut Reader,
    scope: &Scope,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<Scope>, AskError> {
    let (after, up_to) = (from.checked_add(MOMENT).unwrap_or(from), to.checked_add(MOMENT).unwrap_or(to));
    let changed = reader.changed(scope, Some(after), Some(up_to))?;
    let names: BTreeSet<_> = changed
        .into_iter()
        .map(|it| {
            let namespace = it.object.namespace.unwrap_or_default();
            (it.object.gvk.group, it.object.resource, namespace, it.object.name)
        })
        .collect();
    let scope = |(group, resource, namespace, name)| Scope {
        kinds: vec![KindName { group: Some(group), resource }],
        namespaces: vec![namespace],
        name: Some(name),
        ..Scope::default()
    };
    Ok(names.into_iter().map(scope).collect())
}

struct Comparison {
    between: (Timestamp, Timestamp),
    profile: Profile,
    /// Whether the kind was asked for, which is then shown although it is noise elsewhere.
    shows_kind: bool,
    tally: Tally,
    /// Objects that are compared with a later state than that of the earlier time.
    late: usize,
    /// Objects whose hashes cannot be compared.
    other_keys: usize,
}

impl Comparison {
    /// The net difference of one object.
    fn change(&mut self, reader: &mut Reader, object: &Scope) -> Result<Option<Change>, AskError> {
        let (from, to) = self.between;
        let new = at(reader, object, to)?;
        let old = match at(reader, object, from)? {
            Some(old) => Some(old),
            None => first_known(reader, object, self.between)?.inspect(|_| self.late += 1),
        };
        let Some(last) = new.as_ref().or(old.as_ref()) else { return Ok(None) };
        // A later incarnation of the name is after the question.
        let has_ended = |it: &Incarnation| it.ended_at.is_some_and(|time| time <= to);
        let ended = reader.incarnations(object)?.into_iter().rfind(has_ended);
        let gone_at = ended.as_ref().and_then(|it| it.ended_at).unwrap_or(to);
        let gvk = last.object.gvk.clone();
        let sighting = Sighting {
            cluster: None,
            gvk: &gvk,
            resource: &last.object.resource,
            observed_at: if new.is_some() { last.observed_at } else { gone_at },
            origin: Origin::Watch,
        };
        names::schema(reader, &self.profile.schemas, &last.object, Some(to))?;
        if self.shows_kind {
            self.profile.noise.show_kind(&gvk);
        }
        let keys = [old.as_ref(), new.as_ref()].map(|version| version.and_then(key));
        let numbers = old.as_ref().zip(new.as_ref()).map(|(old, new)| (old.number, new.number));
        let [old, new] = [old.as_ref(), new.as_ref()].map(|version| version.map(stored::object));
        let is_there = new.is_some();
        if old == new {
            return Ok(None);
        }
        if let Some(rule) = self.profile.noise.hides(&gvk) {
            self.tally.not_shown(rule.name(), 1);
            return Ok(None);
        }
        let compared = Change::between_redacted(&sighting, old, new, 1, &self.profile, &mut self.tally);
        let mut change = compared.change();
        let number = if is_there { Some(last.number) } else { ended.map(|it| it.newest) };
        let [old_key, new_key] = keys;
        let is_masked = change.as_ref().is_some_and(|it| it.diff.into_iter().any(is_masked));
        if let Some((from, to)) = numbers.filter(|_| is_masked) {
            let is_other = old_key.as_ref().zip(new_key.as_ref()).is_some_and(|(old, new)| old != new);
            self.other_keys += usize::from(is_other);
            let places = recorded(reader, object, from, to)?;
            change = change.and_then(|change| written(change, &places));
        }
        let key = new_key.or(old_key);
        if let Some(change) = &mut change {
            (change.number, change.key) = (number, key);
        }
        Ok(change)
    }

    /// The doubts about the answer.
    fn remarks(&self, reader: &mut Reader, scope: &Scope, zone: &TimeZone) -> Result<Vec<String>, AskError> {
        let mut remarks = Vec::new();
        if self.late > 0 {
            remarks.push(format!(
                "the history of {} begins after the earlier time: compared with the first known state",
                objects(self.late)
            ));
        }
        if self.other_keys > 0 {
            remarks.push(format!(
                "the hashes of {} were made with different keys: hidden values cannot be compared, and those are shown that a record has as changed",
                objects(self.other_keys)
            ));
        }
        let (from, to) = self.between;
        for at in [from, to] {
            for doubt in doubts(reader, scope, at, zone)? {
                if !remarks.contains(&doubt) {
                    remarks.push(doubt);
                }
            }
        }
        Ok(remarks)
    }
}

fn objects(count: usize) -> String {
    if count == 1 { "1 object".to_owned() } else { format!("{count} objects") }
}

/// The object at a time, if it was there.
fn at(reader: &mut Reader, object: &Scope, time: Timestamp) -> Result<Option<Version>, AskError> {
    // Of one name there is one object, unless a deletion was missed.
    Ok(reader.state(object, Some(time))?.into_iter().max_by_key(|version| version.number))
}

/// The first state that the history has of an object which is older than the history, if it is of this time.
fn first_known(
    reader: &mut Reader,
    object: &Scope,
    (from, to): (Timestamp, Timestamp),
) -> Result<Option<Version>, AskError> {
    let Some(first) = reader.incarnations(object)?.into_iter().map(|it| it.first).min() else {
        return Ok(None);
    };
    let version = reader.version_of(first)?;
    let is_then = |version: &Version| from < version.observed_at && version.observed_at <= to;
    Ok(version.filter(|version| version.change.is_none() && is_then(version)))
}

/// The places at which the records of an object show differences, from one to another.
fn recorded(reader: &mut Reader, object: &Scope, from: Number, to: Number) -> Result<Places, AskError> {
    let filter = Filter { scope: object.clone(), ..Filter::default() };
    let (mut places, mut page) = (Places::default(), Page::oldest(PAGE).after(from));
    loop {
        let found = reader.records(&filter, &page)?.records;
        for record in &found {
            match record {
                Record::Change(change) if record.number() <= to => places.add(change),
                _ => return Ok(places),
            }
        }
        let Some(last) = found.last() else { return Ok(places) };
        page = page.after(last.number());
    }
}

/// Drops differences that exist only because a value is hidden in one state, or with another key: no manager has written them. An
/// element whose name is hidden is at another place then.
fn written(change: Change, places: &Places) -> Option<Change> {
    let outer = |path: &[Segment]| path.iter().cloned().collect::<Path>().to_string();
    let is_written = |it: &Difference| {
        // The place of an element in a list without keys is another one in each record.
        let is_kept = |it: &&Segment| matches!(it, Segment::Field(_) | Segment::Key(_) | Segment::Document);
        let kept = it.path.segments().iter().take_while(is_kept).count();
        places.has(&outer(it.path.segments().get(..kept).unwrap_or_default()))
    };
    let list = |it: &Difference| outer(it.path.segments().split_last().map_or(&[], |(_, list)| list));
    let hidden = |it: &&Difference| may_have_mark(it.path.to_string().as_bytes()) && !is_written(it);
    let renamed: BTreeSet<String> = change.diff.into_iter().filter(hidden).map(list).collect();
    change.only(|it| is_written(it) || !is_masked(it) && !renamed.contains(&list(it)))
}

fn is_masked(difference: &Difference) -> bool {
    serde_json::to_vec(difference).is_ok_and(|json| may_have_mark(&json))
}

/// The key of the hashes in a version, as far as it is known.
fn key(version: &Version) -> Option<String> {
    version.change.as_ref()?.key.clone()
}

/// The differences between two versions of an object, but for noise.
pub(crate) fn between(
    reader: &mut Reader,
    old: &Version,
    new: &Version,
) -> Result<Vec<Difference>, AskError> {
    let mut noise = Noise::default();
    noise.show_kind(&new.object.gvk);
    let profile = Profile { noise, secrets: Secrets::with_key([0; 32]), schemas: Schemas::default() };
    names::schema(reader, &profile.schemas, &new.object, Some(new.observed_at))?;
    let sighting = Sighting {
        cluster: None,
        gvk: &new.object.gvk,
        resource: &new.object.resource,
        observed_at: new.observed_at,
        origin: Origin::Watch,
    };
    let states = [old, new].map(|version| Some(stored::object(version)));
    let [old, new] = states;
    let compared = Change::between_redacted(&sighting, old, new, 1, &profile, &mut Tally::default());
    Ok(compared.change().map(|change| change.diff.to_vec()).unwrap_or_default())
}
