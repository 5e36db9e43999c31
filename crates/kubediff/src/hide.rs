//! Secrets are hidden, and noise is left out.

pub(crate) mod noise;
pub(crate) mod secret;
