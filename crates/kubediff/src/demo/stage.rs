//! Where the story happens: requests to the API server, and words to the spectators.

use std::io::{self, Write};
use std::path::Path;

use kube_client::Client;
use serde_json::{Value, json};

use super::act::{Act, Owner, Step, Verb};
use super::plot::Plot;
use crate::show::render::Color;
use crate::show::render::painter::DIM;

/// Something that the story wanted was refused: a fault of the demo.
#[derive(Debug, thiserror::Error)]
#[error("the demo's API server refused to {verb} {path}: {reason}")]
pub struct Refused {
    verb: Verb,
    path: String,
    reason: String,
    /// The HTTP status code, if there was a response.
    code: Option<u16>,
}

impl Refused {
    /// Whether a spectator interfered: missing, unexpected or terminating objects are theirs.
    fn is_of_a_spectator(&self) -> bool {
        matches!(self.code, Some(403 | 404 | 409))
    }
}

fn refused(act: &Act, reason: String, code: Option<u16>) -> Refused {
    Refused { verb: act.verb, path: act.path.clone(), reason, code }
}

fn refusal(act: &Act, error: kube_client::Error) -> Refused {
    match error {
        kube_client::Error::Api(status) => refused(act, status.message.clone(), Some(status.code)),
        error => refused(act, informer::error_chain(&error), None),
    }
}

pub(super) struct Stage {
    client: Client,
    speed: f64,
    color: Color,
}

impl Stage {
    pub(super) fn new(client: Client, speed: f64, color: Color) -> Self {
        Self { client, speed, color }
    }

    /// How to inspect the shop yourself.
    pub(super) fn hint(&self, kubeconfig: &Path, history: &Path) {
        self.say("A small shop. Look at it in another terminal, or change something yourself:");
        self.say(&format!("    export KUBECONFIG={}", kubeconfig.display()));
        self.say("    kubectl -n shop get pods -w");
        self.say("    kubectl -n shop edit configmap web-config");
        self.say("    kubectl -n shop create configmap hello --from-literal=who=me");
        self.say("No controllers run: only the story creates pods. Everything is recorded; this opens a page on it:");
        self.say(&format!("    kubediff ui --history {}", history.display()));
    }

    /// Plays until a request is refused that must succeed.
    pub(super) async fn play(&self, mut story: Plot) -> Refused {
        loop {
            let Step { pause, caption, acts } = story.step();
            tokio::time::sleep(pause.div_f64(self.speed)).await;
            if let Some(caption) = caption {
                self.say(&format!("\n-- {caption}"));
            }
            for act in acts {
                match self.perform(&act).await {
                    Err(refused) if !refused.is_of_a_spectator() => return refused,
                    _ => {}
                }
            }
        }
    }

    /// Does one thing.
    pub(super) async fn perform(&self, act: &Act) -> Result<(), Refused> {
        let (method, content) = match act.verb {
            Verb::Create => (http::Method::POST, "application/json"),
            Verb::Patch => (http::Method::PATCH, "application/merge-patch+json"),
            Verb::Delete => (http::Method::DELETE, "application/json"),
        };
        let manager = match act.verb {
            Verb::Delete => String::new(),
            Verb::Create | Verb::Patch => format!("?fieldManager={}", act.manager),
        };
        let mut body = act.body.clone();
        if let Some(owner) = &act.owner
            && let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.insert("ownerReferences".to_owned(), json!([self.reference(act, owner).await?]));
        }
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{}{manager}", act.path))
            .header(http::header::CONTENT_TYPE, content)
            .header(http::header::USER_AGENT, act.manager)
            .body(body);
        let request = request.map_err(|error| refused(act, error.to_string(), None))?;
        self.client.request_text(request).await.map_err(|error| refusal(act, error))?;
        Ok(())
    }

    /// The reference to the controller of what is created.
    async fn reference(&self, act: &Act, owner: &Owner) -> Result<Value, Refused> {
        let request = http::Request::get(&owner.path).body(Vec::new());
        let request = request.map_err(|error| refused(act, error.to_string(), None))?;
        let found: Value = self.client.request(request).await.map_err(|error| refusal(act, error))?;
        let Owner { api, kind, name, .. } = owner;
        let uid = &found["metadata"]["uid"];
        Ok(
            json!({ "apiVersion": api, "kind": kind, "name": name, "uid": uid, "controller": true, "blockOwnerDeletion": true }),
        )
    }

    /// Writes to standard error: standard output holds changes only.
    fn say(&self, text: &str) {
        let mut stderr = self.color.stream(io::stderr());
        // Standard error may be closed; the story goes on.
        let _ = writeln!(stderr, "{DIM}{text}{DIM:#}");
    }
}
