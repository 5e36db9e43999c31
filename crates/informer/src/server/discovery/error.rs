//! Why a resource could not be found.

use std::fmt;

use informer_core::wire::ApiStatus;

use crate::transport::TransportError;

/// Discovery did not resolve a name: the server has no such resource, or did not report its resources.
///
/// ```
/// # async fn example(factory: informer::SharedInformerFactory) {
/// if let Err(error) = factory.resource("deplyo").await {
///     if error.is_unknown() {
///         // the server has no resource `deplyo` that can be watched; did you mean deployments.apps? ...
///         println!("{error}");
///     }
/// }
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct DiscoveryError(Box<Kind>);

#[derive(Debug, thiserror::Error)]
enum Kind {
    #[error("{0}")]
    Unknown(Unknown),
    #[error("the server did not report its resources")]
    Transport(#[source] TransportError),
    #[error("the server refused to report its resources: {0}")]
    Refused(ApiStatus),
    #[error("the server's discovery document is undecodable")]
    NotUnderstood,
    #[error("the factory's runtime has ended")]
    Ended,
}

#[derive(Debug)]
struct Unknown {
    name: String,
    similar: Vec<String>,
    unavailable: Vec<String>,
}

impl DiscoveryError {
    /// Whether the server answered, and has no resource of that name that can be listed and watched.
    pub fn is_unknown(&self) -> bool {
        matches!(*self.0, Kind::Unknown(_))
    }

    /// Resources of the server whose names resemble the unknown one, as `plural.group`.
    pub fn similar(&self) -> &[String] {
        match &*self.0 {
            Kind::Unknown(unknown) => &unknown.similar,
            _ => &[],
        }
    }

    /// The server's answer, if it refused to report its resources.
    pub fn status(&self) -> Option<&ApiStatus> {
        match &*self.0 {
            Kind::Refused(status) => Some(status),
            _ => None,
        }
    }

    /// Whether the server has answered with an error.
    pub(super) fn is_refused(&self) -> bool {
        matches!(*self.0, Kind::Refused(_))
    }

    pub(super) fn unknown(name: &str, similar: Vec<String>, unavailable: Vec<String>) -> Self {
        Self(Box::new(Kind::Unknown(Unknown { name: name.to_owned(), similar, unavailable })))
    }

    pub(super) fn refused(status: ApiStatus) -> Self {
        Self(Box::new(Kind::Refused(status)))
    }

    pub(super) fn not_understood() -> Self {
        Self(Box::new(Kind::NotUnderstood))
    }

    pub(crate) fn ended() -> Self {
        Self(Box::new(Kind::Ended))
    }
}

impl From<TransportError> for DiscoveryError {
    fn from(error: TransportError) -> Self {
        Self(Box::new(Kind::Transport(error)))
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, similar, unavailable } = self;
        write!(f, "the server has no resource `{name}` that can be watched; ")?;
        match similar.as_slice() {
            [] => write!(f, "`kubectl api-resources` lists them; name one as in `deployments.apps`")?,
            similar => write!(f, "did you mean {}?", similar.join(" or "))?,
        }
        if !unavailable.is_empty() {
            write!(f, " It did not report its resources in {}", unavailable.join(", "))?;
        }
        Ok(())
    }
}
