//! Counts changes by time, kind, namespace and manager.

use std::collections::BTreeMap;
use std::hash::Hash;

use jiff::Timestamp;

use super::candidates::{Candidates, Named};
use super::chosen::Chosen;
use super::conditions::Conditions;
use super::db::{Db, Row, values};
use super::fault::Outcome;
use super::sight::is_limited;
use super::times::{Span, meta, time_of};
use super::values::number;
use crate::filter::{Filter, KindName, Order, Page, Scope};
use crate::survey::{Counts, Survey};

/// Changes that are counted one by one.
const MOST: usize = 20_000;
/// The numbers in which the changes of managers are looked for.
const SPAN: i64 = 200_000;
/// Versions that a survey looks at, of which the filter may take few.
const LOOKED: i64 = 500_000;
/// The versions of so few objects are all looked at.
const FEW: usize = 100;

/// A counted change.
struct Counted {
    number: i64,
    verb: i64,
    kind: i64,
    namespace: i64,
}

/// The survey of a filter in the parts between these times. The filter's own times are not looked at, nor are gaps and Events.
pub(crate) fn survey(db: Db<'_>, filter: &Filter, times: &[Timestamp]) -> Outcome<Survey> {
    let mut survey =
        Survey { parts: vec![Counts::default(); times.len().saturating_sub(1)], ..Survey::default() };
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return Ok(survey) };
    let filter = Filter { from: Some(*first), to: Some(*last), events: false, gaps: false, ..filter.clone() };
    let mut starts = Vec::new();
    for time in times {
        starts.push(Span::of(db, None, Some(*time))?.to);
    }
    let Part { counted, from } = counted(db, &filter)?;
    for it in &counted {
        let place = starts.partition_point(|start| *start <= it.number);
        let Some(part) = place.checked_sub(1).and_then(|at| survey.parts.get_mut(at)) else { continue };
        match it.verb {
            1 => part.added += 1,
            3 => part.deleted += 1,
            _ => part.updated += 1,
        }
    }
    if let Some(oldest) = from {
        survey.counted_since = time_of(db, number(oldest))?;
        let is_of_all =
            filter.scope == Scope::default() && filter.verbs.is_empty() && filter.paths.is_empty();
        if is_of_all && filter.manager.is_none() && !is_limited(db)? {
            for (part, ends) in survey.parts.iter_mut().zip(starts.windows(2)) {
                if let [from, to] = ends {
                    // Numbers begin with 1.
                    part.others = (*to.min(&oldest) - from.max(&1)).max(0).unsigned_abs();
                }
            }
        }
    }
    let kinds = most(counted.iter().map(|it| it.kind));
    let resources: BTreeMap<i64, KindName> = names(db, "SELECT id, api_group, plural FROM kinds", |row| {
        Ok(KindName { group: Some(row.get(1)?), resource: row.get(2)? })
    })?;
    // One resource may have been seen in several versions.
    let mut by_name: Vec<(KindName, u64)> = Vec::new();
    for (name, count) in
        kinds.into_iter().filter_map(|(id, count)| Some((resources.get(&id)?.clone(), count)))
    {
        match by_name.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known += count,
            None => by_name.push((name, count)),
        }
    }
    survey.kinds = by_name;
    let namespaces = most(counted.iter().map(|it| it.namespace));
    let places = names(db, "SELECT id, name FROM namespaces", |row| row.get::<String>(1))?;
    let name = |id: i64| if id == 0 { Some(String::new()) } else { places.get(&id).cloned() };
    survey.namespaces = namespaces.into_iter().filter_map(|(id, count)| Some((name(id)?, count))).collect();
    survey.managers = managers(db, &counted)?;
    Ok(survey)
}

/// The latest changes that the filter takes, the latest first.
struct Part {
    counted: Vec<Counted>,
    /// The number from which on they are counted, where not all are.
    from: Option<i64>,
}

impl Part {
    fn new(counted: Vec<Counted>, looked: Option<i64>) -> Self {
        let last = counted.last().filter(|_| counted.len() >= MOST).map(|it| it.number);
        Self { from: last.or(looked), counted }
    }
}

