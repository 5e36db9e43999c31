//! `/v1`: the answers as JSON.

use std::time::Instant;

use http::StatusCode;
use jiff::Timestamp;
use kubediff_history::{Counts, Number, Order, Page, Record};
use serde::Serialize;
use serde_json::{Value, json};

use super::address;
use super::assets::description;
use super::params::Params;
use super::problem::Problem;
use super::question::{SCOPE, period, question, target};
use super::screen::{Named, WORK, find, moment, parts, shown_period};
use super::store::Asked;
use crate::ask::cursor::Cursor;
use crate::ask::log::{Item, Step, Walk};
use crate::ask::net::Net;
use crate::ask::period::{Period, begins, doubts, end, unwatched};
use crate::ask::{AskError, authors, object, shown};
use crate::changes::change::WithObjects;
use crate::model::patch::PatchOp;
use crate::show::render::json_line;
use crate::story::Story;
use crate::{Change, Gap, Redacted};

/// Entries of a page, and the most of them.
const ITEMS: (usize, usize) = (100, 1_000);
/// Records of a story.
const RECORDS: usize = 2_000;

/// The answer at these segments; `None` where there is none.
pub(super) fn answer(
    asked: &mut Asked<'_>,
    segments: &[&str],
    params: &Params,
) -> Result<Option<String>, Problem> {
    let number = |text: &str| {
        text.parse().map(Number).map_err(|_| Problem::missing(format!("`{text}` is no number"), ""))
    };
    Ok(Some(match segments {
        ["changes"] => changes(asked, params)?,
        ["changes", it] => change(asked, number(it)?, params)?,
        ["stories", it] => story(asked, number(it)?, params)?,
        ["histogram"] => histogram(asked, params)?,
        ["facets"] => facets(asked, params)?,
        ["objects", resource, namespace, name] => {
            state(asked, &Named::new(resource, namespace, name), params)?
        }
        ["objects", resource, namespace, name, "versions"] => {
            versions(asked, &Named::new(resource, namespace, name), params)?
        }
        ["objects", resource, namespace, name, "blame"] => {
            blame(asked, &Named::new(resource, namespace, name), params)?
        }
        ["diff"] => diff(asked, params)?,
        ["state"] => objects(asked, params)?,
        ["gaps"] => gaps(asked, params)?,
        ["coverage"] => covered(asked, params)?,
        ["kinds"] => {
            known(params, &[], &[])?;
            let kinds = asked.reader.kinds()?;
            let kinds: Vec<Value> =
                kinds.into_iter().map(|(gvk, plural)| json!({ "gvk": gvk, "resource": plural })).collect();
            line(&json!({ "items": kinds }))?
        }
        ["status"] => status(asked, params)?,
        ["openapi.json"] => {
            known(params, &[], &[])?;
            description()
        }
        _ => return Ok(None),
    }))
}

/// The JSON of an answer.
fn line(answer: &impl Serialize) -> Result<String, Problem> {
    json_line(answer)
        .map_err(|_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "The answer cannot be JSON"))
}

/// An entry of the log, as `kubediff log -o json` prints it.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Entry {
    Record(Box<Record>),
    Gap(Gap),
    Story { story: Box<Story> },
}

impl Entry {
    pub(super) fn of(item: Item, cluster: &str) -> Self {
        match item {
            Item::Record(record) => Self::Record(Box::new(record)),
            Item::Gap(gap) => Self::Gap(gap.of_cluster(cluster)),
            Item::Story(told) => Self::Story { story: Box::new(told.story) },
        }
    }
}

/// A page of the log.
#[derive(Serialize)]
struct Changes {
    items: Vec<Entry>,
    next: Option<String>,
    looked: Value,
    coverage: Value,
    doubts: Vec<String>,
}

/// A change with its objects.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    change: WithObjects<'a>,
    patch: Redacted<Vec<PatchOp>>,
}

/// The net differences between two times.
#[derive(Serialize)]
struct Differences<'a> {
    items: Vec<Whole<'a>>,
    left: usize,
    noise: Option<String>,
    doubts: Vec<String>,
}

impl<'a> Whole<'a> {
    fn of(change: &'a Change) -> Self {
        Self { change: change.with_objects(), patch: change.patch() }
    }
}

/// The parameters that say which objects are meant.
const TARGET: &[&str] = &["q", "kind", "ns", "name"];

