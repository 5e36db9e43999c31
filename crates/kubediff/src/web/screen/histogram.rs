//! How much happened when, as bars.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kubediff_history::{Filter, Page, Reader, Survey};
use serde_json::{Value, json};

use crate::ask::period::open_gaps;
use crate::text::clock::{date_and_time, local, time_of_day};
use crate::web::params::Params;
use crate::web::problem::Problem;
use crate::web::question::SCOPE;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 96.0;
/// The most bars.
const MOST: i64 = 80;
/// The lengths that a bar can have, in seconds.
const STEPS: &[i64] = &[
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400,
    172_800, 604_800, 2_592_000, 31_536_000,
];
/// The room of a label.
const LABEL: f64 = 70.0;
/// Gaps that are drawn.
const GAPS: usize = 500;

/// A period in parts of a round length.
pub(in crate::web) struct Parts {
    pub(in crate::web) times: Vec<Timestamp>,
    pub(in crate::web) step: i64,
}

/// The parts of a period. Those of hours and more begin at round local times.
pub(in crate::web) fn parts(from: Timestamp, to: Timestamp, zone: &TimeZone) -> Parts {
    let seconds = (to.as_second() - from.as_second()).max(1);
    let step = STEPS.iter().copied().find(|step| seconds / step <= MOST).unwrap_or(31_536_000);
    let offset = i64::from(zone.to_offset(from).seconds());
    let mut at = (from.as_second() + offset).div_euclid(step) * step - offset;
    let mut times = Vec::new();
    while at < to.as_second() + step && times.len() <= usize::try_from(MOST).unwrap_or(0) + 2 {
        times.extend(Timestamp::from_second(at));
        at += step;
    }
    // The first and the last part may be shorter.
    if let Some(first) = times.first_mut() {
        *first = from.max(*first);
    }
    let last = times.iter().position(|at| *at >= to).unwrap_or(times.len());
    times.truncate(last.max(1));
    times.push(to);
    Parts { times, step }
}

