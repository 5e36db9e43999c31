//! The sinks at work: each has a task that follows the history at its own pace.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use informer::error_chain;
use kubediff_delivery::{Delivery, Driver, Record, Status};
use kubediff_history::Cluster;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::ServeError;
use super::log::{Routed, SinkLog};
use crate::Secrets;
use crate::config::{Loaded, NotConnected};
use crate::history::shared::SharedHistory;
use crate::route::Routes;
use crate::text::terminal::say;

/// How long a request that is under way at the end may take.
const GRACE: Duration = Duration::from_secs(10);
/// A sink that has taken nothing for so long is worth a line.
const SILENT: Duration = Duration::from_secs(60);
/// A task that failed begins again so soon.
const AGAIN: Duration = Duration::from_secs(5);

/// The tasks of all sinks.
pub(super) struct Deliveries {
    tasks: JoinSet<()>,
    stop: CancellationToken,
    statuses: BTreeMap<String, watch::Receiver<Status>>,
}

impl Deliveries {
    /// Begins to deliver to each sink from where it has come to, as soon as the values of Secrets are `learnt`; to a new one, what is
    /// recorded from now on.
    ///
    /// # Errors
    ///
    /// When a sink cannot be set up, or the history cannot be used.
    pub(super) fn start(
        loaded: &Loaded,
        history: &SharedHistory,
        routes: &Arc<Routes>,
        secrets: &Secrets,
        learnt: &watch::Receiver<bool>,
        cluster: &Cluster,
    ) -> Result<Self, ServeError> {
        let mut deliveries =
            Self { tasks: JoinSet::new(), stop: CancellationToken::new(), statuses: BTreeMap::new() };
        let sinks = &loaded.config.sinks;
        let mut connections = BTreeMap::new();
        for (name, sink) in sinks {
            let connection: Result<_, NotConnected> = loaded.connect(name, sink, cluster);
            connections.insert(name.clone(), connection.map_err(Box::new)?);
        }
        // When all of them can be set up, and not before.
        let mut writer = history.lock();
        let mut reader = writer.reader()?;
        for former in reader.sinks()? {
            if !sinks.contains_key(&former.name) {
                let left = reader.count_after(former.position)?;
                say(&format!(
                    "the sink {} is not in the configuration any more: its place is forgotten, and {left} records that it has not taken; \
                     a sink with a new name begins with what is recorded from now on",
                    former.name
                ));
                writer.remove_sink(&former.name)?;
            }
        }
        for name in sinks.keys() {
            writer.add_sink(name)?;
        }
        drop(writer);
        let routed = Routed::new(&loaded.config, history.clone(), routes.clone(), secrets.clone())?;
        let routed = Arc::new(routed);
        for (name, sink) in sinks {
            let mut connection = connections.remove(name);
            let (status, told) = watch::channel(Status::default());
            deliveries.statuses.insert(name.clone(), told.clone());
            let of = name.clone();
            deliveries.tasks.spawn(async move {
                let _ = tell(&of, told, say).await;
            });
            let (loaded, cluster) = (loaded.clone(), cluster.clone());
            let stop = deliveries.stop.clone();
            let log = SinkLog::new(name, history.clone(), routed.clone(), stop.clone());
            let (name, sink) = (name.clone(), sink.clone());
            let mut learnt = learnt.clone();
            deliveries.tasks.spawn(async move {
                // Earlier records may mention a value that is known only when the Secrets are listed.
                let until_learnt = async { learnt.wait_for(|is_learnt| *is_learnt).await.is_ok() };
                if stop.run_until_cancelled(until_learnt).await != Some(true) {
                    return;
                }
                let mut said = String::new();
                while !stop.is_cancelled() {
                    let made = match connection.take() {
                        Some(connection) => Ok(connection),
                        None => loaded.connect(&name, &sink, &cluster),
                    };
                    let delivery = log.begin(sink.policy());
                    let ended = match (made, delivery) {
                        (Ok(made), Ok((delivery, tail))) => {
                            let made = made.continues(tail.as_deref(), log.ids());
                            let (resend, resends) = mpsc::channel(1);
                            let resending = log.resend(&name, status.subscribe(), resend);
                            let (log, status) = (log.clone(), status.clone());
                            let driver = Driver { delivery, log, sink: made, grace: GRACE, status, resends };
                            let ended = tokio::select! {
                                ended = driver.run(stop.clone()) => ended,
                                never = resending => match never {},
                            };
                            ended.map_err(|error| error_chain(&error))
                        }
                        (Err(error), _) => Err(error.to_string()),
                        (_, Err(error)) => Err(error.to_string()),
                    };
                    let Err(trouble) = ended else { return };
                    if trouble != said {
                        say(&format!("the sink {name} begins again: {trouble}"));
                        said.clone_from(&trouble);
                    }
                    status.send_modify(|status| status.trouble = Some(trouble.into()));
                    stop.run_until_cancelled(tokio::time::sleep(AGAIN)).await;
                }
            });
        }
        Ok(deliveries)
    }

