//! Tags of answers (RFC 9110, 8.8): who has an answer asks again with its tag, and is told that it is still right, which costs one look
//! at the history.
//!
//! A tag is made before its answer, of all that decides about it: the question, its sender's rights, and which commit of the history is the last one. So an
//! answer has no tag where something else decides: the clock, which goes on all the time, or the time that there was for looking. No tag
//! is one for longer than until the next commit, because each answer can become another one: a scrub masks what was there, and retention
//! removes it.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use jiff::{SignedDuration, Timestamp, Zoned};
use serve::{Body, full};

use super::params::Params;
use super::problem::Problem;
use super::screen::moment;
use super::store::Asked;
use crate::ask::instant::instant;

/// A browser asks again before each use of an answer that it keeps. Shared caches keep none.
const CACHED: HeaderValue = HeaderValue::from_static("no-cache, private");

/// The key of the tags. Another process has another one: so a tag of another version, or of another file, is none of this one's.
static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// A request, as far as it is about tags.
pub(super) struct Condition {
    /// The whole question: an answer may name the host.
    question: (String, Option<HeaderValue>),
    /// The tags that the client has, without their marks of weakness.
    known: Vec<String>,
}

/// An answer and its tag, if it has one. Without an answer, the client has it.
pub(super) struct Tagged<T> {
    pub(super) answer: Option<T>,
    tag: Option<String>,
}

impl Condition {
    pub(super) fn of(request: &Request<Bytes>) -> Self {
        let lines = request.headers().get_all(header::IF_NONE_MATCH).into_iter();
        let known = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
        let known = known.map(|tag| tag.trim().trim_start_matches("W/").to_owned()).collect();
        let host = request.headers().get(header::HOST).cloned();
        Self { question: (request.uri().to_string(), host), known }
    }

