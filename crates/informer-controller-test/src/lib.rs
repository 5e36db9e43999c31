//! Rehearses a controller.

mod cluster;
mod end_state;
mod env;
mod external;
mod history;
mod plan;
mod process;
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
pub use history::{Author, Change, ExternalChange, History, Instance, Objects};
pub use plan::Disturbance;
pub use rehearsal::{Failure, Outcome, Rehearsal, SEEDS};
pub use rule::Rule;
pub use world::World;
