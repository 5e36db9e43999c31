//! Why a request was not sent, or was cancelled.

use std::error::Error;

use informer::kube::client;

/// Why a term of leadership is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Loss {
    /// No renewal was confirmed before the renew deadline.
    #[error("the lease was not renewed in time")]
    Expired,
    /// The lease names another holder, or none.
    #[error("another candidate holds the lease")]
    Taken,
    /// The lease was deleted.
    #[error("the lease was deleted")]
    Deleted,
    /// This process gave the lease up.
    #[error("this process gave up the lease")]
    Released,
}

/// A request was refused or cancelled because the term of leadership is over.
///
/// If it was cancelled while it was under way, whether the server carried it out is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not leading: {0}")]
pub struct NotLeading(Loss);

impl NotLeading {
    pub(super) fn new(loss: Loss) -> Self {
        Self(loss)
    }

    /// Why the term is over.
    pub fn loss(&self) -> Loss {
        self.0
    }

    /// Finds this error among the causes of another one.
    ///
    /// ```
    /// use informer_controller::gate::NotLeading;
    ///
    /// let other = std::io::Error::other("no route to host");
    /// assert_eq!(NotLeading::find(&other), None);
    /// ```
    pub fn find(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(found) = error.downcast_ref::<Self>() {
                return Some(*found);
            }
            // An I/O error shows the causes of its content, not the content itself.
            let content = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
            if let Some(found) = content.and_then(|content| content.downcast_ref::<Self>()) {
                return Some(*found);
            }
            cause = match content {
                Some(content) => Some(content),
                None => error.source(),
            };
        }
        None
    }
}

/// Whether a request failed because the term of leadership is over. The caller then drops its work: another candidate
/// does it.
///
/// ```no_run
/// use informer::kube::client::Api;
/// use informer_controller::gate::is_not_leading;
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// # async fn example(maps: Api<ConfigMap>, map: ConfigMap) -> Result<(), informer::kube::client::Error> {
/// match maps.replace("cart", &Default::default(), &map).await {
///     Err(error) if is_not_leading(&error) => return Ok(()),
///     written => written?,
/// };
/// # Ok(())
/// # }
/// ```
pub fn is_not_leading(error: &client::Error) -> bool {
    NotLeading::find(error).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_is_found_below_io_errors_and_services() {
        let refusal = NotLeading::new(Loss::Taken);
        assert_eq!(refusal.to_string(), "not leading: another candidate holds the lease");
        let io = std::io::Error::other(std::io::Error::other(refusal));
        assert_eq!(NotLeading::find(&io), Some(refusal));
        assert!(is_not_leading(&client::Error::Service(Box::new(io))));
        assert!(!is_not_leading(&client::Error::TlsRequired));
    }
}