    /// Makes the answer, unless the client has it.
    pub(super) fn answer<T>(
        &self,
        asked: &mut Asked<'_>,
        segments: &[&str],
        params: &Params,
        make: impl FnOnce(&mut Asked<'_>) -> Result<T, Problem>,
    ) -> Result<Tagged<T>, Problem> {
        let tag = self.tag(asked, segments, params)?;
        if tag.as_ref().is_some_and(|tag| self.known.contains(tag)) {
            return Ok(Tagged { answer: None, tag });
        }
        let answer = Some(make(asked)?);
        Ok(Tagged { answer, tag: tag.filter(|_| !asked.is_partial) })
    }

    /// A file of the page, unless the client has it.
    pub(super) fn file(&self, content: &'static str) -> Tagged<&'static str> {
        let tag = format!("\"{:016x}\"", KEY.hash_one(content));
        Tagged { answer: Some(content).filter(|_| !self.known.contains(&tag)), tag: Some(tag) }
    }

    /// The tag of the answer; `None` where it may be another one soon.
    fn tag(
        &self,
        asked: &mut Asked<'_>,
        segments: &[&str],
        params: &Params,
    ) -> Result<Option<String>, Problem> {
        if !is_still(asked, segments, params)? {
            return Ok(None);
        }
        // A commit after this look makes another tag next time, whether this answer has it or not.
        let revision = asked.store.revision()?;
        if folds(segments, params) && !asked.store.is_settled(asked.reader, asked.now.timestamp())? {
            return Ok(None);
        }
        // A screen shows the time, to the minute.
        let minute = (segments.first() != Some(&"v1")).then(|| asked.now.timestamp().as_second() / 60);
        Ok(Some(format!("\"{:016x}\"", KEY.hash_one((revision, minute, &self.question, asked.seen)))))
    }
}

impl<T> Tagged<T> {
    /// The response: that of the answer, or 304.
    pub(super) fn response(self, of: impl FnOnce(T) -> Response<Body>) -> Response<Body> {
        let mut response = match self.answer {
            Some(answer) => of(answer),
            None => {
                let mut response = Response::new(full(Bytes::new()));
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                response
            }
        };
        // The same bytes are not promised: another reader may have looked further.
        if let Some(tag) = self.tag.and_then(|tag| HeaderValue::try_from(format!("W/{tag}")).ok()) {
            response.headers_mut().insert(header::ETAG, tag);
            response.headers_mut().insert(header::CACHE_CONTROL, CACHED);
        }
        response
    }
}

/// Copies what a request says about tags.
pub(super) fn copy(from: &HeaderMap, to: &mut HeaderMap) {
    for tags in from.get_all(header::IF_NONE_MATCH) {
        to.append(header::IF_NONE_MATCH, tags.clone());
    }
}

/// Whether the clock decides nothing about this answer, but for the minute that a screen shows. An address that is not listed has answers
/// of the clock.
fn is_still(asked: &mut Asked<'_>, segments: &[&str], params: &Params) -> Result<bool, Problem> {
    /// The screen of a time has a link to the time so long after it, unless that is in the future.
    const LATER: SignedDuration = SignedDuration::from_mins(5);
    let now = asked.now.clone();
    let is_given = |name| params.get(name).is_some_and(|text| is_fixed(text, &now));
    let is_no_other = |name| params.get(name).is_none() || is_given(name);
    Ok(match segments {
        // The last question is whether something is watched at present.
        ["v1", "changes"] => {
            is_no_other("since") && is_no_other("until") && (is_given("until") || is_past(asked)?)
        }
        ["v1", "gaps"] => is_no_other("since") && is_no_other("until"),
        // Without an end they end now.
        ["v1", "histogram" | "facets"] | [""] => is_no_other("since") && is_given("until"),
        ["v1", "diff"] | ["diff"] => is_given("from") && is_given("to"),
        ["v1", "state"] => is_given("at") || params.text("at").starts_with('#'),
        ["v1", "objects", _, _, _] | ["v1", "objects", _, _, _, "versions" | "blame"] => is_no_other("at"),
        // The present manifest has the ages of its lines.
        ["o", _, _, _] => match params.text("tab") {
            "" | "manifest" => is_given("at"),
            _ => is_no_other("at"),
        },
        ["at", time, ""] if time.starts_with('#') || is_fixed(time, &now) => {
            let at = moment(asked, "time", time)?;
            at.checked_add(LATER).is_ok_and(|later| later < now.timestamp())
        }
        ["v1", "changes" | "stories", _] | ["v1", "kinds" | "openapi.json"] => true,
        ["change" | "story", _] | ["help"] => true,
        _ => false,
    })
}

/// Whether a text means the same time whatever the clock says.
fn is_fixed(text: &str, now: &Zoned) -> bool {
    // Not a whole number of days or hours: any text that is about now has another time then.
    let other = now.checked_add(SignedDuration::new(25 * 3600 + 1, 1_000));
    other.is_ok_and(|other| instant(text, now).is_ok_and(|time| instant(text, &other) == Ok(time)))
}

/// Whether everything that the history tells is over by now, as its clock and this one agree.
fn is_past(asked: &mut Asked<'_>) -> Result<bool, Problem> {
    let now = asked.now.timestamp();
    let last = asked.reader.last()?.map(|(_, at)| at);
    let notes = asked.reader.notes()?;
    let mut noted = notes.values().filter_map(|note| note.split(' ').next()?.parse::<Timestamp>().ok());
    Ok(last.is_none_or(|at| at <= now) && noted.all(|at| at <= now))
}

/// Whether stories are a part of the answer.
fn folds(segments: &[&str], params: &Params) -> bool {
    let is_off = |text: &str| matches!(text, "0" | "false");
    match segments {
        ["v1", "changes"] => params.get("fold").is_some_and(|text| !is_off(text)),
        [""] => !is_off(params.text("fold")),
        ["v1", "stories", _] | ["change" | "story", _] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_fixed_or_of_the_clock() {
        for now in ["2026-11-23T16:30:00+01:00[Europe/Berlin]", "2026-03-30T15:00:00+02:00[Europe/Berlin]"] {
            let now: Zoned = now.parse().unwrap();
            for text in ["2026-11-23T14:05:00Z", "2026-11-20 14:05", "2026-11-20", "1970-01-01"] {
                assert!(is_fixed(text, &now), "{text}");
            }
            for text in
                ["now", "-2h", "-1mo", "1 month ago", "14:05", "today", "yesterday 14:05", "-1d12h", "soon"]
            {
                assert!(!is_fixed(text, &now), "{text}");
            }
        }
    }

    #[test]
    fn tags_are_read_from_several_lines() {
        let request = Request::get("/v1/kinds").header("if-none-match", "W/\"1\", \"2\"");
        let request = request.header("if-none-match", "*").body(Bytes::new()).unwrap();
        assert_eq!(Condition::of(&request).known, ["\"1\"", "\"2\"", "*"]);
    }
}
