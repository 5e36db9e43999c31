//! States as JSON, and one change that stands for several: the reader of the output was slow.

use serde_json::Value;

use crate::changes::change::{Change, Compared, Profile, Sighting, Undecodable};
use crate::hide::noise::Tally;
use crate::hide::secret;

/// The states before and after a change, as the server has them: with secrets.
pub(crate) struct States {
    pub(crate) old: Option<Value>,
    pub(crate) new: Option<Value>,
}

impl States {
    /// # Errors
    ///
    /// When bytes are not JSON.
    pub(crate) fn read(old: Option<&[u8]>, new: Option<&[u8]>) -> Result<Self, Undecodable> {
        let read = |bytes: Option<&[u8]>, side| {
            bytes.map(state).transpose().map_err(|source| Undecodable { side, source })
        };
        Ok(Self { old: read(old, "old")?, new: read(new, "new")? })
    }
}

/// A state of the cluster. What looks like a mark of this program there is none.
pub(crate) fn state(json: &[u8]) -> Result<Value, serde_json::Error> {
    let mut state = serde_json::from_slice(json)?;
    if secret::may_have_mark(json) {
        secret::write_out_marks(&mut state);
    }
    Ok(state)
}

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
        Ok(Self::between_states(sighting, States::read(old, new)?, merged, profile, tally))
    }

    /// [`Change::between_merged`] for states that were read.
    pub(crate) fn between_states(
        sighting: &Sighting<'_>,
        States { old, new }: States,
        merged: u32,
        profile: &Profile,
        tally: &mut Tally,
    ) -> Compared {
        if old == new {
            tally.unchanged += 1;
            return Compared::Nothing;
        }
        match profile.redact(sighting.gvk, old, new, merged, tally) {
            Some([old, new]) => Self::between_redacted(sighting, old, new, merged, profile, tally),
            None => Compared::Nothing,
        }
    }
}
