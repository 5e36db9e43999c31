//! Documents: what the server says about itself, for those who ask for the past.

/// A document of the server: its release, or the schemas of a group and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its name: `version`, or the path of schemas (`openapi/v3/apis/apps/v1`).
    pub name: String,
    /// Which edition it is. Another edition has another content.
    pub edition: String,
    /// Empty where the server has it no more. No value of an object belongs here: a scrub does not read it.
    pub content: Vec<u8>,
}
