//! A log in memory.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use kubediff_delivery::{Entry, Event, Log, Page, Place, Record, Settled};
use tokio::sync::watch;

#[derive(Clone)]
pub(crate) struct Memory {
    records: Arc<Mutex<Vec<Record>>>,
    newest: Arc<watch::Sender<u64>>,
    /// The stored progress.
    pub(crate) settled: Arc<watch::Sender<Settled>>,
    /// From where to where the delivery went back last.
    pub(crate) went_back: Arc<watch::Sender<Option<(u64, u64)>>>,
}

impl Memory {
    /// Records of these objects.
    pub(crate) fn of(objects: impl IntoIterator<Item = u64>) -> Self {
        let log = Self {
            records: Arc::default(),
            newest: Arc::default(),
            settled: Arc::new(watch::Sender::new(Settled::default())),
            went_back: Arc::default(),
        };
        log.append(objects);
        log
    }

    pub(crate) fn append(&self, objects: impl IntoIterator<Item = u64>) {
        let mut records = self.records.lock().expect("no panic");
        for object in objects {
            let number = records.len() as u64 + 1;
            let body = format!(r#"{{"name":"object-{object}","n":{number}}}"#);
            records.push(Record {
                entry: Entry { number, object, namespace: 0, bytes: body.len() },
                id: format!("log-1-{number}").into(),
                time: Timestamp::UNIX_EPOCH,
                subject: format!("ConfigMap shop/object-{object}").into(),
                summary: format!("updated ConfigMap shop/object-{object}: n {} -> {number}", number - 1)
                    .into(),
                details: format!("- n: {}\n+ n: {number}", number - 1).into(),
                body: body.into(),
                story: None,
                event: Event {
                    kind: "io.kubediff.change.updated".into(),
                    about: format!("configmaps/shop/object-{object}").into(),
                    place: Some(Place {
                        group: "".into(),
                        resource: "configmaps".into(),
                        namespace: Some("shop".into()),
                    }),
                },
            });
        }
        self.newest.send_replace(records.len() as u64);
    }

    /// Appends a record with these texts.
    pub(crate) fn say(&self, object: u64, summary: &str, details: &str) {
        self.append([object]);
        self.change(|record| (record.summary, record.details) = (summary.into(), details.into()));
    }

    /// Gives a record another JSON.
    pub(crate) fn write(&self, number: usize, body: &serde_json::Value) {
        self.records.lock().expect("no panic")[number - 1].body = body.to_string().into();
    }

    /// Appends a milestone of a story.
    pub(crate) fn tell(&self, story: u64, summary: &str, details: &str) {
        self.say(story, summary, details);
        self.change(|record| record.story = Some(story));
    }

    /// Changes the last record.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Record)) {
        change(self.records.lock().expect("no panic").last_mut().expect("a record"));
    }

    pub(crate) fn record(&self, number: u64) -> Record {
        self.records.lock().expect("no panic")[number as usize - 1].clone()
    }

    /// Waits until the position is stored.
    pub(crate) async fn reaches(&self, position: u64) -> Settled {
        let mut settled = self.settled.subscribe();
        let reached = settled.wait_for(|settled| settled.position >= position);
        let limit = std::time::Duration::from_secs(60);
        tokio::time::timeout(limit, reached).await.expect("the position is reached").expect("no end").clone()
    }
}

impl Log for Memory {
    type Error = Infallible;

    async fn read(&self, after: u64, records: usize, bytes: usize) -> Result<Page, Infallible> {
        let log = self.records.lock().expect("no panic");
        let mut page = Page { records: Vec::new(), through: after };
        let mut left = bytes;
        for record in log[after as usize..].iter().take(records) {
            if record.entry.bytes > left && !page.records.is_empty() {
                break;
            }
            left = left.saturating_sub(record.entry.bytes);
            page.through = record.entry.number;
            page.records.push(record.clone());
        }
        Ok(page)
    }

    async fn store(&self, settled: Settled) -> Result<(), Infallible> {
        self.settled.send_modify(|all| {
            all.position = settled.position;
            all.tail = settled.tail.or(all.tail.take());
            all.dead.extend(settled.dead);
            all.resent.extend(settled.resent);
        });
        Ok(())
    }

    fn went_back(&self, position: u64, from: u64) {
        self.went_back.send_replace(Some((from, position)));
    }

    async fn grown(&self, after: u64) -> u64 {
        let mut newest = self.newest.subscribe();
        let grown = newest.wait_for(|newest| *newest > after).await;
        grown.map_or(after, |newest| *newest)
    }
}
