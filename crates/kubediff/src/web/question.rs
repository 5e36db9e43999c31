//! The parameters of the log, as a question and as the words of the search box.

use http::StatusCode;
use jiff::{SignedDuration, Timestamp, Zoned};
use kubediff_history::{Reader, Verb};

use super::address;
use super::params::Params;
use super::problem::Problem;
use super::store::Asked;
use crate::ask::instant::instant;
use crate::ask::log::Question;
use crate::ask::names::Target;
use crate::ask::period::Period;

/// The parameters that say which part of the log is meant.
pub(super) const SCOPE: &[&str] =
    &["q", "kind", "ns", "name", "by", "user", "path", "change", "since", "until", "events", "fold"];

/// The time around a time that somebody looks for.
const AROUND: SignedDuration = SignedDuration::from_mins(5);

/// The part of the log that the parameters mean.
pub(super) fn question(params: &Params, reader: &mut Reader, now: &Zoned) -> Result<Question, Problem> {
    // Counts and gaps have no stories, and refuse a wrong value all the same.
    params.flag("fold", false)?;
    Ok(Question {
        target: target(params, reader)?,
        period: period(params, now)?,
        manager: params.get("by").map(str::to_owned),
        user: params.get("user").map(str::to_owned),
        path: params
            .get("path")
            .map(|text| {
                text.parse().map_err(|error: crate::InvalidPattern| Problem::wrong("path", error.to_string()))
            })
            .transpose()?,
        verbs: verbs(params.text("change"))?,
        events: params.flag("events", false)?,
        in_words: false,
    })
}

/// The objects that the parameters mean.
pub(super) fn target(params: &Params, reader: &mut Reader) -> Result<Target, Problem> {
    let mut words: Vec<String> = params.get("kind").into_iter().map(str::to_owned).collect();
    let name = params.get("name").filter(|name| !name.contains('*'));
    if !words.is_empty() {
        words.extend(name.map(str::to_owned));
    }
    let namespace = params.get("ns").map(|name| if name == address::NONE { "" } else { name });
    let mut target = Target::read(reader, &words, namespace).map_err(Problem::of("kind"))?;
    if let Some(name) = name {
        target.scope.name = Some(name.to_owned());
    }
    let part = params.get("name").filter(|name| name.contains('*')).map(|name| name.replace('*', ""));
    target.scope.part = params.get("q").map(str::to_owned).or(part).filter(|part| !part.is_empty());
    Ok(target)
}

/// The period that the parameters mean.
pub(super) fn period(params: &Params, now: &Zoned) -> Result<Period, Problem> {
    for name in ["since", "until"] {
        if let Some(text) = params.get(name) {
            instant(text, now).map_err(|error| Problem::wrong(name, error.to_string()))?;
        }
    }
    Period::read(params.get("since"), params.get("until"), now).map_err(Problem::of("until"))
}

fn verbs(text: &str) -> Result<Vec<Verb>, Problem> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    let verb = |word| match word {
        "added" => Ok(Verb::Added),
        "updated" => Ok(Verb::Updated),
        "deleted" => Ok(Verb::Deleted),
        "recreated" => Ok(Verb::Recreated),
        other => {
            Err(Problem::wrong("change", format!("`{other}` is none of added, updated, deleted, recreated")))
        }
    };
    words.map(verb).collect()
}

/// The words for the search box that mean these parameters.
pub(super) fn words(params: &Params) -> String {
    let mut words: Vec<String> = params.get("q").map(quoted).into_iter().collect();
    for name in SCOPE.iter().filter(|name| **name != "q") {
        words.extend(params.get(name).map(|value| format!("{name}:{}", quoted(value))));
    }
    words.join(" ")
}

fn quoted(word: &str) -> String {
    if word.contains(' ') { format!("\"{word}\"") } else { word.to_owned() }
}

/// The address of what somebody searches for.
pub(super) fn searched(asked: &mut Asked<'_>, text: &str) -> Result<String, Problem> {
    let now = asked.now.clone();
    let mut is_kind = |word: &str| Target::read(asked.reader, &[word.to_owned()], None).is_ok();
    address_of(text, &now, &mut is_kind)
}