    /// Where each sink stands, as it changes.
    pub(super) fn statuses(&self) -> BTreeMap<String, watch::Receiver<Status>> {
        self.statuses.clone()
    }

    /// Ends all of them. Requests under way may be answered; undelivered records are delivered after the next start. Cancel safe.
    pub(super) async fn stop(&mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

impl SinkLog {
    /// A delivery that begins where the sink has come to, and the sink's tail.
    fn begin(
        &self,
        policy: kubediff_delivery::Policy,
    ) -> Result<(Delivery, Option<String>), kubediff_history::Error> {
        let place = self.history.noticing(self.place())?;
        let mut delivery = Delivery::new(policy, getrandom::u64().unwrap_or_default(), place.position);
        delivery.remember_dead(place.dead);
        for letter in place.letters.iter().rev() {
            delivery.remember_missing(letter.object, letter.number.0);
        }
        Ok((delivery, place.tail))
    }

    /// Sends dead letters again, the oldest first: at the start, because a changed configuration may have made the sink take them, and
    /// whenever the sink no longer refuses everything.
    async fn resend(
        &self,
        name: &str,
        mut status: watch::Receiver<Status>,
        resends: mpsc::Sender<Record>,
    ) -> Infallible {
        loop {
            let (log, resends) = (self.clone(), resends.clone());
            let sent = move || {
                log.history.noticing(log.each_dead_letter(|record| resends.blocking_send(record).is_ok()))
            };
            if let Ok(Err(error)) = tokio::task::spawn_blocking(sent).await {
                say(&format!("dead letters of the sink {name} are not sent again: {}", error_chain(&error)));
            }
            if status.wait_for(|status| status.refuses_all).await.is_err()
                || status.wait_for(|status| !status.refuses_all).await.is_err()
            {
                return std::future::pending().await;
            }
        }
    }
}

/// Says when a sink takes nothing although records wait, at once if it refuses them and else after a minute; and when it takes records
/// again. It ends with the sink.
async fn tell(name: &str, mut status: watch::Receiver<Status>, say: impl Fn(&str)) -> Option<Infallible> {
    loop {
        let taken = status.wait_for(|status| status.trouble.is_some() && status.behind > 0).await.ok()?.taken;
        let (mut moving, mut refusing) = (status.clone(), status.clone());
        let waits = tokio::select! {
            moves = moving.wait_for(|status| status.taken != taken || status.trouble.is_none()) => {
                moves.ok()?;
                false
            }
            refuses = refusing.wait_for(|status| status.refuses_all) => refuses.is_ok(),
            () = tokio::time::sleep(SILENT) => true,
        };
        if waits {
            let Status { behind, trouble, .. } = status.borrow().clone();
            let reason = trouble.unwrap_or_default();
            say(&format!("the sink {name} takes nothing: {reason}; {behind} records wait for it"));
            status.wait_for(|status| status.taken != taken).await.ok()?;
            say(&format!("the sink {name} takes records again"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn k6_a_sink_that_takes_nothing_for_a_minute_is_a_line_and_so_is_its_recovery() {
        let (status, told) = watch::channel(Status::default());
        let said = Arc::new(Mutex::new(Vec::new()));
        let lines = said.clone();
        tokio::spawn(
            async move { tell("h", told, |line| lines.lock().unwrap().push(line.to_owned())).await },
        );
        let set = async |trouble: Option<&str>, behind, taken, refuses_all, seconds| {
            let trouble = trouble.map(Into::into);
            status
                .send_modify(|it| *it = Status { trouble, behind, taken, refuses_all, ..Status::default() });
            tokio::task::yield_now().await;
            tokio::time::advance(Duration::from_secs(seconds)).await;
            tokio::task::yield_now().await;
            std::mem::take(&mut *said.lock().unwrap())
        };
        assert!(set(Some("500"), 1, 0, false, 59).await.is_empty(), "not yet a minute");
        // One object is refused, and others are taken.
        assert!(set(Some("it refuses a record: 400"), 9, 1, false, 40).await.is_empty());
        assert!(set(Some("it refuses a record: 400"), 9, 2, false, 40).await.is_empty());
        let nothing = set(Some("500"), 7, 2, false, 300).await;
        assert_eq!(nothing, ["the sink h takes nothing: 500; 7 records wait for it"]);
        assert_eq!(set(None, 0, 3, false, 300).await, ["the sink h takes records again"]);
        let refuses = set(Some("it refuses every record: 400"), 2, 3, true, 1).await;
        assert_eq!(
            refuses,
            ["the sink h takes nothing: it refuses every record: 400; 2 records wait for it"]
        );
        assert_eq!(set(None, 0, 4, false, 1).await, ["the sink h takes records again"]);
    }
}
