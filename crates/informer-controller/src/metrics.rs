//! The metrics of controllers (contract Q4), under the names that client-go gives them.
//!
//! A snapshot is taken on demand. Names and units: `docs/METRICS.md`.

use informer_core::exposition::{
    self, Family, Kind, Labelled, Sample, Value, labelled, labels, one, seconds,
};

use crate::election::{self, ElectionMetrics};
use crate::endings::Ending;

pub use informer::metrics::{FactoryMetrics, Format};
pub use informer_core::Histogram;
pub use informer_core::queue::Metrics as QueueNumbers;

/// The metrics of one work queue at one moment. Counts begin with the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueMetrics {
    /// Names and values of the labels that identify the queue in a monitoring system: `name`, and those of
    /// [`Metrics::labelled`]. No label is an object's name.
    pub labels: Vec<(String, String)>,
    /// The numbers.
    pub numbers: QueueNumbers,
}

impl QueueMetrics {
    pub(crate) fn new(name: &str, numbers: QueueNumbers) -> Self {
        Self { labels: vec![("name".to_owned(), name.to_owned())], numbers }
    }
}

/// The metrics of one controller at one moment: those of its queue, and how many reconciliations have ended in which way.
///
/// ```
/// # fn example(handle: informer_controller::ControllerHandle) {
/// use informer_controller::metrics::Format;
///
/// let text = handle.metrics().to_text(Format::OpenMetrics);
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ControllerMetrics {
    /// The queue's.
    pub queue: QueueMetrics,
    /// The number of reconciliations by result: `done`, `again`, `failed`, `timed_out`, `gave_up`, `panicked`, `interrupted`; `put_off`
    /// counts those that did not begin because a cache lacked the controller's last write.
    pub reconciles: Vec<(&'static str, u64)>,
}

impl ControllerMetrics {
    pub(crate) fn new(queue: QueueMetrics, counts: [u64; Ending::ALL.len()]) -> Self {
        Self { queue, reconciles: Ending::ALL.map(Ending::name).into_iter().zip(counts).collect() }
    }

    /// The metrics as text.
    pub fn to_text(&self, format: Format) -> String {
        let mut text = String::new();
        write_controllers(&mut text, format, std::slice::from_ref(self));
        exposition::finish(&mut text, format);
        text
    }
}

impl Labelled for ControllerMetrics {
    fn labels(&self) -> &[(String, String)] {
        &self.queue.labels
    }
}

/// Metrics of everything that a program runs, as one text in which each family is once.
///
/// ```no_run
/// # use informer_controller::{ControllerHandle, election::Election};
/// # fn example(factory: informer::SharedInformerFactory, handle: ControllerHandle, election: Election) {
/// use informer_controller::metrics::{Format, ProgramMetrics};
///
/// let all = ProgramMetrics::of(factory.metrics(), [handle.metrics()], [election.metrics()]);
/// println!("{}", all.to_text(Format::OpenMetrics));
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ProgramMetrics {
    /// The metrics of its informers.
    pub informers: FactoryMetrics,
    /// The metrics of its controllers.
    pub controllers: Vec<ControllerMetrics>,
    /// The metrics of its elections.
    pub elections: Vec<ElectionMetrics>,
}

impl ProgramMetrics {
    /// Joins metrics. Controllers of one name get a number in the label `queue`, because no two series may have the same labels.
    pub fn of(
        informers: FactoryMetrics,
        controllers: impl IntoIterator<Item = ControllerMetrics>,
        elections: impl IntoIterator<Item = ElectionMetrics>,
    ) -> Self {
        let mut controllers: Vec<_> = controllers.into_iter().collect();
        labels::tell_apart(controllers.iter_mut().map(|one| &mut one.queue.labels), "queue");
        Self { informers, controllers, elections: elections.into_iter().collect() }
    }

    /// The metrics as text.
    pub fn to_text(&self, format: Format) -> String {
        let mut text = String::new();
        self.informers.write(&mut text, format);
        write_controllers(&mut text, format, &self.controllers);
        if !self.elections.is_empty() {
            election::metrics::write(&mut text, format, &self.elections);
        }
        exposition::finish(&mut text, format);
        text
    }
}

fn write_controllers(text: &mut String, format: Format, controllers: &[ControllerMetrics]) {
    let queues: Vec<_> = controllers.iter().map(|one| one.queue.clone()).collect();
    exposition::write(text, format, FAMILIES, &queues);
    exposition::write(text, format, RECONCILES, controllers);
}

const RECONCILES: &[Family<ControllerMetrics>] = &[Family {
    name: "controller_reconciles_total",
    kind: Kind::Counter,
    help: "Reconciliations that have ended, by result.",
    samples: |metrics| {
        let results = metrics.reconciles.iter();
        results.map(|(result, count)| labelled("result", (*result).to_owned(), *count)).collect()
    },
}];

/// The metrics of several work queues.
///
/// ```
/// use informer_controller::metrics::{Format, Metrics};
/// use informer_controller::queue::WorkQueue;
///
/// let pods = WorkQueue::<String>::builder().name("pods").build();
/// pods.add("shop/cart".to_owned());
/// let metrics = Metrics::of([pods.metrics()]);
/// // A program that also has informers appends this to their text.
/// let text = metrics.to_text(Format::Prometheus);
/// assert!(text.contains(r#"workqueue_depth{name="pods",priority="0"} 1"#));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// The queues.
    pub queues: Vec<QueueMetrics>,
}

