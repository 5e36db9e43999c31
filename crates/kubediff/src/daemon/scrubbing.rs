//! Masks in the history what became known after it was stored: values of Secrets, and paths to hide.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::Secrets;
use crate::follow::say;
use crate::history::writer::SharedHistory;

/// The most records that are scrubbed without a command.
const MOST: u32 = 20_000;
/// Values come together: those of a Secret, and of several.
const GATHER: Duration = Duration::from_secs(1);
/// After a scrub, none begins for so many times as long as it took: Secrets that come all the time cost a twentieth of a core.
const REST: u32 = 20;

/// Scrubs when values have become known, until it is to stop; a last time then.
pub(super) async fn run(history: SharedHistory, secrets: Secrets, stop: CancellationToken) {
    let mut unscrubbed = history.unscrubbed();
    let mut rest = GATHER;
    loop {
        let next = async {
            let _ = unscrubbed.wait_for(Option::is_some).await;
            tokio::time::sleep(rest).await;
        };
        let is_last = stop.run_until_cancelled(next).await.is_none();
        let (of, secrets, stopped) = (history.clone(), secrets.clone(), stop.clone());
        let began = tokio::time::Instant::now();
        let scrub = move || of.scrub(MOST, &secrets, &|| !is_last && stopped.is_cancelled());
        match tokio::task::spawn_blocking(scrub).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => say(&format!("values that became known later stay in the history: {error}")),
            Err(_) => return,
        }
        if is_last {
            return;
        }
        rest = GATHER.max(began.elapsed().saturating_mul(REST));
    }
}
