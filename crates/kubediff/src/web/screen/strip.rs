//! The pods of a story over time: a lane for each, with its states.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kubediff_history::{Gap, ObjectId, Reader, Record, Verb};
use serde_json::{Value, json};

use super::histogram::round;
use crate::story::{PodStage, Story, stage};
use crate::text::clock::time_of_day;
use crate::web::address;
use crate::web::problem::Problem;

const WIDTH: f64 = 960.0;
/// The place of the names.
const LABEL: f64 = 220.0;
const ROW: f64 = 22.0;
/// Pods that are drawn.
const LANES: usize = 200;
/// States that are read.
const STATES: usize = 1_000;

/// A pod of a story, as its records show it.
pub(super) struct Lane {
    pub(super) object: ObjectId,
    pub(super) is_new: bool,
    pub(super) node: String,
    /// From when on which stage; the last one lasts until the end.
    stages: Vec<(Timestamp, Option<PodStage>)>,
}

impl Lane {
    /// How long it took until it was ready.
    pub(super) fn ready_after(&self) -> Option<SignedDuration> {
        let first = self.stages.first().filter(|_| self.is_new)?;
        let ready = self.stages.iter().find(|(_, stage)| *stage == Some(PodStage::Ready))?;
        Some(ready.0.duration_since(first.0))
    }

    fn is_troubled(&self) -> bool {
        self.stages.iter().any(|(_, stage)| matches!(stage, Some(PodStage::Trouble(_))))
    }
}

/// The lanes of the pods of a story, by name.
pub(super) fn lanes(reader: &mut Reader, records: &[Record], story: &Story) -> Result<Vec<Lane>, Problem> {
    let mut lanes: BTreeMap<String, Lane> = BTreeMap::new();
    let of_pods = records.iter().filter_map(|record| match record {
        Record::Change(change) if change.object.gvk.kind == "Pod" && change.object.gvk.group.is_empty() => {
            Some(change)
        }
        _ => None,
    });
    for change in of_pods.take(STATES) {
        let lane = lanes.entry(change.object.uid.clone()).or_insert_with(|| {
            let is_new = change.verb == Verb::Added
                || story.pods.get(&change.object.uid).is_some_and(|pod| pod.is_new);
            Lane { object: change.object.clone(), is_new, node: String::new(), stages: Vec::new() }
        });
        let at = change.observed_at;
        if change.verb == Verb::Deleted {
            lane.stages.push((at, None));
            continue;
        }
        let number = change.number.unwrap_or_default();
        if lane.stages.is_empty()
            && !lane.is_new
            && let Some(before) = reader.version_before(number)?
        {
            lane.stages.push((story.opened_at, Some(stage(&before.body.value()).1)));
        }
        let Some(version) = reader.version_of(number)? else { continue };
        let (node, now) = stage(&version.body.value());
        lane.node = node.unwrap_or_else(|| std::mem::take(&mut lane.node));
        if lane.stages.last().is_none_or(|(_, last)| *last != Some(now)) {
            lane.stages.push((at, Some(now)));
        }
    }
    let mut lanes: Vec<Lane> = lanes.into_values().collect();
    lanes.sort_by(|a, b| (!a.is_new, &a.object.name).cmp(&(!b.is_new, &b.object.name)));
    Ok(lanes)
}

/// The lanes as a picture; nothing without pods. Of very many, the troubled ones are drawn.
pub(super) fn strip(lanes: &[Lane], story: &Story, gaps: &[Gap], zone: &TimeZone) -> Value {
    if lanes.is_empty() {
        return Value::Null;
    }
    let mut drawn: Vec<&Lane> = lanes.iter().collect();
    if drawn.len() > LANES {
        drawn.sort_by_key(|lane| !lane.is_troubled());
        drawn.truncate(LANES);
    }
    let from = story.opened_at;
    let to = story.last_at.max(from.checked_add(SignedDuration::from_secs(10)).unwrap_or(from));
    #[expect(clippy::cast_precision_loss, reason = "a place on a screen")]
    let x = |at: Timestamp| {
        let whole = (to.as_millisecond() - from.as_millisecond()).max(1) as f64;
        let share = (at.as_millisecond() - from.as_millisecond()) as f64 / whole;
        round(LABEL + share.clamp(0.0, 1.0) * (WIDTH - LABEL))
    };
    let time = |at: Timestamp| time_of_day(at, zone);
    #[expect(clippy::cast_precision_loss, reason = "a place on a screen")]
    let shown: Vec<Value> = drawn
        .iter()
        .enumerate()
        .map(|(at, lane)| {
            let ends = lane.stages.iter().skip(1).map(|(at, _)| *at).chain([to]);
            let spans = lane.stages.iter().zip(ends).filter_map(|((from, stage), to)| {
                let (state, words) = state(stage.as_ref()?);
                let width = round((x(to) - x(*from)).max(2.0));
                let label = format!("{words} {} to {}", time(*from), time(to));
                Some(json!({ "x": x(*from), "width": width, "state": state, "label": label }))
            });
            json!({
                "name": lane.object.name, "y": at as f64 * ROW, "is_new": lane.is_new,
                "href": address::object(&lane.object), "spans": spans.collect::<Vec<_>>(),
            })
        })
        .collect();
    let step = to.duration_since(from).as_millis() / 5;
    let step = i64::try_from(step).unwrap_or(1_000).max(1);
    let ticks = (0..5).filter_map(|at| from.checked_add(SignedDuration::from_millis(step * at)).ok());
    let ticks: Vec<Value> = ticks.map(|at| json!({ "x": x(at), "label": time(at) })).collect();
    let gaps: Vec<Value> = gaps
        .iter()
        .map(|gap| {
            let label = format!("not watched from {} to {}", time(gap.from), time(gap.to));
            json!({ "x": x(gap.from), "width": round((x(gap.to) - x(gap.from)).max(2.0)), "label": label })
        })
        .collect();
    #[expect(clippy::cast_precision_loss, reason = "a height on a screen")]
    let height = drawn.len() as f64 * ROW + 24.0;
    json!({
        "width": WIDTH, "height": height, "label_width": LABEL, "row": ROW, "lanes": shown, "ticks": ticks,
        "marks": [{ "x": x(from), "label": format!("{} began", story.object.gvk.kind) }], "gaps": gaps,
        "more": lanes.len() - drawn.len(),
    })
}

/// The class and the words of a stage.
fn state(stage: &PodStage) -> (&'static str, String) {
    match stage {
        PodStage::Pending => ("pending", "pending".to_owned()),
        PodStage::Running => ("running", "running, not ready".to_owned()),
        PodStage::Ready => ("ready", "ready".to_owned()),
        PodStage::Terminating => ("terminating", "terminating".to_owned()),
        PodStage::Trouble(trouble) => ("trouble", trouble.words().to_owned()),
    }
}