fn counted(db: Db<'_>, filter: &Filter) -> Outcome<Part> {
    let mut found = Vec::new();
    let Named::All(mut named) = Named::find(db, filter)? else { return Ok(Part::new(found, None)) };
    let Some(chosen) = Chosen::find(db, &filter.scope)? else { return Ok(Part::new(found, None)) };
    let leads = match chosen.objects {
        Some(_) => None,
        None if named.is_empty() => Candidates::of_places(db, &chosen)?,
        None => Some(named.remove(0)),
    };
    let span = Span::of(db, filter.from, filter.to)?;
    let mut conditions = chosen.on_versions(filter, &span, leads.is_some());
    named.iter().for_each(|it| {
        conditions.and(&it.condition(db));
    });
    let Some(leads) = leads else {
        let are_few = chosen.objects.as_ref().is_some_and(|objects| objects.len() <= FEW);
        let from = span.to.min(meta(db, "next")?).saturating_sub(LOOKED);
        let looked = Some(from).filter(|from| !are_few && *from > span.from);
        if let Some(from) = looked {
            conditions.compare("v.number >= ", from);
        }
        select(db, &conditions, &mut found)?;
        return Ok(Part::new(found, looked));
    };
    let (mut after, mut looked) = (Some(span.before(Order::NewestFirst)), 0);
    while let Some(beyond) = after
        && found.len() < MOST
    {
        if looked >= LOOKED {
            return Ok(Part::new(found, Some(beyond)));
        }
        let numbers;
        (numbers, after) = leads.next(db, Order::NewestFirst, beyond, &span, MOST)?;
        looked += i64::try_from(numbers.len()).unwrap_or(LOOKED);
        let mut conditions = conditions.clone();
        conditions.numbered(db, &numbers);
        select(db, &conditions, &mut found)?;
    }
    Ok(Part::new(found, None))
}

fn select(db: Db<'_>, conditions: &Conditions, found: &mut Vec<Counted>) -> Outcome<()> {
    let order = super::conditions::order_by("v.number", &Page::newest(1), MOST - found.len());
    let sql =
        format!("SELECT v.number, v.verb, v.kind, v.namespace FROM versions v{}{order}", conditions.text);
    found.extend(db.all(&sql, &conditions.parameters, |row| {
        Ok(Counted { number: row.get(0)?, verb: row.get(1)?, kind: row.get(2)?, namespace: row.get(3)? })
    })?);
    Ok(())
}

/// How many of these changes each manager made. `counted` has the latest first.
fn managers(db: Db<'_>, counted: &[Counted]) -> Outcome<Vec<(String, u64)>> {
    let (Some(last), Some(first)) = (counted.first(), counted.last()) else { return Ok(Vec::new()) };
    if last.number - first.number > SPAN {
        return Ok(Vec::new());
    }
    let names = names(db, "SELECT id, name FROM managers", |row| row.get::<String>(1))?;
    let sql = match db.is_file() {
        true => "SELECT number FROM version_managers WHERE manager = ?1 AND number >= ?2 AND number <= ?3",
        false => "SELECT tagged FROM tagged(ARRAY[?1::int], '{}', ?2, ?3 + 1)",
    };
    let mut found = Vec::new();
    for (manager, name) in names {
        let mut count = 0;
        for made in db.all(sql, values![manager, first.number, last.number], |row| row.get::<i64>(0))? {
            let place = counted.binary_search_by(|it| made.cmp(&it.number));
            count += u64::from(place.is_ok());
        }
        if count > 0 {
            found.push((name, count));
        }
    }
    found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(found)
}

/// How often each value occurs, the most frequent first.
fn most<T: Ord + Hash + Copy>(values: impl Iterator<Item = T>) -> Vec<(T, u64)> {
    let mut counts: BTreeMap<T, u64> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let mut counts: Vec<(T, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

fn names<T>(db: Db<'_>, sql: &str, name: impl Fn(&Row<'_>) -> Outcome<T>) -> Outcome<BTreeMap<i64, T>> {
    Ok(db.all(sql, &[], |row| Ok((row.get(0)?, name(row)?)))?.into_iter().collect())
}
