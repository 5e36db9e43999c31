//! Questions drawn by seed, and the right answers to those that a naive filter can give.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use http::StatusCode;
use jiff::Timestamp;
use serde_json::Value;

use crate::client::{Failure, Page};
use crate::cluster::{ARGO, LARGE, OFTEN, Row, Verb, kinds};
use crate::shape;

/// Changes that a page of answers has.
const LIMIT: usize = 50;

/// The subject of a question.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Topic {
    Timeline,
    OneCondition,
    TwoConditions,
    RarePair,
    Histogram,
    Facets,
    Blame,
    Story,
    Object,
    State,
}

/// How often each is drawn in a hundred.
const MIX: [(Topic, u32); 10] = [
    (Topic::Timeline, 30),
    (Topic::OneCondition, 15),
    (Topic::TwoConditions, 20),
    (Topic::RarePair, 10),
    (Topic::Histogram, 6),
    (Topic::Facets, 6),
    (Topic::Blame, 2),
    (Topic::Story, 3),
    (Topic::Object, 5),
    (Topic::State, 3),
];

impl Topic {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Timeline => "timeline",
            Self::OneCondition => "one condition",
            Self::TwoConditions => "two conditions",
            Self::RarePair => "rare pair",
            Self::Histogram => "histogram",
            Self::Facets => "facets",
            Self::Blame => "blame, 1,000 versions",
            Self::Story => "story, 500 members",
            Self::Object => "object",
            Self::State => "state of a namespace",
        }
    }
}

/// Conditions of a filter.
#[derive(Clone, Copy, Default, Debug)]
struct Conditions {
    kind: Option<u8>,
    namespace: Option<u16>,
    verb: Option<Verb>,
    by: Option<&'static str>,
}

impl Conditions {
    fn query(&self) -> String {
        let kind = self.kind.map(|kind| format!("kind={}", kinds()[usize::from(kind)]));
        let namespace = self.namespace.map(|it| format!("ns={}", shape::namespace(it)));
        let verb = self.verb.map(|verb| format!("change={verb:?}").to_lowercase());
        let by = self.by.map(|by| format!("by={by}"));
        [kind, namespace, verb, by].into_iter().flatten().collect::<Vec<_>>().join("&")
    }

    fn are_met(&self, row: &Row) -> bool {
        row.verb != Verb::Known
            && self.kind.is_none_or(|kind| kind == row.kind)
            && self.namespace.is_none_or(|namespace| namespace == row.namespace)
            && self.verb.is_none_or(|verb| verb == row.verb)
            && self.by.is_none_or(|by| by == row.manager)
    }

    fn draw(random: &mut Rng, rows: &[Row], count: usize, is_rare: bool) -> Self {
        let row = rows[random.usize(..rows.len())];
        // The kind of one record and the namespace of another one may hardly ever come together.
        let other = if is_rare { rows[random.usize(..rows.len())] } else { row };
        let mut conditions = Self::default();
        let mut fields = [0, 1, 2, 3];
        random.shuffle(&mut fields);
        for field in &fields[..count] {
            match field {
                0 => conditions.kind = Some(row.kind),
                1 => conditions.namespace = Some(other.namespace),
                2 => conditions.verb = Some(if row.verb == Verb::Known { Verb::Deleted } else { row.verb }),
                _ => conditions.by = Some(ARGO),
            }
        }
        conditions
    }
}

/// How long the answers to a topic took, and how many looked only as far as there was time for.
#[derive(Default)]
pub(crate) struct Times {
    pub(crate) took: Vec<Duration>,
    pub(crate) partial: usize,
}

impl Times {
    pub(crate) fn quantile(&mut self, part: f64) -> Duration {
        self.took.sort_unstable();
        let at = (self.took.len() as f64 * part).ceil() as usize;
        self.took.get(at.saturating_sub(1)).copied().unwrap_or_default()
    }
}

/// Asks so many questions, and checks what a naive filter knows.
pub(crate) async fn ask(
    page: &mut Page,
    rows: &[Row],
    story: usize,
    count: usize,
    random: &mut Rng,
) -> Result<BTreeMap<Topic, Times>, Failure> {
    let mut times: BTreeMap<Topic, Times> = BTreeMap::new();
    for _ in 0..count {
        let topic = draw(random);
        let (path, conditions) = question(topic, rows, story, random);
        let answer = page.ask(&path).await?;
        if answer.status != StatusCode::OK {
            let text = String::from_utf8_lossy(&answer.body[..answer.body.len().min(400)]).into_owned();
            return Err(format!("{path}: {}: {text}", answer.status).into());
        }
        let of = times.entry(topic).or_default();
        of.took.push(answer.took);
        if let Some(conditions) = conditions {
            let answer: Value = serde_json::from_slice(&answer.body)?;
            of.partial += usize::from(answer["looked"]["complete"] == false);
            check(&answer, &conditions, rows).map_err(|fault| format!("{path}: {fault}"))?;
        }
    }
    Ok(times)
}

