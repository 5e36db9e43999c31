//! The history as anybody would write it: everything in lists, nothing packed, nothing indexed.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kubediff_history::*;
use serde_json::Value;

#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) number: u64,
    pub(crate) observation: Observation,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Incarnation {
    pub(crate) rows: Vec<Row>,
    pub(crate) state: Option<Observation>,
    pub(crate) ended: Option<(u64, Timestamp)>,
    /// The uid of the object that an Event is about.
    about: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    /// By resource and uid.
    pub(crate) objects: BTreeMap<(String, String), Incarnation>,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) positions: BTreeMap<String, String>,
    /// Position, and how many were lost.
    pub(crate) sinks: BTreeMap<String, (u64, u64)>,
    pub(crate) last: u64,
    pub(crate) complete_after: u64,
    /// The time of the last observation, and whether the clock is behind it.
    latest: Option<Timestamp>,
    is_set_back: bool,
}

impl Row {
    fn change(&self) -> Option<&ChangeRecord> {
        (self.observation.what == What::Change).then_some(&self.observation.record)
    }

    /// The change of an object, or of an Event.
    fn verb(&self) -> Option<Verb> {
        matches!(self.observation.what, What::Change | What::Event).then_some(self.observation.record.verb)
    }

    pub(crate) fn record(&self) -> Option<Record> {
        if self.observation.what == What::Event {
            let (number, observed_at) = (Number(self.number), self.observation.record.observed_at);
            return Some(Record::Event(Event { number, observed_at, object: self.observation.body.value() }));
        }
        let (number, cluster) = (Some(Number(self.number)), Some("test".to_owned()));
        Some(Record::Change(Box::new(ChangeRecord { number, cluster, ..self.change()?.clone() })))
    }
}

impl Model {
    /// The writer is opened again.
    pub(crate) fn reopened(&mut self) {
        let last = self.rows().max_by_key(|row| row.number);
        self.latest = last.map(|row| row.observation.record.observed_at);
        self.is_set_back = false;
    }

    pub(crate) fn observe(&mut self, observation: &Observation) {
        let at = observation.record.observed_at;
        let latest = self.latest.unwrap_or(at);
        let back = latest.duration_since(at);
        let is_set_back = back > SignedDuration::from_secs(1);
        if is_set_back && !self.is_set_back {
            self.last += 1;
            let reason = format!("the clock was set back by {} s", back.as_secs());
            self.gaps.push(Gap { number: Number(self.last), from: at, to: latest, resource: None, reason });
        }
        let was_wrong = back.as_secs() > 3_600;
        (self.latest, self.is_set_back) =
            (Some(if was_wrong { at } else { latest.max(at) }), is_set_back && !was_wrong);
        let mut observation = observation.clone();
        observation.record.observed_at = self.latest.unwrap_or(at);
        let observation = &observation;
        let resource = observation.record.object.resource.clone();
        let key = (resource.clone(), observation.record.object.uid.clone());
        let is_live = self.objects.get(&key).is_some_and(|it| it.ended.is_none());
        let is_news = matches!(observation.what, What::Change | What::Event);
        if !is_news && is_live {
            self.objects.get_mut(&key).unwrap().state = Some(observation.clone());
            return;
        }
        if observation.what == What::Event && observation.record.verb == Verb::Deleted && !is_live {
            return;
        }
        self.last += 1;
        let end = (self.last, observation.record.observed_at);
        let mut verb = None;
        if is_news {
            verb = Some(observation.record.verb);
            let replaced = observation.replaces.as_ref().map(|uid| (resource, uid.clone()));
            if let Some(replaced) = replaced.and_then(|key| self.objects.get_mut(&key)) {
                replaced.ended.get_or_insert(end);
            }
        }
        let incarnation = self.objects.entry(key).or_default();
        if incarnation.rows.is_empty() || incarnation.ended.is_some() {
            let about = observation.body.value()["involvedObject"]["uid"].as_str().map(str::to_owned);
            incarnation.about = about;
        }
        incarnation.rows.push(Row { number: self.last, observation: observation.clone() });
        incarnation.state = None;
        incarnation.ended = (verb == Some(Verb::Deleted)).then_some(end);
    }

    /// In the batch after this number. One that goes on from another one of the batch makes that longer.
    pub(crate) fn gap(&mut self, batch: u64, from: Timestamp, to: Timestamp, reason: &str) {
        let same = |gap: &&mut Gap| gap.number.0 > batch && gap.to == from && gap.reason == reason;
        let same = self.gaps.iter_mut().find(same);
        if let Some(gap) = same {
            gap.to = to;
            return;
        }
        self.last += 1;
        let number = Number(self.last);
        self.gaps.push(Gap { number, from, to, resource: None, reason: reason.to_owned() });
    }

