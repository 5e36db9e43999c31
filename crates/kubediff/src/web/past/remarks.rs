//! What a client should know about an answer, as `Warning` headers: kubectl prints them.

use http::HeaderValue;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kubediff_history::{Reader, Scope};
use serve::Resource;

use super::access::kind_name;
use super::resources::Known;
use crate::ask::period::doubts;
use crate::web::problem::Problem;

/// Remarks of one answer, and the characters of one.
const MOST: usize = 5;
const LENGTH: usize = 200;

/// The remarks about a resource, in a namespace or in all.
pub(super) fn about(
    reader: &mut Reader,
    known: &Known,
    resource: &Resource,
    namespace: Option<&str>,
    time: Timestamp,
    zone: &TimeZone,
) -> Result<Vec<HeaderValue>, Problem> {
    let namespaces = namespace.map(str::to_owned).into_iter().collect();
    let scope = Scope { kinds: vec![kind_name(resource)], namespaces, ..Scope::default() };
    let mut remarks = doubts(reader, &scope, time, zone)?;
    if matches!((&*resource.group, &*resource.plural), ("", "nodes") | ("coordination.k8s.io", "leases")) {
        remarks.push(
            "heartbeats and renewals may be older than this time: they are not recorded one by one"
                .to_owned(),
        );
    }
    let others = known.versions(resource);
    if others.len() > 1 {
        remarks.push(format!(
            "{} were recorded in the versions {}: all are shown as {}",
            resource.qualified_name(),
            others.join(", "),
            resource.version
        ));
    }
    Ok(headers(&remarks))
}

/// The remarks about everything.
pub(super) fn about_all(
    reader: &mut Reader,
    time: Timestamp,
    zone: &TimeZone,
    has_release: bool,
) -> Result<Vec<HeaderValue>, Problem> {
    let mut remarks = doubts(reader, &Scope::default(), time, zone)?;
    if !has_release {
        remarks.push(
            "the history does not have the server's release: this is that of kubediff's kinds".to_owned(),
        );
    }
    Ok(headers(&remarks))
}

fn headers(remarks: &[String]) -> Vec<HeaderValue> {
    remarks.iter().take(MOST).filter_map(|text| header(text)).collect()
}

/// `299 kubediff "..."` (RFC 7234, 5.5).
fn header(text: &str) -> Option<HeaderValue> {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LENGTH);
    let plain = plain.collect::<String>().replace('\\', "\\\\").replace('"', "\\\"");
    HeaderValue::from_bytes(format!("299 kubediff \"{plain}\"").as_bytes()).ok()
}
