//! Masks in the history what became known after it was stored: values of Secrets, and paths to hide; and what `kubediff history scrub`
//! leaves to the daemon.

use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::Secrets;
use crate::history::scrub::{Order, OrderError};
use crate::history::shared::SharedHistory;
use crate::text::terminal::say;

/// The most records that are scrubbed without a command.
const MOST: u32 = 20_000;
/// Values come together: those of a Secret, and of several.
const GATHER: Duration = Duration::from_secs(1);
/// After a scrub, none begins for so many times as long as it took: Secrets that come all the time cost a twentieth of a core.
const REST: u32 = 20;
/// The longest scrub at the end of the process. The next start goes on with it.
const LAST: Duration = Duration::from_secs(5);
/// How often an order of the command is looked for.
const LOOK: Duration = Duration::from_secs(1);

/// Scrubs when values have become known, or a command asks for it, until it is to stop; for values a last time then, unless the next
/// configuration follows, which begins with it.
pub(super) async fn run(
    history: SharedHistory,
    file: PathBuf,
    secrets: Secrets,
    stop: CancellationToken,
    follows: CancellationToken,
) {
    let mut unscrubbed = history.unscrubbed();
    let mut rest = GATHER;
    loop {
        let known = async {
            let _ = unscrubbed.wait_for(Option::is_some).await;
            tokio::time::sleep(rest).await;
        };
        let next = async {
            tokio::select! {
                () = known => {}
                () = order(&file) => {}
            }
        };
        let is_last = stop.run_until_cancelled(next).await.is_none();
        if follows.is_cancelled() {
            return;
        }
        let (of, secrets, stopped) = (history.clone(), secrets.clone(), stop.clone());
        let began = tokio::time::Instant::now();
        let place = file.clone();
        let scrub = move || {
            if !is_last && let Err(error) = obey(&of, &place, &secrets, &|| stopped.is_cancelled()) {
                say_all(&error);
            }
            let is_over = || if is_last { began.elapsed() > LAST } else { stopped.is_cancelled() };
            of.scrub(MOST, &secrets, &is_over)
        };
        match tokio::task::spawn_blocking(scrub).await.map(|outcome| history.noticing(outcome)) {
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

/// Waits for an order.
async fn order(history: &Path) {
    let file = Order::file_beside(history);
    while !file.exists() {
        tokio::time::sleep(LOOK).await;
    }
}

/// Carries out the order that waits, if there is one. An order that cannot be carried out waits no longer.
fn obey(
    history: &SharedHistory,
    file: &Path,
    secrets: &Secrets,
    stop: &dyn Fn() -> bool,
) -> Result<(), OrderError> {
    let (order, read) = match Order::waiting(file) {
        Ok(order) => (order, Ok(())),
        Err(error) => (None, Err(error)),
    };
    let masked = read.and_then(|()| {
        let Some(order) = &order else { return Ok(true) };
        let mask = order.mask(secrets)?;
        // From now on the value is hidden in what comes, too.
        secrets.restore(&order.prints);
        history.noticing(history.scrub_by(&mask, &order.prints, stop)).map_err(OrderError::History)
    });
    match masked {
        Ok(true) => {}
        // The next start begins again, or, if the history cannot be written, the next time.
        Ok(false) | Err(OrderError::History(_)) => return masked.map(drop),
        Err(_) => {}
    }
    if Order::file_beside(file).exists() {
        Order::done(file, order.as_ref(), masked.as_ref().err())?;
    }
    masked.map(drop)
}

fn say_all(error: &OrderError) {
    let why = error.source().map(|source| format!(": {source}")).unwrap_or_default();
    say(&format!("a scrub by command was not carried out: {error}{why}"));
}
