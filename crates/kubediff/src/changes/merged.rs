//! States as JSON, and one change that stands for several: the reader of the output was slow.

use serde_json::Value;

use crate::changes::change::{Change, Compared, Profile, Sighting, Undecodable};
use crate::hide::noise::Tally;

impl Change {
    /// [`Change::between_redacted`] for objects as JSON, whose secrets are hidden first.
    ///
    /// # Errors
    ///
    /// When bytes are not JSON.
    pub fn between_merged(
        sighting: &Sighting<'_>,
        old: Option<&[u8]>,
        new: Option<&[u8]>,
        merged: u32,
        profile: &Profile,
        tally: &mut Tally,
    ) -> Result<Compared, Undecodable> {
        if old == new {
            tally.unchanged += 1;
            return Ok(Compared::Nothing);
        }
        let read = |bytes: Option<&[u8]>, side| {
            bytes
                .map(serde_json::from_slice::<Value>)
                .transpose()
                .map_err(|source| Undecodable { side, source })
        };
        let (old, new) = (read(old, "old")?, read(new, "new")?);
        if old == new {
            tally.unchanged += 1;
            return Ok(Compared::Nothing);
        }
        Ok(match profile.redact(sighting.gvk, old, new, merged, tally) {
            Some([old, new]) => Self::between_redacted(sighting, old, new, merged, profile, tally),
            None => Compared::Nothing,
        })
    }
}
