//! Metrics as text, for Prometheus and compatible systems.

pub mod labels;

use std::borrow::Cow;
use std::fmt::{self, Display, Write};
use std::time::Duration;

use crate::Histogram;

/// A text format for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Format {
    /// OpenMetrics 1.0. The text is complete: nothing may be appended to it.
    #[default]
    OpenMetrics,
    /// Prometheus' text format 0.0.4, to which a program can append its own metrics.
    Prometheus,
}

impl Format {
    /// The `Content-Type` of the format.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Metrics of the same name, one row of the table in `docs/METRICS.md`: one or several of each subject, such as an informer.
pub struct Family<T> {
    /// As in queries, `_total` included.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// One sentence for people.
    pub help: &'static str,
    /// The values of a subject.
    pub samples: fn(&T) -> Vec<Sample<'_>>,
}

/// The kind of a family's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// They rise and fall.
    Gauge,
    /// They only rise.
    Counter,
    /// They are counts of durations.
    Histogram,
}

/// A value, and the label that only this family has.
#[derive(Debug, Clone)]
pub struct Sample<'a> {
    /// The name and the value of the label.
    pub label: Option<(&'static str, Cow<'a, str>)>,
    /// The value.
    pub value: Value<'a>,
}

/// A value.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    /// A number of things.
    Count(u64),
    /// A time, in seconds.
    Seconds(Duration),
    /// Counts of times.
    Histogram(&'a Histogram),
}

/// A subject of metrics: an informer, a hot set, a work queue.
pub trait Labelled {
    /// The names and values of its labels, which no other subject of the same families has.
    fn labels(&self) -> &[(String, String)];
}

/// Appends families of all subjects.
pub fn write<T: Labelled>(text: &mut String, format: Format, families: &[Family<T>], subjects: &[T]) {
    families.iter().for_each(|family| family.write(text, format, subjects));
}

/// Appends the end mark, if the format has one.
pub fn finish(text: &mut String, format: Format) {
    if format == Format::OpenMetrics {
        text.push_str("# EOF\n");
    }
}

/// One sample that is a count, without a label.
pub fn one<'a>(count: u64) -> Vec<Sample<'a>> {
    Vec::from([Sample { label: None, value: Value::Count(count) }])
}

/// A sample that is a time, without a label.
pub fn seconds<'a>(time: Duration) -> Sample<'a> {
    Sample { label: None, value: Value::Seconds(time) }
}

/// A sample that is a count, with a label.
pub fn labelled<'a>(name: &'static str, value: impl Into<Cow<'a, str>>, count: u64) -> Sample<'a> {
    Sample { label: Some((name, value.into())), value: Value::Count(count) }
}

/// The bounds of a histogram in seconds, in the form that OpenMetrics recommends.
const BOUNDS: [&str; Histogram::BOUNDS.len()] =
    ["1e-08", "1e-07", "1e-06", "1e-05", "0.0001", "0.001", "0.01", "0.1", "1.0", "10.0"];

impl<T: Labelled> Family<T> {
    fn write(&self, text: &mut String, format: Format, subjects: &[T]) {
        let (kind, suffix) = match self.kind {
            Kind::Gauge => ("gauge", ""),
            Kind::Counter => ("counter", "_total"),
            Kind::Histogram => ("histogram", ""),
        };
        let family = match format {
            Format::OpenMetrics => self.name.strip_suffix(suffix).unwrap_or(self.name),
            Format::Prometheus => self.name,
        };
        // Writing to a String does not fail.
        let _ = writeln!(text, "# TYPE {family} {kind}\n# HELP {family} {}", self.help);
        for subject in subjects {
            for sample in (self.samples)(subject) {
                self.write_sample(text, subject.labels(), &sample);
            }
        }
    }