/// The times of a period in which something of the scope was not watched, each once.
pub(super) fn gaps(
    reader: &mut Reader,
    filter: &Filter,
    (from, to): (Timestamp, Timestamp),
    now: Timestamp,
) -> Result<Vec<(Timestamp, Timestamp)>, Problem> {
    let mut gaps: Vec<(Timestamp, Timestamp)> = reader
        .gaps(&filter.scope, Some(from), Some(to), &Page::newest(GAPS))?
        .into_iter()
        .map(|gap| (gap.from.max(from), gap.to.min(to)))
        .collect();
    let open = open_gaps(&reader.standing()?, &filter.scope, to);
    gaps.extend(open.into_iter().map(|(since, ..)| (since.max(from), to.min(now))));
    gaps.retain(|(from, to)| from <= to);
    gaps.sort_unstable();
    let mut joined: Vec<(Timestamp, Timestamp)> = Vec::new();
    for (from, to) in gaps {
        match joined.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    Ok(joined)
}

/// The bars, the gaps behind them, and the times below.
pub(super) fn histogram(
    parts: &Parts,
    survey: &Survey,
    gaps: &[(Timestamp, Timestamp)],
    params: &Params,
    zone: &TimeZone,
) -> Value {
    let most = survey.parts.iter().map(kubediff_history::Counts::total).max().unwrap_or(0);
    let (Some(first), Some(last)) = (parts.times.first(), parts.times.last()) else { return Value::Null };
    #[expect(clippy::cast_precision_loss, reason = "a place on a screen")]
    let share = |at: Timestamp| {
        let whole = (last.as_millisecond() - first.as_millisecond()).max(1) as f64;
        round((at.as_millisecond() - first.as_millisecond()) as f64 / whole * WIDTH)
    };
    #[expect(clippy::cast_precision_loss, reason = "a height on a screen")]
    let height =
        |count: u64| if count == 0 { 0.0 } else { (count as f64 / most.max(1) as f64 * HEIGHT).max(2.0) };
    let bars = parts.times.windows(2).zip(&survey.parts).filter_map(|(ends, counts)| {
        let [from, to] = ends else { return None };
        let mut y = HEIGHT;
        let mut stack = Vec::new();
        let tones = [
            ("updated", counts.updated + counts.others),
            ("added", counts.added),
            ("deleted", counts.deleted),
        ];
        for (tone, count) in tones {
            let height = height(count);
            if height > 0.0 {
                y -= height;
                stack.push(json!({ "tone": tone, "y": round(y.max(0.0)), "height": round(height) }));
            }
        }
        Some(json!({
            "x": share(*from), "width": round((share(*to) - share(*from) - 1.0).max(1.0)),
            "label": format!("{} to {}", date_and_time(*from, zone), time_of_day(*to, zone)),
            "href": params.address("/", SCOPE, &[("since", &from.to_string()), ("until", &to.to_string())]),
            "added": counts.added, "updated": counts.updated + counts.others, "deleted": counts.deleted,
            "parts": stack, "gap": gaps.iter().any(|gap| gap.0 < *to && gap.1 > *from),
        }))
    });
    let drawn = gaps.iter().map(|(from, to)| {
        json!({
            "x": share(*from), "width": (share(*to) - share(*from)).max(2.0),
            "label": format!("not watched from {} to {}", date_and_time(*from, zone), date_and_time(*to, zone)),
        })
    });
    let every = (parts.times.len() / 6).max(1);
    let format = match parts.step {
        step if step >= 86_400 => "%b %-d",
        step if step >= 3_600 => "%a %H:%M",
        step if step >= 60 => "%H:%M",
        _ => "%H:%M:%S",
    };
    // The first part may be short, and its label would stand in that of the next one.
    let second = parts.times.get(every).map_or(WIDTH, |at| share(*at));
    let labelled = parts.times.iter().step_by(every).skip(usize::from(second < LABEL));
    let ticks = labelled
        .filter(|at| share(**at) < WIDTH - 30.0)
        .map(|at| json!({ "x": share(*at), "label": local(*at, zone, format) }));
    let note = survey.counted_since.map(|since| {
        format!("Kinds, namespaces and managers are counted since {} only.", date_and_time(since, zone))
    });
    json!({
        "width": WIDTH, "height": HEIGHT, "bars": bars.collect::<Vec<_>>(), "gaps": drawn.collect::<Vec<_>>(),
        "ticks": ticks.collect::<Vec<_>>(), "most": most,
        "total": survey.parts.iter().map(kubediff_history::Counts::total).sum::<u64>(), "note": note.unwrap_or_default(),
    })
}

pub(super) fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The periods that one can choose.
pub(in crate::web) struct Presets {
    pub(super) words: String,
    pub(super) presets: Vec<Value>,
    /// The next longer one.
    pub(super) wider: Option<String>,
}

/// The periods that one can choose instead of that of the parameters.
pub(in crate::web) fn presets_of(params: &Params) -> Presets {
    const ALL: &[(&str, &str, &str)] = &[
        ("15 m", "-15m", "the last 15 minutes"),
        ("1 h", "", "the last hour"),
        ("6 h", "-6h", "the last 6 hours"),
        ("24 h", "-24h", "the last 24 hours"),
        ("7 d", "-168h", "the last 7 days"),
        ("30 d", "-720h", "the last 30 days"),
        ("All", "1970-01-01", "the whole history"),
    ];
    let has_end = params.get("until").is_some();
    let current = ALL.iter().position(|(_, since, _)| !has_end && params.text("since") == *since);
    let href = |since: &str| params.address("/", SCOPE, &[("since", since), ("until", "")]);
    let presets = ALL.iter().enumerate().map(|(at, (label, since, _))| {
        json!({ "label": label, "href": href(since), "current": current == Some(at) })
    });
    let wider = match current {
        Some(at) => ALL.get(at + 1).map(|(_, since, _)| href(since)),
        None => Some(href("-24h")),
    };
    let words = match current.and_then(|at| ALL.get(at)) {
        Some((_, _, words)) => (*words).to_owned(),
        None if has_end => String::new(),
        None => format!("since {}", params.text("since")),
    };
    Presets { words, presets: presets.collect(), wider }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_round_and_cover_the_period() {
        let zone = TimeZone::get("Asia/Kolkata").unwrap();
        for (from, to, step) in [
            ("2026-11-23T13:10:07Z", "2026-11-23T14:10:22Z", 60),
            ("2026-11-23T13:10:07Z", "2026-11-23T13:10:07Z", 1),
            ("2026-11-16T14:10:00Z", "2026-11-23T14:10:22Z", 10_800),
            ("1970-01-01T00:00:00Z", "2026-11-23T14:10:22Z", 31_536_000),
        ] {
            let (from, to): (Timestamp, Timestamp) = (from.parse().unwrap(), to.parse().unwrap());
            let parts = parts(from, to, &zone);
            assert_eq!(parts.step, step, "{from}");
            assert_eq!((*parts.times.first().unwrap(), *parts.times.last().unwrap()), (from, to));
            assert!(parts.times.len() <= 84, "{}", parts.times.len());
            let offset = i64::from(zone.to_offset(from).seconds());
            let inner = parts.times.iter().skip(1).rev().skip(1);
            assert!(inner.clone().all(|at| (at.as_second() + offset) % step == 0), "{:?}", parts.times);
            assert!(parts.times.windows(2).all(|ends| ends[0] <= ends[1]));
        }
    }
}