    /// A scrub of everything.
    pub(crate) fn mask(&mut self, mask: &dyn Mask) {
        for incarnation in self.objects.values_mut() {
            let rows = incarnation.rows.iter_mut().map(|row| &mut row.observation);
            for Observation { record, body, what, .. } in rows.chain(&mut incarnation.state) {
                if let Ok(before) = serde_json::from_slice::<Value>(body.bytes()) {
                    let mut after = before.clone();
                    mask.object(&record.object, &mut after);
                    if after != before {
                        *body = Body::redacted(after.to_string());
                    }
                }
                let ChangeRecord { object, paths, diff, summary, verb, observed_at, .. } = record;
                if *what == What::Change {
                    let (verb, observed_at, masked) = (*verb, *observed_at, None);
                    mask.change(object, Details { paths, diff, summary, verb, observed_at, masked });
                }
            }
        }
        for gap in &mut self.gaps {
            mask.text(&mut gap.reason);
        }
    }

    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.objects.values().flat_map(|incarnation| &incarnation.rows)
    }

    fn is_wanted_event(&self, filter: &Filter, row: &Row, within: impl Fn(Timestamp) -> bool) -> bool {
        let has_others = filter.manager.is_some() || !filter.paths.is_empty() || !filter.verbs.is_empty();
        let is_news = row.verb().is_some_and(|verb| verb != Verb::Deleted);
        if !filter.events || has_others || !is_news || !within(row.observation.record.observed_at) {
            return false;
        }
        let (event, scope) = (&row.observation.record.object, &filter.scope);
        let about = self.objects[&(event.resource.clone(), event.uid.clone())].about.as_ref();
        let is_about = |it: &Incarnation, scope: &Scope| {
            let object = &it.rows[0].observation.record.object;
            let is_named = about == Some(&object.uid)
                || object.namespace.is_none() && about.is_some_and(|about| *about == object.name);
            // Another namespace's Event names nothing.
            let is_here = object.namespace.is_none() || object.namespace == event.namespace;
            is_named && is_here && is_in(scope, object)
        };
        let any = |scope: &Scope| self.objects.values().any(|it| is_about(it, scope));
        if scope.name.is_some() || scope.uid.is_some() || scope.part.is_some() {
            return is_in(scope, event) || any(scope);
        }
        let here = Scope { kinds: Vec::new(), ..scope.clone() };
        let only = Scope { kinds: scope.kinds.clone(), ..Scope::default() };
        is_in(&here, event) && (is_in(scope, event) || any(&only))
    }

    pub(crate) fn records(&self, filter: &Filter, page: &Page) -> (Vec<Record>, bool) {
        let within =
            |at: Timestamp| filter.from.is_none_or(|from| at >= from) && filter.to.is_none_or(|to| at < to);
        let is_wanted = |row: &&Row| {
            let Some(change) = row.change() else { return self.is_wanted_event(filter, row, within) };
            is_in(&filter.scope, &row.observation.record.object)
                && within(row.observation.record.observed_at)
                && (filter.verbs.is_empty() || filter.verbs.contains(&change.verb))
                && filter
                    .manager
                    .as_ref()
                    .is_none_or(|wanted| change.managers.iter().any(|it| is_like(wanted, &it.manager)))
                && (filter.paths.is_empty()
                    || filter.paths.iter().any(|wanted| {
                        let is_below =
                            |path: &String| path == wanted || path.starts_with(&format!("{wanted}."));
                        change.paths.iter().any(is_below)
                    }))
        };
        let mut found: Vec<Record> = self.rows().filter(is_wanted).filter_map(Row::record).collect();
        for record in &mut found {
            if let (Record::Change(change), true) = (&mut *record, filter.in_words) {
                change.diff = Value::Null;
            }
            let is_last =
                |it: &&Incarnation| it.rows.last().is_some_and(|row| row.number == record.number().0);
            let state = self.objects.values().find(is_last).and_then(|it| it.state.as_ref());
            if let (Record::Event(event), Some(state)) = (&mut *record, state) {
                event.object = state.body.value();
            }
        }
        if filter.gaps {
            let overlaps = |gap: &&Gap| {
                filter.from.is_none_or(|from| gap.to >= from) && filter.to.is_none_or(|to| gap.from < to)
            };
            found.extend(self.gaps.iter().filter(overlaps).cloned().map(Record::Gap));
        }
        found.sort_by_key(Record::number);
        if page.order == Order::NewestFirst {
            found.reverse();
        }
        let beyond = |record: &Record| match (page.after, page.order) {
            (None, _) => true,
            (Some(after), Order::NewestFirst) => record.number() < after,
            (Some(after), Order::OldestFirst) => record.number() > after,
        };
        found.retain(beyond);
        let is_until = |record: &Record| match (page.until, page.order) {
            (None, _) => true,
            (Some(until), Order::NewestFirst) => record.number() >= until,
            (Some(until), Order::OldestFirst) => record.number() <= until,
        };
        found.retain(is_until);
        let more = found.len() > page.limit;
        found.truncate(page.limit);
        (found, more)
    }

    /// Resource, uid, resourceVersion and content of each object.
    pub(crate) fn state(
        &self,
        scope: &Scope,
        at: Option<Timestamp>,
    ) -> Vec<(String, String, String, Vec<u8>)> {
        let mut found = Vec::new();
        for ((resource, uid), incarnation) in &self.objects {
            if !is_in(scope, &incarnation.rows[0].observation.record.object) {
                continue;
            }
            let version = match at {
                None if incarnation.ended.is_some() => None,
                None => incarnation.state.as_ref().or(incarnation.rows.last().map(|row| &row.observation)),
                Some(at) if incarnation.ended.is_some_and(|(_, ended)| ended <= at) => None,
                Some(at)
                    if incarnation.state.as_ref().is_some_and(|state| state.record.observed_at <= at) =>
                {
                    incarnation.state.as_ref()
                }
                Some(at) => {
                    let row =
                        incarnation.rows.iter().rev().find(|row| row.observation.record.observed_at <= at);
                    row.filter(|row| row.verb() != Some(Verb::Deleted)).map(|row| &row.observation)
                }
            };
            if let Some(version) = version {
                let body = version.body.bytes().to_vec();
                found.push((resource.clone(), uid.clone(), version.record.rv.clone().unwrap(), body));
            }
        }
        found
    }

    pub(crate) fn retain(&mut self, retention: &Retention, now: Timestamp) {
        let mut numbers: Vec<u64> =
            self.rows().filter(|row| row.change().is_some()).map(|row| row.number).collect();
        numbers.extend(self.gaps.iter().map(|gap| gap.number.0));
        numbers.sort_unstable();
        let mut cut = 0;
        if let Some(age) = retention.age {
            let rows = self.rows().map(|row| (row.number, row.observation.record.observed_at));
            let last = rows.chain(self.gaps.iter().map(|gap| (gap.number.0, gap.to))).max();
            let oldest =
                last.map_or(now, |(_, recorded)| now.min(recorded)) - SignedDuration::try_from(age).unwrap();
            let rows = self.rows().map(|row| (row.number, row.observation.record.observed_at));
            let all = rows.chain(self.gaps.iter().map(|gap| (gap.number.0, gap.to)));
            let young = all.filter(|(number, at)| *at >= oldest && *number > self.complete_after);
            cut = young.map(|(number, _)| number).min().map_or(self.last, |young| young - 1);
        }
        if let Some(count) = retention.count {
            let beyond = numbers.len().checked_sub(usize::try_from(count).unwrap() + 1);
            cut = cut.max(beyond.map_or(0, |at| numbers[at]));
        }
        if let Some(slowest) = self.sinks.values().map(|(position, _)| *position).min()
            && slowest < cut
        {
            cut = cut.min(slowest.max(self.last.saturating_sub(retention.for_sinks)));
        }
        if let Some(age) = retention.event_age {
            let rows = || self.rows().map(|row| (row.number, row.observation.record.observed_at));
            let recorded = rows().chain(self.gaps.iter().map(|gap| (gap.number.0, gap.to))).max();
            let oldest = recorded.map_or(now, |(_, recorded)| now.min(recorded))
                - SignedDuration::try_from(age).unwrap();
            let young = rows().filter(|(_, at)| *at >= oldest).map(|(number, _)| number).min();
            let young = young.unwrap_or(self.last + 1);
            self.objects.retain(|(resource, _), incarnation| {
                let is_old = incarnation.rows.last().is_some_and(|row| row.number < young);
                let has_come = incarnation.rows.iter().any(|row| row.observation.what == What::Event);
                !(resource == "events" && has_come && is_old)
            });
        }
        if cut <= self.complete_after {
            return;
        }
        for (position, lost) in self.sinks.values_mut() {
            *lost += numbers.iter().filter(|number| **number > *position && **number <= cut).count() as u64;
            *position = cut.max(*position);
        }
        self.forget(cut);
    }

    /// Nothing before this record is kept, but for the states in which what is kept begins.
    pub(crate) fn forget(&mut self, cut: u64) {
        self.complete_after = cut;
        self.gaps.retain(|gap| gap.number.0 > cut);
        self.objects.retain(|_, incarnation| incarnation.ended.is_none_or(|(number, _)| number > cut));
        for incarnation in self.objects.values_mut() {
            let old = incarnation.rows.iter().filter(|row| row.number <= cut).count();
            incarnation.rows.drain(..old.saturating_sub(1));
        }
    }
}

fn is_in(scope: &Scope, object: &ObjectId) -> bool {
    let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
    let is_of = |kind: &KindName| kind.resource == object.resource && is(&kind.group, &object.gvk.group);
    let namespace = object.namespace.as_deref().unwrap_or_default();
    (scope.kinds.is_empty() || scope.kinds.iter().any(is_of))
        && (scope.namespaces.is_empty() || scope.namespaces.iter().any(|it| it == namespace))
        && is(&scope.name, &object.name)
        && is(&scope.uid, &object.uid)
        && scope.part.as_ref().is_none_or(|part| object.name.to_lowercase().contains(&part.to_lowercase()))
}

/// Whether a name matches a pattern, in which `*` stands for any characters.
fn is_like(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => {
            let Some(rest) = name.strip_prefix(before) else { return false };
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && is_like(after, &rest[at..]))
        }
    }
}
