//! Compares and shows what waits in the outbox, on a thread of its own: writing blocks as long as the reader of the output
//! does not read.

use std::error::Error;
use std::io;
use std::sync::Arc;

use super::outbox::Outbox;
use super::screen::{self, Screen};
use super::seen::{Raw, Waiting};
use crate::{Change, Profile, Session, Sighting, Tally};

/// Shows changes, and counts them.
pub(super) struct Printer {
    pub(super) screen: Screen,
    pub(super) session: Session,
    pub(super) profile: Profile,
    /// The name of the cluster, for the record of a change.
    pub(super) cluster: Option<String>,
}

impl Printer {
    /// Shows everything until the outbox is closed and empty, or the output cannot be written. Blocks the thread.
    pub(super) fn run(&mut self, outbox: &Arc<Outbox>) -> io::Result<()> {
        let mut told = 0;
        while let Some(waiting) = outbox.next() {
            match waiting {
                Waiting::Change(raw) => self.change(&raw)?,
                Waiting::Gap(mut gap) => {
                    gap.cluster.clone_from(&self.cluster);
                    self.screen.gap(&gap)?;
                    self.session.gaps.push(gap);
                }
                Waiting::Asked(gvk) => self.profile.noise.show_kind(&gvk),
            }
            let merged = outbox.merged();
            if merged > told && outbox.is_empty() {
                screen::say(&format!(
                    "the reader has caught up; {} merged into others, which say so",
                    were(merged - told)
                ));
                told = merged;
            }
        }
        self.session.merged = outbox.merged();
        Ok(())
    }

    fn change(&mut self, raw: &Raw) -> io::Result<()> {
        match self.compare(raw) {
            Ok(Some(change)) => {
                self.session.record(&change);
                self.screen.change(&change)
            }
            Ok(None) => Ok(()),
            Err(error) => {
                let name = raw.kind.resource.qualified_name();
                screen::say(&format!("an object of {name} is left out: {error}"));
                Ok(())
            }
        }
    }

    fn compare(&mut self, raw: &Raw) -> Result<Option<Change>, Box<dyn Error>> {
        let (old, new) = raw.states();
        let old = old.map(|old| old.json()).transpose()?;
        let new = new.map(|new| new.json()).transpose()?;
        let sighting = Sighting {
            cluster: self.cluster.as_deref(),
            gvk: &raw.kind.gvk,
            resource: &raw.kind.resource.plural,
            observed_at: raw.at,
            origin: raw.origin,
        };
        let mut tally = Tally::default();
        let change = Change::between_merged(
            &sighting,
            old.as_deref(),
            new.as_deref(),
            raw.merged,
            &self.profile,
            &mut tally,
        )?;
        self.session.tally.add(&tally);
        Ok(change)
    }
}

/// `1 change was`, `2 changes were`.
fn were(count: u64) -> String {
    if count == 1 { "1 change was".to_owned() } else { format!("{count} changes were") }
}