/// Refuses parameters that mean nothing here.
fn known(params: &Params, common: &[&str], more: &[&str]) -> Result<(), Problem> {
    let all: Vec<&str> = common.iter().chain(more).copied().collect();
    let Some(name) = params.unknown(&all).into_iter().next() else { return Ok(()) };
    let known = match all.as_slice() {
        [] => "there is none".to_owned(),
        [one] => format!("there is {one}"),
        several => format!("there are {}", several.join(", ")),
    };
    Err(Problem::wrong(&name, format!("There is no parameter `{name}` here; {known}.")))
}

fn coverage(asked: &mut Asked<'_>) -> Result<Value, Problem> {
    Ok(json!({ "from": asked.reader.complete_since()?, "to": end(asked.reader)? }))
}

fn changes(asked: &mut Asked<'_>, params: &Params) -> Result<String, Problem> {
    known(params, SCOPE, &["order", "limit", "cursor"])?;
    let question = question(params, asked.reader, &asked.now)?;
    let order = match params.text("order") {
        "" | "newest" => Order::NewestFirst,
        "oldest" => Order::OldestFirst,
        _ => return Err(Problem::wrong("order", "The orders are newest and oldest.")),
    };
    let limit = params.number("limit", ITEMS.0, 1, ITEMS.1)?;
    let scope = params.address("", SCOPE, &[("order", "")]) + params.text("order");
    let cursor = params
        .get("cursor")
        .map(|text| Cursor::read(text, &scope))
        .transpose()
        .map_err(Problem::of("cursor"))?;
    let folds = params.flag("fold", false)?;
    let known = if folds { Some(asked.store.stories(asked.reader, asked.now.timestamp())?) } else { None };
    let stories = known.as_ref().and_then(|known| known.stories());
    let reader = &mut *asked.reader;
    let mut walk = Walk::new(reader, &question, order, limit)?;
    // Towards now, a page ends with the history.
    if order == Order::NewestFirst {
        walk = walk.within(reader, Instant::now() + WORK)?;
    }
    if let Some(cursor) = cursor {
        walk = walk.from(cursor);
    }
    let (mut items, mut is_complete) = (Vec::new(), false);
    while items.len() < limit {
        match walk.next(reader, stories)? {
            Step::Item(found) => items.push(Entry::of(found, &asked.store.cluster)),
            Step::Bound => {
                asked.is_partial = true;
                break;
            }
            Step::End => {
                is_complete = true;
                break;
            }
        }
    }
    let place = walk.place(reader, stories)?;
    let next = (!is_complete).then(|| place.text(&scope));
    let looked = reader.time_of(place.after)?;
    let at = question.period.to.unwrap_or_else(|| asked.now.timestamp());
    let zone = asked.now.time_zone().clone();
    let doubts = unwatched(&asked.reader.standing()?, &walk.filter().scope, at, &zone);
    let looked = json!({ "to": looked, "complete": is_complete });
    line(&Changes { items, next, looked, coverage: coverage(asked)?, doubts })
}

fn change(asked: &mut Asked<'_>, number: Number, params: &Params) -> Result<String, Problem> {
    known(params, &[], &["objects"])?;
    let none = || Problem::missing(format!("There is no change #{number}"), "");
    let version = asked.reader.version_of(number)?.ok_or_else(none)?;
    let record = version.change.as_deref().cloned().ok_or_else(none)?;
    if !params.flag("objects", false)? {
        return line(&record);
    }
    let mut change = Change::of_record(record).map_err(AskError::from)?;
    let before = asked.reader.version_before(number)?;
    change.old = before.as_ref().map(object);
    change.new = Some(object(&version)).filter(|_| change.verb != kubediff_history::Verb::Deleted);
    if change.new.is_none() && change.old.is_none() {
        change.old = Some(object(&version));
    }
    line(&Whole::of(&change))
}

fn story(asked: &mut Asked<'_>, id: Number, params: &Params) -> Result<String, Problem> {
    known(params, &[], &[])?;
    let known = asked.store.stories(asked.reader, asked.now.timestamp())?;
    let none = || Problem::missing(format!("There is no story #{id}"), "");
    let stories = known.stories().ok_or_else(none)?;
    let story = stories.story(asked.reader, id)?.ok_or_else(none)?;
    let members = stories.members(asked.reader, id)?;
    let records: Vec<Record> = stories.records(asked.reader, id, RECORDS)?;
    let cut = members.len() > records.len();
    line(&json!({ "story": story, "members": members, "records": records, "records_cut": cut }))
}