impl Metrics {
    /// The metrics of these queues. Queues with the same labels get a number in the label `queue`, because no two may have
    /// the same.
    pub fn of(queues: impl IntoIterator<Item = QueueMetrics>) -> Self {
        Self { queues: queues.into_iter().collect() }.told_apart()
    }

    /// Puts one more label in front of all others. An invalid or taken name is changed until it is valid and free, as
    /// [`FactoryMetrics::labelled`](informer::metrics::FactoryMetrics::labelled) does.
    #[must_use]
    pub fn labelled(mut self, name: &str, value: &str) -> Self {
        self.queues.iter_mut().for_each(|queue| labels::add(&mut queue.labels, name, value));
        self.told_apart()
    }

    /// Joins these metrics and others.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.queues.extend(others.queues);
        self.told_apart()
    }

    /// The metrics as text.
    pub fn to_text(&self, format: Format) -> String {
        let mut text = String::new();
        exposition::write(&mut text, format, FAMILIES, &self.queues);
        exposition::finish(&mut text, format);
        text
    }

    fn told_apart(mut self) -> Self {
        labels::tell_apart(self.queues.iter_mut().map(|queue| &mut queue.labels), "queue");
        self
    }
}

impl Labelled for QueueMetrics {
    fn labels(&self) -> &[(String, String)] {
        &self.labels
    }
}

/// Rows of the table in `docs/METRICS.md`. The help is ours.
const FAMILIES: &[Family<QueueMetrics>] = &[
    Family {
        name: "workqueue_depth",
        kind: Kind::Gauge,
        help: "Items that wait to be taken, by priority.",
        samples: |queue| {
            // The usual priority is there without items too, so that an idle queue differs from a missing one.
            let mut depth = queue.numbers.depth.clone();
            depth.entry(0).or_default();
            let sample =
                |(priority, items): (i32, usize)| labelled("priority", priority.to_string(), items as u64);
            depth.into_iter().map(sample).collect()
        },
    },
    Family {
        name: "workqueue_adds_total",
        kind: Kind::Counter,
        help: "Items that were added and did not wait already.",
        samples: |queue| one(queue.numbers.adds),
    },
    Family {
        name: "workqueue_queue_duration_seconds",
        kind: Kind::Histogram,
        help: "The time from an add until the item was taken.",
        samples: |queue| histogram(&queue.numbers.queue_duration),
    },
    Family {
        name: "workqueue_work_duration_seconds",
        kind: Kind::Histogram,
        help: "The time from then until the item was done.",
        samples: |queue| histogram(&queue.numbers.work_duration),
    },
    Family {
        name: "workqueue_unfinished_work_seconds",
        kind: Kind::Gauge,
        help: "The sum of the times for which items have been in process.",
        samples: |queue| Vec::from([seconds(queue.numbers.unfinished_work)]),
    },
    Family {
        name: "workqueue_longest_running_processor_seconds",
        kind: Kind::Gauge,
        help: "The longest of these times.",
        samples: |queue| Vec::from([seconds(queue.numbers.longest_running)]),
    },
    Family {
        name: "workqueue_retries_total",
        kind: Kind::Counter,
        help: "Items that were added with a delay.",
        samples: |queue| one(queue.numbers.retries),
    },
];

fn histogram(histogram: &Histogram) -> Vec<Sample<'_>> {
    Vec::from([Sample { label: None, value: Value::Histogram(histogram) }])
}
