//! Where the story happens: requests to the API server, and words to the spectators.

use std::io::{self, Write};
use std::path::Path;

use kube_client::Client;

use super::act::{Act, Step, Verb};
use super::story::Story;
use crate::render::Color;
use crate::render::painter::DIM;

/// Something that the story wanted was refused: a fault of the demo.
#[derive(Debug, thiserror::Error)]
#[error("the demo's API server refused {verb:?} {path}")]
pub struct Refused {
    verb: Verb,
    path: String,
    #[source]
    error: Box<dyn std::error::Error + Send + Sync>,
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

    /// How to look at the shop oneself.
    pub(super) fn hint(&self, kubeconfig: &Path) {
        self.say("A small shop. Look at it in another terminal, or change something yourself:");
        self.say(&format!("    export KUBECONFIG={}", kubeconfig.display()));
        self.say("    kubectl -n shop get pods -w");
        self.say("    kubectl -n shop set image deploy/cart cart=registry.example.com/shop/cart:3.0.0");
    }

    /// Plays until something is refused.
    pub(super) async fn play(&self, mut story: Story) -> Refused {
        loop {
            let Step { pause, caption, acts } = story.step();
            tokio::time::sleep(pause.div_f64(self.speed)).await;
            if let Some(caption) = caption {
                self.say(&format!("\n-- {caption}"));
            }
            for act in acts {
                if let Err(refused) = self.perform(&act).await {
                    return refused;
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
        let body = if act.body.is_null() { Vec::new() } else { act.body.to_string().into_bytes() };
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{}{manager}", act.path))
            .header(http::header::CONTENT_TYPE, content)
            .header(http::header::USER_AGENT, act.manager)
            .body(body);
        let refused = |error: Box<dyn std::error::Error + Send + Sync>| Refused {
            verb: act.verb,
            path: act.path.clone(),
            error,
        };
        let request = request.map_err(|error| refused(Box::new(error)))?;
        self.client.request_text(request).await.map_err(|error| refused(Box::new(error)))?;
        Ok(())
    }

    /// Beside what is shown: standard output holds changes only.
    fn say(&self, text: &str) {
        let mut stderr = self.color.stream(io::stderr());
        // Nobody may be looking; the story goes on.
        let _ = writeln!(stderr, "{DIM}{text}{DIM:#}");
    }
}
