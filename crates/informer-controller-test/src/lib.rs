//! Rehearses Kubernetes controllers: runs one many times in simulated time, against an API server in the process, and
//! disturbs what it sees. The disturbances follow from a seed, so that every failure can be repeated.
//!
//! The method is that of Sieve ("Automatic Reliability Testing for Cluster Management Controllers", OSDI 2022): a
//! controller is disturbed in its view of the cluster, and its end is compared with that of undisturbed runs. The kinds
//! are in [`Disturbance`].
//!
//! ```
//! use informer_controller::{Context, Controller, Outcome, RunError};
//! use informer_controller_test::{Env, Rehearsal, Rule};
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use serde_json::json;
//!
//! /// Labels each config map as seen.
//! async fn program(env: Env) -> Result<(), RunError> {
//!     let factory = env.factory().build().expect("the options are valid");
//!     let maps = factory.informer::<ConfigMap>();
//!     Controller::new("label", &maps)
//!         .host(env.host())
//!         .run(env.client(), |context: Context<ConfigMap>| async move {
//!             if let Some(map) = context.object()
//!                 && map.labels().value("seen").is_none()
//!             {
//!                 context.writer().patch(map, json!({ "metadata": { "labels": { "seen": "yes" } } })).await?;
//!             }
//!             Ok(Outcome::Done)
//!         })
//!         .await
//! }
//!
//! Rehearsal::new(program)
//!     .objects([json!({
//!         "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "shop", "name": "a" },
//!     })])
//!     .script(|world| async move {
//!         world.patch("ConfigMap", "shop/a", json!({ "data": { "x": "1" } })).await;
//!         world.delete("ConfigMap", "shop/a").await;
//!     })
//!     .rule(Rule::deletes_only_its_own())
//!     .seeds(0..10)
//!     .run();
//! ```
//!
//! [`Rehearsal::run`] panics with a story: the smallest case that shows the failure, what happened in it with simulated
//! times, the write to look at, and what the program had not been shown when it sent that write.
//!
//! # What a run is
//!
//! One current-thread runtime with a paused clock, without sockets. Each seed runs twice, and two histories that differ are
//! an error. A run ends when the script is over, all disturbances have ended, and nothing has changed for
//! [`quiet`](Rehearsal::quiet). Its end must be that of the undisturbed runs, apart from uids, versions, times, generated
//! names, managed fields, and whatever differs between undisturbed runs. Every [`Rule`] must hold all the time.
//!
//! # What a program may do
//!
//! It reaches the world through its [`Env`]. Anything that goes around it is not simulated:
//!
//! - Threads for blocking work, and requests from other threads, are noticed: an error. So is a program that blocks or
//!   spins, after 20 s of real time.
//! - Sockets panic: the runtime has none. The program is then started again, as after any panic.
//! - The system's clock, random numbers, the order of a `HashMap` and `tokio::select!` without `biased` are noticed if the
//!   history depends on them. (`--cfg tokio_unstable` makes the order of `select!` follow from the seed.)
//! - Several waiters of one `tokio::sync::watch` wake in a random order, too; those of a `Notify` do not.
//! - Statics survive crashes, which is not noticed. Neither is a file.
//!
//! The page `docs/REHEARSAL.md` of the repository is an introduction, and says what a rehearsal cannot find.

#![warn(missing_debug_implementations)]

mod calm;
mod cluster;
mod end_state;
mod env;
mod external;
mod history;
mod outcome;
mod plan;
mod process;
mod reconciliations;
mod recorder;
mod rehearsal;
mod rule;
mod run;
mod shrink;
mod sight;
mod stage;
mod story;
mod verdict;
mod view;
mod wire;
mod world;

pub use end_state::Difference;
pub use env::Env;
pub use external::{External, ExternalError};
pub use history::{Author, Change, ExternalChange, History, Instance, Objects, Request};
pub use outcome::{Failure, Outcome, SEEDS};
pub use plan::Disturbance;
pub use reconciliations::{Reconciliation, ReconciliationEnd};
pub use rehearsal::Rehearsal;
pub use rule::Rule;
pub use world::World;