fn histogram(asked: &mut Asked<'_>, params: &Params) -> Result<String, Problem> {
    known(params, SCOPE, &[])?;
    let question = question(params, asked.reader, &asked.now)?;
    let (from, to) = shown_period(asked, &question)?;
    let filter = question.filter(asked.reader)?;
    let parts = parts(from, to, asked.now.time_zone());
    let survey = asked.reader.survey(&filter, &parts.times)?;
    let series = |of: fn(&Counts) -> u64| survey.parts.iter().map(of).collect::<Vec<u64>>();
    let gaps = asked.reader.gaps(&filter.scope, Some(from), Some(to), &Page::newest(ITEMS.1))?;
    line(&json!({
        "from": parts.times.first(), "step_s": parts.step,
        "series": {
            "added": series(|it| it.added), "updated": series(|it| it.updated), "deleted": series(|it| it.deleted),
            "others": series(|it| it.others),
        },
        "gaps": gaps, "exact": survey.counted_since.is_none(), "counted_since": survey.counted_since,
    }))
}

fn facets(asked: &mut Asked<'_>, params: &Params) -> Result<String, Problem> {
    known(params, SCOPE, &["of"])?;
    let question = question(params, asked.reader, &asked.now)?;
    let (from, to) = shown_period(asked, &question)?;
    let filter = question.filter(asked.reader)?;
    // A time stands for the moment before it, too.
    let until = to.checked_add(jiff::SignedDuration::from_micros(1)).unwrap_or(to);
    let survey = asked.reader.survey(&filter, &[from, until])?;
    let facet = |values: Vec<(String, u64)>| {
        values
            .into_iter()
            .map(|(value, count)| json!({ "value": value, "count": count }))
            .collect::<Vec<Value>>()
    };
    let items = match params.text("of") {
        "kind" => facet(survey.kinds.into_iter().map(|(kind, count)| (kind.to_string(), count)).collect()),
        "ns" => facet(survey.namespaces),
        "by" => facet(survey.managers),
        _ => return Err(Problem::wrong("of", "The facets are kind, ns and by.")),
    };
    line(&json!({ "items": items, "exact": survey.counted_since.is_none() }))
}

fn state(asked: &mut Asked<'_>, named: &Named, params: &Params) -> Result<String, Problem> {
    known(params, &[], &["at", "rev", "managed"])?;
    let found = find(asked, named, params)?;
    let object = shown(&found.version, params.flag("managed", false)?);
    let version = &found.version;
    line(&json!({
        "number": version.number, "rv": version.rv, "observed_at": version.observed_at, "change": version.change,
        "ended_at": found.incarnation.ended_at, "object": object,
    }))
}

fn versions(asked: &mut Asked<'_>, named: &Named, params: &Params) -> Result<String, Problem> {
    known(params, &[], &["limit", "before"])?;
    let found = find(asked, named, &Params::default())?;
    let limit = params.number("limit", ITEMS.0, 1, ITEMS.1)?;
    let filter = kubediff_history::Filter { scope: found.target.scope.clone(), ..Default::default() };
    let mut page = Page::newest(limit);
    if let Some(before) = params.get("before") {
        let before = before
            .parse()
            .map_err(|_| Problem::wrong("before", "It is the number of a change, such as 812."))?;
        page = page.after(Number(before));
    }
    let records = asked.reader.records(&filter, &page)?;
    let next = records.more.then(|| records.records.last().map(Record::number)).flatten();
    line(&json!({ "items": records.records, "next": next }))
}

fn blame(asked: &mut Asked<'_>, named: &Named, params: &Params) -> Result<String, Problem> {
    known(params, &[], &["at", "rev", "path"])?;
    let found = find(asked, named, params)?;
    let pattern = params.get("path").map(str::parse).transpose();
    let pattern =
        pattern.map_err(|error: crate::InvalidPattern| Problem::wrong("path", error.to_string()))?;
    let is_past = params.get("at").is_some() || params.get("rev").is_some();
    let until = is_past.then_some(found.version.number);
    let blame = authors(asked.reader, &found.incarnation, until, pattern.as_ref())?;
    line(&json!({
        "object": {
            "gvk": blame.object.gvk, "namespace": blame.object.namespace, "name": blame.object.name, "uid": blame.object.uid,
        },
        "ended_at": blame.ended_at, "starts_in_the_middle": blame.starts_in_the_middle, "fields": blame.fields,
    }))
}

fn diff(asked: &mut Asked<'_>, params: &Params) -> Result<String, Problem> {
    known(params, TARGET, &["from", "to", "limit"])?;
    let to = params.get("to").unwrap_or("now");
    let period = Period::read(params.get("from"), Some(to), &asked.now).map_err(Problem::of("from"))?;
    let (Some(from), Some(to)) = (period.from, period.to) else {
        return Err(Problem::wrong("from", "Give the earlier time as `from`."));
    };
    let target = target(params, asked.reader)?;
    let limit = params.number("limit", ITEMS.0, 1, ITEMS.1)?;
    let mut net = Net::of(asked.reader, &target.scope, (from, to), crate::Noise::default())?;
    let mut items = Vec::new();
    while items.len() < limit
        && let Some(mut change) = net.next(asked.reader)?
    {
        change.cluster = Some(asked.store.cluster.clone());
        items.push(change);
    }
    let remarks = net.remarks(asked.reader, asked.now.time_zone())?;
    let items: Vec<Whole<'_>> = items.iter().map(Whole::of).collect();
    line(&Differences { items, left: net.left(), noise: net.noise(), doubts: remarks })
}

