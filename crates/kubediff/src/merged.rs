//! One change that stands for several: the reader of the output was slow.

use crate::change::{Change, Profile, Sighting, Undecodable};
use crate::noise::{Noise, Tally};
use crate::secret::Redacted;

impl Change {
    /// [`Change::between_json`] for the first state and the last of `merged` changes.
    ///
    /// What happened in between cannot be compared any more. So a change without a difference is shown all the same, unless
    /// the noise that was left out explains why the object was written: it may have changed, and changed back.
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
    ) -> Result<Option<Self>, Undecodable> {
        let mut own = Tally::default();
        let mut change = Self::between_json(sighting, old, new, profile, &mut own)?;
        if merged > 1 && change.is_none() && !own.is_explained() {
            let unsifted = Profile { noise: Noise::none(), ..profile.clone() };
            change = Self::between_json(sighting, old, new, &unsifted, &mut Tally::default())?;
            if let Some(change) = &mut change {
                change.diff = Redacted::default();
            }
            own.changes.clear();
        }
        own.changes.values_mut().for_each(|count| *count *= u64::from(merged));
        tally.add(&own);
        Ok(change.map(|change| Self { merged, ..change }))
    }
}