/// The same, for somebody who knows kinds.
fn address_of(text: &str, now: &Zoned, is_kind: &mut dyn FnMut(&str) -> bool) -> Result<String, Problem> {
    let text = text.trim();
    if let Some(number) = text.strip_prefix('#') {
        return match number.parse::<u64>() {
            Ok(number) => Ok(format!("/change/{number}")),
            Err(_) => Err(Problem::wrong("s", format!("`{text}` is no number of a change, such as #812"))),
        };
    }
    if let Ok(at) = instant(text, now) {
        let time = |at: Timestamp| at.to_string();
        let [since, until] = [at.checked_sub(AROUND), at.checked_add(AROUND)].map(|it| it.unwrap_or(at));
        return Ok(address::with("/", [("since", time(since)), ("until", time(until))]));
    }
    let mut found: Vec<(&str, String)> = Vec::new();
    let mut parts: Vec<String> = Vec::new();
    for word in split(text) {
        match word.split_once(':').map(|(name, value)| (name, value.to_owned())) {
            Some((name, value)) if let Some(name) = SCOPE.iter().find(|known| **known == name) => {
                found.push((name, value));
            }
            // A name may have a colon: `system:node`.
            _ => parts.push(word),
        }
    }
    match parts.as_slice() {
        [] => {}
        // As the page writes names: `shop/cart`, `Deployment shop/cart`; and as kubectl does: `deploy/cart`.
        [part] => match part.split_once('/') {
            Some((kind, name)) if is_kind(kind) => {
                found.extend([("kind", kind.to_owned()), ("name", name.to_owned())]);
            }
            Some((namespace, name)) if !namespace.is_empty() => {
                found.extend([("ns", namespace.to_owned()), ("name", name.to_owned())]);
            }
            _ => found.push(("q", part.clone())),
        },
        [kind, name] if is_kind(kind) => {
            found.push(("kind", kind.clone()));
            match name.split_once('/') {
                Some((namespace, name)) => {
                    found.extend([("ns", namespace.to_owned()), ("name", name.to_owned())])
                }
                None => found.push(("name", name.clone())),
            }
        }
        _ => {
            return Err(Problem {
                detail: format!(
                    "A search has one part of a name, and this one has {}: {}.",
                    parts.len(),
                    parts.join(", ")
                ),
                parameter: Some("s".to_owned()),
                ..Problem::new(StatusCode::BAD_REQUEST, "The search has several names")
            }
            .hint("Other words name what they are: ns:shop kind:deploy by:kubectl-* since:-2h."));
        }
    }
    Ok(address::with("/", found))
}

/// Words, of which those in quotes may have spaces.
fn split(text: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            c if c.is_whitespace() && !is_quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_box_takes_words_times_and_numbers() {
        let now: Zoned = "2026-11-23T16:30:00+01:00[Europe/Berlin]".parse().unwrap();
        let mut is_kind = |word: &str| ["deploy", "Deployment"].contains(&word);
        for (text, expected) in [
            ("", "/"),
            ("cart", "/?q=cart"),
            (" cart ns:shop by:kubectl-* since:-2h ", "/?ns=shop&by=kubectl-*&since=-2h&q=cart"),
            ("user:jane", "/?user=jane"),
            ("since:\"yesterday 14:05\"", "/?since=yesterday+14%3A05"),
            ("deploy/cart", "/?kind=deploy&name=cart"),
            ("shop/cart", "/?ns=shop&name=cart"),
            ("Deployment shop/cart", "/?kind=Deployment&ns=shop&name=cart"),
            ("deploy cart", "/?kind=deploy&name=cart"),
            ("system:node", "/?q=system%3Anode"),
            ("14:05", "/?since=2026-11-23T13%3A00%3A00Z&until=2026-11-23T13%3A10%3A00Z"),
            ("#812", "/change/812"),
        ] {
            assert_eq!(address_of(text, &now, &mut is_kind).unwrap(), expected, "{text}");
        }
        for text in ["#x", "cart web"] {
            assert!(address_of(text, &now, &mut is_kind).is_err(), "{text}");
        }
        let params = Params::parse("q=cart&since=yesterday+14:05&fold=0");
        assert_eq!(words(&params), "cart since:\"yesterday 14:05\" fold:0");
    }
}
