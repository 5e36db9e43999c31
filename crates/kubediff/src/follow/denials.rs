//! Forbidden watches: many resources for one reason are one line.

use std::collections::BTreeMap;

use informer::ApiStatus;

use crate::model::targets::Target;
use crate::show::summary::some;
use crate::text::words::Server;

/// The watches that are forbidden at present, and those that were reported.
#[derive(Debug, Default)]
pub(super) struct Denials {
    denied: BTreeMap<Target, ApiStatus>,
    /// The code last reported to the user. It is kept when a denial ends briefly, as during a restart of the server.
    said: BTreeMap<Target, u16>,
    unsaid: Vec<Target>,
}

impl Denials {
    /// The target is denied.
    pub(super) fn denied(&mut self, target: &Target, status: ApiStatus) {
        if self.said.get(target) != Some(&status.code) && !self.unsaid.contains(target) {
            self.unsaid.push(target.clone());
        }
        self.denied.insert(target.clone(), status);
    }

    /// The target is watched, or not wanted any more. Whether the user knew that it was denied.
    pub(super) fn over(&mut self, target: &Target) -> bool {
        self.denied.remove(target);
        self.unsaid.retain(|unsaid| unsaid != target);
        self.said.remove(target).is_some()
    }

    pub(super) fn has(&self, target: &Target) -> bool {
        self.denied.contains_key(target)
    }

    /// Whether there is something that the user does not know.
    pub(super) fn is_unsaid(&self) -> bool {
        !self.unsaid.is_empty()
    }

    /// The unreported ones, a line for each reason. There are `all` targets.
    pub(super) fn lines(&mut self, all: usize, server: &Server) -> Vec<String> {
        let mut by_code: BTreeMap<u16, Vec<(Target, ApiStatus)>> = BTreeMap::new();
        for target in std::mem::take(&mut self.unsaid) {
            if let Some(status) = self.denied.get(&target) {
                self.said.insert(target.clone(), status.code);
                by_code.entry(status.code).or_default().push((target, status.clone()));
            }
        }
        let line = |of_code: &Vec<(Target, ApiStatus)>| match of_code.as_slice() {
            [(target, status)] => format!("{} is not watched: {}", target.text(), server.status(status)),
            several => {
                let names: Vec<String> = several.iter().map(|(target, _)| target.text()).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let reason = several.first().map(|(_, status)| brief(status)).unwrap_or_default();
                format!("{} of {all} resources are not watched ({reason}): {}", several.len(), some(&names))
            }
        };
        by_code.values().map(line).collect()
    }

    /// Names and reasons, for the summary.
    pub(super) fn reasons(&self) -> BTreeMap<String, String> {
        self.denied.iter().map(|(target, status)| (target.text(), brief(status))).collect()
    }

    /// All of it in a line, for an error.
    pub(super) fn text(&self, server: &Server) -> String {
        let Some((target, status)) = self.denied.first_key_value() else {
            return "nothing can be watched".to_owned();
        };
        let reason = server.status(status);
        match self.denied.len() {
            1 => format!("{} cannot be watched: {reason}", target.text()),
            count => format!("none of {count} resources can be watched; {}: {reason}", target.text()),
        }
    }

    /// Whether the server understood, but did not accept what was asked: a selector that the resource does not have.
    pub(super) fn are_of_the_request(&self) -> bool {
        self.denied.values().all(|status| matches!(status.code, 400 | 422))
    }
}

/// `403 Forbidden`.
fn brief(status: &ApiStatus) -> String {
    match status.reason.as_str() {
        "" => status.code.to_string(),
        reason => format!("{} {reason}", status.code),
    }
}
