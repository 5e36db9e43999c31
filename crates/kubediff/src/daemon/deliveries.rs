//! The sinks at work: each has a task that follows the history at its own pace.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use informer::error_chain;
use kubediff_delivery::{Delivery, Driver, Record, Status};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::ServeError;
use super::log::SinkLog;
use crate::Secrets;
use crate::config::{Loaded, NotConnected};
use crate::follow::say;
use crate::history::writer::SharedHistory;
use crate::route::Routes;

/// How long a request that is under way at the end may take.
const GRACE: Duration = Duration::from_secs(10);
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
        source: &str,
    ) -> Result<Self, ServeError> {
        let mut deliveries =
            Self { tasks: JoinSet::new(), stop: CancellationToken::new(), statuses: BTreeMap::new() };
        let sinks = &loaded.config.sinks;
        let mut connections = BTreeMap::new();
        for (name, sink) in sinks {
            let connection: Result<_, NotConnected> = loaded.connect(name, sink, source);
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
        for (name, sink) in sinks {
            let mut connection = connections.remove(name);
            let (status, told) = watch::channel(Status::default());
            deliveries.statuses.insert(name.clone(), told);
            let (loaded, source) = (loaded.clone(), source.to_owned());
            let stop = deliveries.stop.clone();
            let log =
                SinkLog::new(name, sink, history.clone(), routes.clone(), secrets.clone(), stop.clone())?;
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
                        None => loaded.connect(&name, &sink, &source),
                    };
                    let delivery = log.begin(sink.policy());
                    let ended = match (made, delivery) {
                        (Ok(made), Ok(delivery)) => {
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

    /// Ends all of them. Requests under way may be answered; what is not delivered is delivered after the next start.
    pub(super) async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

impl SinkLog {
    /// A delivery that begins where the sink has come to.
    fn begin(&self, policy: kubediff_delivery::Policy) -> Result<Delivery, kubediff_history::Error> {
        let place = self.history.noticing(self.place())?;
        let mut delivery = Delivery::new(policy, getrandom::u64().unwrap_or_default(), place.position);
        delivery.remember_dead(place.dead);
        for letter in place.letters.iter().rev() {
            delivery.remember_missing(letter.object, letter.number.0);
        }
        Ok(delivery)
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
            let refuses = status.wait_for(|status| status.refuses_all).await;
            let reason = refuses.ok().and_then(|status| status.trouble.clone()).unwrap_or_default();
            say(&format!("the sink {name} takes nothing: {reason}; it is tried again"));
            if status.wait_for(|status| !status.refuses_all).await.is_err() {
                return std::future::pending().await;
            }
            say(&format!("the sink {name} takes records again"));
        }
    }
}
