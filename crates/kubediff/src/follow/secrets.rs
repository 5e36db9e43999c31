//! The values of Secrets are learnt before anything is shown that may hold them.

use std::time::Duration;

use informer::{Informer, Object};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Follow, streams};
use crate::Gvk;
use crate::text::terminal::say;

/// The end of each message about Secrets that are not known.
const SHOWN: &str = "their values in other objects are not recognised, and shown";
/// Other changes wait this long for the first list of Secrets.
const SECRETS_LIMIT: Duration = Duration::from_secs(10);
/// They wait this long for Secrets that must not be listed: rights of a new installation may come a moment later.
const DENIED_LIMIT: Duration = Duration::from_secs(60);
/// So soon it is looked again whether they may.
const DENIED_AGAIN: Duration = Duration::from_secs(1);

impl Follow {
    /// Learns the values of all Secrets before anything else is shown that may hold them. Says so where that is not possible.
    pub(super) async fn learn_secrets(&self) {
        let all = self.streams.secrets();
        if all.is_empty() {
            say(&format!("Secrets are not watched: {SHOWN}"));
        } else if let Some(part) = self.part_of_secrets() {
            say(&format!("only the Secrets {part} are watched, not all others: {SHOWN}"));
        }
        for secrets in all {
            self.listed(&secrets).await;
            for object in secrets.snapshot().objects() {
                self.learn(object);
            }
        }
        self.learnt.send_replace(true);
    }

    /// The Secrets that are watched, if not all are, in words. Somebody who looks at one namespace knows that it is one.
    fn part_of_secrets(&self) -> Option<String> {
        let names =
            self.targets.keys().any(|target| streams::is_secrets(&target.resource) && target.name.is_some());
        let within = self.reach.within(&self.default_namespace);
        let namespaces = within.namespaces.filter(|_| self.options.persistent);
        let mut parts: Vec<String> =
            namespaces.map(|names| format!("in {}", names.join(", "))).into_iter().collect();
        parts.extend(names.then(|| "that are named".to_owned()));
        parts.extend(
            Some(within.selectors).filter(|selectors| !selectors.is_empty()).map(|it| format!("with {it}")),
        );
        (!parts.is_empty()).then(|| parts.join(" and "))
    }

    /// Whether the values of all Secrets are known that there were at the start, as far as the server lets us.
    pub(crate) fn learnt(&self) -> watch::Receiver<bool> {
        self.learnt.subscribe()
    }

    /// Waits for the first list of Secrets. The rights of a new installation may take a moment to be in force.
    async fn listed(&self, secrets: &Informer<Object>) {
        let began = Instant::now();
        let mut said = false;
        while let Err(error) = secrets.wait_for_sync_or_denial(SECRETS_LIMIT).await {
            let trouble = match error.is_denied() {
                true => "the Secrets must not be listed",
                false => "the Secrets are not listed yet",
            };
            if !self.options.persistent || error.is_denied() && began.elapsed() >= DENIED_LIMIT {
                say(&format!("{trouble}: {SHOWN}"));
                break;
            }
            // The history stays as it is: nothing is recorded before the values to hide are known.
            if !said {
                said = true;
                say(&format!("{trouble}; nothing is recorded before"));
                self.tell(|standing| standing.trouble = Some(trouble.to_owned()));
            }
            if error.is_denied() {
                tokio::time::sleep(DENIED_AGAIN).await;
                secrets.retry_now();
            }
        }
        if said {
            self.tell(|standing| standing.trouble = None);
        }
    }

    pub(super) fn learn(&self, secret: &Object) {
        let object = secret.json().ok().and_then(|json| serde_json::from_slice(&json).ok());
        if let Some(object) = object {
            self.secrets.learn(&Gvk::new("v1", "Secret"), &object);
        }
    }
}
