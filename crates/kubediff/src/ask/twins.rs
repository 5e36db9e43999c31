//! The objects of one name in two clusters, at one time.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kubediff_history::{ObjectId, Page, Reader, Scope, Version};
use serde_json::Value;

use super::error::{AskError, UnknownName};
use super::names::Target;
use super::{names, period, stored};
use crate::changes::change::Verb;
use crate::hide::noise::TRACES;
use crate::hide::secret::{may_be_none, may_have_mark, take_hashes};
use crate::history::notes::{KEY, OTHER_KEY};
use crate::{Change, Noise, Origin, Profile, Redacted, Schemas, Secrets, Sighting, Tally};

/// The object in one cluster and in the other.
pub(crate) struct Twins {
    /// As the cluster has it that is compared with, if it is there.
    pub(crate) object: ObjectId,
    /// How they differ.
    pub(crate) change: Option<Change>,
    /// What the answer leaves open, in sentences.
    pub(crate) remarks: Vec<String>,
}

impl Twins {
    /// Compares the object of this name in two histories at a time, or as it is now.
    pub(crate) fn of(
        readers: [&mut Reader; 2],
        target: &Target,
        (at, now): (Option<Timestamp>, Timestamp),
        noise: Noise,
        zone: &TimeZone,
    ) -> Result<Self, AskError> {
        let [one, other] = readers;
        let (old, new) = (one.state(&target.scope, at)?, other.state(&target.scope, at)?);
        let places = |versions: &[Version]| -> Vec<(String, Option<String>)> {
            let of = |it: &Version| (it.object.qualified_resource(), it.object.namespace.clone());
            versions.iter().map(of).collect()
        };
        let mut found = [places(&old), places(&new)].concat();
        found.sort_unstable();
        found.dedup();
        if found.len() > 1 {
            let places: Vec<String> = found
                .into_iter()
                .map(|(resource, namespace)| match namespace {
                    Some(namespace) => format!("{resource} in {namespace}"),
                    None => resource,
                })
                .collect();
            let (object, places) = (target.to_string(), places.join(", "));
            return Err(UnknownName::Ambiguous { object, places }.into());
        }
        // Of one name there is one object, unless a deletion was missed.
        let newest = |versions: Vec<Version>| versions.into_iter().max_by_key(|version| version.number);
        let (old, new) = (newest(old), newest(new));
        let keys = [key_of(one, old.as_ref())?, key_of(other, new.as_ref())?];
        let Some(last) = new.as_ref().or(old.as_ref()) else {
            return Err(period::nothing(other, format!("neither cluster has {target}"), zone));
        };
        let object = last.object.clone();
        let schemas = Schemas::default();
        if names::schema(other, &schemas, &object, at)?.is_none() {
            names::schema(one, &schemas, &object, at)?;
        }
        let [mut old, mut new] =
            [old, new].map(|version| version.map(|version| stored::object(&version).into_inner()));
        let mut remarks = Vec::new();
        let is_one_key = matches!(&keys, [Some(one), Some(other)] if one == other);
        if !is_one_key {
            let has_marks = |state: &mut Option<Value>| state.as_mut().is_some_and(take_hashes);
            if let (true, true) = (has_marks(&mut old), has_marks(&mut new)) {
                remarks.push(
                    "hidden values have hashes of different keys in the two clusters: those of one length cannot be told apart"
                        .to_owned(),
                );
            }
        }
        let mut profile = Profile { noise, secrets: Secrets::with_key([0; 32]), schemas };
        // The kind was asked for.
        profile.noise.show_kind(&object.gvk);
        let sighting = Sighting {
            cluster: None,
            gvk: &object.gvk,
            resource: &object.resource,
            observed_at: at.unwrap_or(now),
            origin: Origin::Watch,
        };
        let [old, new] = [old, new].map(|state| state.map(Redacted::vouched));
        let compared = Change::between_redacted(&sighting, old, new, 1, &profile, &mut Tally::default());
        let mut change = compared.change();
        if let Some(change) = &mut change {
            if change.verb == Verb::Recreated {
                change.verb = Verb::Updated;
            }
            // Nobody made the one of the other.
            (change.managers, change.owners) = (Vec::new(), Vec::new());
            change.key = keys.into_iter().flatten().next().filter(|_| is_one_key);
            let open = change.diff.iter().filter(|it| may_be_none(&it.edit)).count();
            if open > 0 {
                let values = if open == 1 { "1 value is".to_owned() } else { format!("{open} values are") };
                remarks.push(format!("{values} hidden in one of the clusters alone, and may be the same"));
            }
            // Two objects are two in any case.
            let is_told = |rule: &&String| *rule != "identity" && !TRACES.contains(&rule.as_str());
            let rules: Vec<&str> = change.dropped.keys().filter(is_told).map(String::as_str).collect();
            if change.diff.is_empty() && !rules.is_empty() {
                remarks.push(format!("they differ in noise: {}; --show all shows it", rules.join(", ")));
            }
        }
        let change = change.and_then(|change| change.only(|it| !may_be_none(&it.edit)));
        Ok(Self { object, change, remarks })
    }
}

/// The key of the hashes in a state; `None` where they may be of another one, or of several.
fn key_of(reader: &mut Reader, version: Option<&Version>) -> Result<Option<String>, AskError> {
    let Some(version) = version.filter(|it| may_have_mark(it.body.bytes())) else { return Ok(None) };
    let (mut page, everything) = (Page::newest(10_000).until(version.number), Scope::default());
    loop {
        let gaps = reader.gaps(&everything, None, None, &page)?;
        if gaps.iter().any(|gap| gap.number > version.number && gap.reason == OTHER_KEY) {
            return Ok(None);
        }
        let Some(last) = gaps.last().filter(|_| gaps.len() == page.limit) else { break };
        page = page.after(last.number);
    }
    let of_change = version.change.as_ref().and_then(|change| change.key.clone());
    Ok(match of_change {
        Some(key) => Some(key),
        None => reader.notes()?.remove(KEY),
    })
}