    fn write_sample(&self, text: &mut String, labels: &[(String, String)], sample: &Sample<'_>) {
        let own = sample.label.as_ref().map(|(name, value)| (*name, value.as_ref()));
        let labels = labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain(own);
        let line = |text: &mut String, suffix: &str, bound: Option<&'static str>, value: &dyn Display| {
            let bound = bound.map(|bound| ("le", bound));
            let _ = write!(text, "{}{suffix}", self.name);
            let mut separator = '{';
            for (name, value) in labels.clone().chain(bound) {
                let _ = write!(text, "{separator}{name}=\"{}\"", Escaped(value));
                separator = ',';
            }
            let end = if separator == ',' { "}" } else { "" };
            let _ = writeln!(text, "{end} {value}");
        };
        match &sample.value {
            Value::Count(count) => line(text, "", None, count),
            Value::Seconds(time) => line(text, "", None, &time.as_secs_f64()),
            Value::Histogram(histogram) => {
                let mut count = 0;
                for (bound, bucket) in BOUNDS.into_iter().chain(["+Inf"]).zip(histogram.counts()) {
                    count += bucket;
                    line(text, "_bucket", Some(bound), &count);
                }
                line(text, "_sum", None, &histogram.sum().as_secs_f64());
                line(text, "_count", None, &count);
            }
        }
    }
}

/// A label's value, as both formats quote it.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '\\' => f.write_str(r"\\"),
            '"' => f.write_str("\\\""),
            '\n' => f.write_str(r"\n"),
            other => f.write_char(other),
        })
    }
}

impl<T> fmt::Debug for Family<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Family").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_quoted() {
        assert_eq!(Escaped("a\"b\\c\nd").to_string(), r#"a\"b\\c\nd"#);
    }

    struct Subject(Vec<(String, String)>, Histogram);

    impl Labelled for Subject {
        fn labels(&self) -> &[(String, String)] {
            &self.0
        }
    }

    #[test]
    fn a_histogram_has_sums_of_its_buckets() {
        let mut histogram = Histogram::default();
        for micros in [1, 2, 1_500_000, 20_000_000] {
            histogram.observe(Duration::from_micros(micros));
        }
        let subject = Subject(vec![("name".to_owned(), "pods".to_owned())], histogram);
        let families = [Family {
            name: "wait_seconds",
            kind: Kind::Histogram,
            help: "Waits.",
            samples: |subject: &Subject| {
                Vec::from([Sample { label: None, value: Value::Histogram(&subject.1) }])
            },
        }];
        let mut text = String::new();
        write(&mut text, Format::Prometheus, &families, &[subject]);
        expect_test::expect![[r#"
            # TYPE wait_seconds histogram
            # HELP wait_seconds Waits.
            wait_seconds_bucket{name="pods",le="1e-08"} 0
            wait_seconds_bucket{name="pods",le="1e-07"} 0
            wait_seconds_bucket{name="pods",le="1e-06"} 1
            wait_seconds_bucket{name="pods",le="1e-05"} 2
            wait_seconds_bucket{name="pods",le="0.0001"} 2
            wait_seconds_bucket{name="pods",le="0.001"} 2
            wait_seconds_bucket{name="pods",le="0.01"} 2
            wait_seconds_bucket{name="pods",le="0.1"} 2
            wait_seconds_bucket{name="pods",le="1.0"} 2
            wait_seconds_bucket{name="pods",le="10.0"} 3
            wait_seconds_bucket{name="pods",le="+Inf"} 4
            wait_seconds_sum{name="pods"} 21.500003
            wait_seconds_count{name="pods"} 4
        "#]]
        .assert_eq(&text);
        finish(&mut text, Format::OpenMetrics);
        assert!(text.ends_with("} 4\n# EOF\n"));
    }

    #[test]
    fn a_sample_without_labels_has_no_braces() {
        let families =
            [Family { name: "ready", kind: Kind::Gauge, help: "It is.", samples: |_: &Subject| one(1) }];
        let mut text = String::new();
        write(&mut text, Format::OpenMetrics, &families, &[Subject(Vec::new(), Histogram::default())]);
        assert_eq!(text, "# TYPE ready gauge\n# HELP ready It is.\nready 1\n");
    }

    #[test]
    fn the_bounds_in_the_text_are_those_of_the_buckets() {
        for (text, bound) in BOUNDS.iter().zip(Histogram::BOUNDS) {
            assert_eq!(text.parse::<f64>().unwrap(), bound.as_secs_f64());
        }
    }
}
