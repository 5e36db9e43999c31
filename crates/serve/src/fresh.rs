//! Waits for a version that the server has not reached yet.

use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

use crate::{Collection, Status};

/// A collection reports events of its own objects only. The revision also moves for other reasons, so it is polled.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Waits until a collection has reached a revision, and refuses the request after a timeout.
pub(crate) async fn until_fresh(
    collection: &dyn Collection,
    revision: u64,
    patience: Duration,
) -> Result<(), Status> {
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let reached = async {
        while collection.revision() < revision {
            looks.tick().await;
        }
    };
    let reached = timeout_at(Instant::now() + patience, reached).await;
    reached.map_err(|_| Status::too_large(revision, collection.revision()))
}
