//! Secrets: tokens, keys, addresses that are secrets.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A secret, or where it is: `{env: NAME}`, an environment variable, or `{file: PATH}`.
///
/// A secret that stands in the configuration itself is accepted, with a warning. It is printed nowhere.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// In an environment variable.
    Env(String),
    /// In a file. White space at its end does not count.
    File(PathBuf),
    /// Here.
    Literal(String),
}

/// A secret that is not where it should be.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The variable is not set.
    #[error("the environment variable {0} is not set")]
    Env(String),
    /// The variable is set, and has nothing in it.
    #[error("the environment variable {0} is empty")]
    EmptyEnv(String),
    /// The file cannot be read.
    #[error("the file {} cannot be read", .0.display())]
    File(PathBuf, #[source] std::io::Error),
    /// The file has nothing in it.
    #[error("the file {} is empty", .0.display())]
    Empty(PathBuf),
}

impl Secret {
    /// The secret. `folder` is where relative paths begin: that of the configuration.
    ///
    /// # Errors
    ///
    /// When it is not where the configuration says. The message names the place.
    pub fn reveal(&self, folder: &Path) -> Result<String, SecretError> {
        match self {
            Self::Literal(secret) => Ok(secret.clone()),
            Self::Env(name) => match std::env::var(name) {
                Ok(value) if value.is_empty() => Err(SecretError::EmptyEnv(name.clone())),
                value => value.map_err(|_| SecretError::Env(name.clone())),
            },
            Self::File(path) => {
                let path = folder.join(path);
                match std::fs::read_to_string(&path) {
                    Ok(text) if text.trim_end().is_empty() => Err(SecretError::Empty(path)),
                    Ok(text) => Ok(text.trim_end().to_owned()),
                    Err(error) => Err(SecretError::File(path, error)),
                }
            }
        }
    }

    /// Whether the secret itself is in the configuration.
    pub fn is_literal(&self) -> bool {
        matches!(self, Self::Literal(_))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "{{env: {name}}}"),
            Self::File(path) => write!(f, "{{file: {}}}", path.display()),
            Self::Literal(_) => f.write_str("(hidden)"),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reference {
    env: Option<String>,
    file: Option<PathBuf>,
}

const FORM: &str = "expected the place of a secret: {env: NAME} or {file: PATH}";

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueOrPlace;

        impl<'de> Visitor<'de> for ValueOrPlace {
            type Value = Secret;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the place of a secret, {env: NAME} or {file: PATH}")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Secret, E> {
                if text.is_empty() { Err(E::custom(FORM)) } else { Ok(Secret::Literal(text.to_owned())) }
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Secret, A::Error> {
                match Reference::deserialize(MapAccessDeserializer::new(fields))? {
                    Reference { env: Some(name), file: None } => Ok(Secret::Env(name)),
                    Reference { env: None, file: Some(path) } => Ok(Secret::File(path)),
                    _ => Err(A::Error::custom(FORM)),
                }
            }
        }

        deserializer.deserialize_any(ValueOrPlace)
    }
}

/// A secret that stands in the configuration is not written.
impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::Env(name) => map.serialize_entry("env", name)?,
            Self::File(path) => map.serialize_entry("file", path)?,
            Self::Literal(_) => map.serialize_entry("env", "HIDDEN")?,
        }
        map.end()
    }
}