fn objects(asked: &mut Asked<'_>, params: &Params) -> Result<String, Problem> {
    known(params, TARGET, &["at", "start", "limit", "managed"])?;
    if params.get("kind").is_none() {
        return Err(Problem::wrong("kind", "Give a kind, such as kind=pods."));
    }
    let at: Option<Timestamp> = params.get("at").map(|text| moment(asked, "at", text)).transpose()?;
    let target = target(params, asked.reader)?;
    let present = asked.reader.present(&target.scope, at)?;
    let limit = params.number("limit", ITEMS.0, 1, ITEMS.1)?;
    let start = params.number("start", 0, 0, usize::MAX)?.min(present.len());
    let stop = present.len().min(start + limit);
    let managed = params.flag("managed", false)?;
    let states = asked.reader.states(&present, start..stop)?;
    let items: Vec<Value> = states
        .iter()
        .map(|version| json!({ "number": version.number, "observed_at": version.observed_at, "object": shown(version, managed) }))
        .collect();
    let when = at.unwrap_or_else(|| asked.now.timestamp());
    let zone = asked.now.time_zone().clone();
    let doubts = doubts(asked.reader, &target.scope, when, &zone)?;
    line(&json!({
        "items": items, "total": present.len(), "next": (stop < present.len()).then_some(stop), "doubts": doubts,
    }))
}

fn gaps(asked: &mut Asked<'_>, params: &Params) -> Result<String, Problem> {
    known(params, SCOPE, &["limit"])?;
    let question = question(params, asked.reader, &asked.now)?;
    let page = Page::newest(params.number("limit", ITEMS.0, 1, ITEMS.1)?);
    let gaps = asked.reader.gaps(&question.target.scope, question.period.from, question.period.to, &page)?;
    line(&json!({ "items": gaps }))
}

/// How much is known of objects in a period.
fn covered(asked: &mut Asked<'_>, params: &Params) -> Result<String, Problem> {
    known(params, TARGET, &["since", "until", "limit"])?;
    let target = target(params, asked.reader)?;
    let period = period(params, &asked.now)?;
    let page = Page::newest(params.number("limit", ITEMS.0, 1, ITEMS.1)?);
    let gaps = asked.reader.gaps(&target.scope, period.from, period.to, &page)?;
    let (until, zone) = (period.to.unwrap_or_else(|| asked.now.timestamp()), asked.now.time_zone().clone());
    let mut found = doubts(asked.reader, &target.scope, until, &zone)?;
    found.extend(begins(asked.reader, period.from, &zone)?);
    line(&json!({
        "cluster": asked.store.cluster, "now": asked.now.to_string(), "coverage": coverage(asked)?, "gaps": gaps, "doubts": found,
    }))
}

fn status(asked: &mut Asked<'_>, params: &Params) -> Result<String, Problem> {
    known(params, &[], &[])?;
    let newest = asked.reader.last()?.map(|(number, _)| number);
    let mut status = json!({
        "cluster": asked.store.cluster, "version": env!("CARGO_PKG_VERSION"), "newest": newest, "coverage": coverage(asked)?,
        "user": asked.seen.user.as_deref(),
    });
    // The numbers of all would say something of those whom a user may not see.
    if !asked.reader.is_limited()? {
        let size = asked.reader.size()?;
        let (version, through) = asked.reader.folded()?;
        for (name, value) in [
            ("changes", json!(size.changes)),
            ("events", json!(size.events)),
            ("objects", json!(size.objects)),
            ("existing", json!(size.existing)),
            ("gaps", json!(size.gaps)),
            ("bytes", json!(size.bytes)),
            ("folded", json!({ "version": version, "through": through })),
        ] {
            status[name] = value;
        }
    }
    line(&status)
}

/// The parameters of an object's address.
impl Named {
    /// The object at these segments of an address.
    pub(super) fn new(resource: &str, namespace: &str, name: &str) -> Self {
        Self {
            resource: resource.to_owned(),
            namespace: Some(namespace.to_owned()).filter(|namespace| namespace != address::NONE),
            name: name.to_owned(),
        }
    }
}
