//! How far the watches are recorded.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::follow::Watermark;
use crate::model::position;

/// The low watermarks of all watches.
#[derive(Default)]
pub(crate) struct Reached {
    /// By the names of their positions, each with the position that was told last.
    watches: BTreeMap<String, (Arc<Watermark>, Option<String>)>,
    ahead: Option<String>,
}

impl Reached {
    /// From now on, these count.
    pub(crate) fn watches(&mut self, watermarks: &[Arc<Watermark>]) {
        for watermark in watermarks {
            self.watches.insert(watermark.name().to_owned(), (watermark.clone(), None));
        }
    }

    /// The positions that have changed, and the names of the watches of which more is recorded than the position says, if those have.
    pub(crate) fn news(&mut self) -> (Vec<(String, String)>, Option<String>) {
        let mut positions = Vec::new();
        for (name, (watermark, last)) in &mut self.watches {
            let version = watermark.version();
            let position =
                version.map_or_else(|| position::NOTHING.to_owned(), |version| version.to_string());
            if last.as_ref() != Some(&position) {
                positions.push((name.clone(), position.clone()));
                *last = Some(position);
            }
        }
        let behind = self.watches.iter().filter(|(_, (watermark, _))| watermark.is_behind());
        let names: Vec<&str> = behind.map(|(name, _)| name.as_str()).collect();
        let ahead = Some(names.join("\n"));
        let news = ahead.clone().filter(|_| ahead != self.ahead);
        self.ahead = ahead;
        (positions, news)
    }
}