fn draw(random: &mut Rng) -> Topic {
    let all: u32 = MIX.iter().map(|(_, weight)| weight).sum();
    let mut left = random.u32(..all);
    for (topic, weight) in MIX {
        if left < weight {
            return topic;
        }
        left -= weight;
    }
    Topic::Timeline
}

/// The last rollout of the large workload whose records are all there.
pub(crate) fn long_story(rows: &[Row]) -> usize {
    let is_begin = |row: &Row| row.number as usize == LARGE && row.manager == ARGO && row.kind == 1;
    let mut begins: Vec<usize> =
        rows.iter().enumerate().filter(|(_, row)| is_begin(row)).map(|(at, _)| at + 1).collect();
    if begins.len() > 1 {
        begins.pop();
    }
    begins.pop().unwrap_or_default()
}

fn question(topic: Topic, rows: &[Row], story: usize, random: &mut Rng) -> (String, Option<Conditions>) {
    let row = rows[random.usize(..rows.len())];
    let changes = |conditions: Conditions| {
        (format!("/v1/changes?{}&limit={LIMIT}", conditions.query()), Some(conditions))
    };
    match topic {
        Topic::Timeline => (["/", "/?since=1970-01-01"][random.usize(..2)].to_owned(), None),
        Topic::OneCondition => changes(Conditions::draw(random, rows, 1, false)),
        Topic::TwoConditions => changes(Conditions::draw(random, rows, 2, false)),
        Topic::RarePair => changes(Conditions::draw(random, rows, 3, true)),
        Topic::Histogram => ("/v1/histogram?since=1970-01-01".to_owned(), None),
        Topic::Facets => {
            let of = ["kind", "ns", "by"][random.usize(..3)];
            (format!("/v1/facets?of={of}&since=1970-01-01"), None)
        }
        Topic::Blame => {
            let often = rows.iter().find(|row| row.kind == 3 && row.number as usize == OFTEN);
            let namespace = shape::namespace(often.map_or(0, |row| row.namespace));
            (format!("/v1/objects/configmaps/{namespace}/settings-{OFTEN}/blame"), None)
        }
        Topic::Story => (format!("/story/{story}"), None),
        Topic::Object => {
            let deployment = rows.iter().find(|it| it.kind == 1 && it.number == row.number);
            let deployment = deployment.unwrap_or(&row);
            let (namespace, name) =
                (shape::namespace(deployment.namespace), shape::workload_name(deployment.number));
            (format!("/o/deployments.apps/{namespace}/{name}"), None)
        }
        Topic::State => {
            let at = random.usize(rows.len() / 2..rows.len());
            (
                format!(
                    "/v1/state?kind=pods&ns={}&at=%23{at}&limit={LIMIT}",
                    shape::namespace(row.namespace)
                ),
                None,
            )
        }
    }
}

/// Compares a page of answers with the newest rows that meet the conditions.
fn check(answer: &Value, conditions: &Conditions, rows: &[Row]) -> Result<(), String> {
    let items = answer["items"].as_array().ok_or("no items")?;
    let told: Vec<u64> = items.iter().filter_map(|item| item["number"].as_u64()).collect();
    let found = rows.iter().enumerate().rev().filter(|(_, row)| conditions.are_met(row));
    let expected: Vec<u64> = found.map(|(at, _)| at as u64 + 1).take(LIMIT).collect();
    let is_whole = told.len() == LIMIT || answer["looked"]["complete"] == true;
    let known = if is_whole { &expected[..] } else { &expected[..told.len().min(expected.len())] };
    if told != known {
        return Err(format!("{told:?}, not {known:?}"));
    }
    // An answer that has not looked at all of it has looked at what it says.
    let looked: Timestamp =
        answer["looked"]["to"].as_str().and_then(|to| to.parse().ok()).unwrap_or(Timestamp::MAX);
    let next = expected.get(told.len()).map(|number| rows[*number as usize - 1].second);
    match next.filter(|second| !is_whole && *second > looked.as_second()) {
        Some(second) => {
            Err(format!("it has looked back to {looked}, and leaves out a change of second {second}"))
        }
        None => Ok(()),
    }
}
