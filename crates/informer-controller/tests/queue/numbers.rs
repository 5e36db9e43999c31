//! The metrics.

use informer_controller::metrics::{Format, Metrics};
use informer_controller::queue::{Add, LOW_PRIORITY, WorkQueue};

use super::{ms, take};

#[tokio::test(start_paused = true)]
async fn q4_the_numbers_have_the_names_of_client_go() {
    let queue = WorkQueue::builder().name("pods").build();
    queue.add("a");
    queue.add_with("b", Add { priority: LOW_PRIORITY, ..Add::default() });
    queue.add_rate_limited("c");
    tokio::time::advance(ms(20)).await;
    drop(take(&queue).await);
    let taken = take(&queue).await.unwrap();
    tokio::time::advance(ms(1_500)).await;
    let metrics = queue.metrics();
    assert_eq!((metrics.numbers.adds, metrics.numbers.retries, metrics.numbers.delayed), (3, 1, 0));
    drop(taken);
    let text = Metrics::of([metrics]).to_text(Format::OpenMetrics);
    let value = |series: &str| {
        let line =
            text.lines().find(|line| line.starts_with(series) && line[series.len()..].starts_with(' '));
        line.unwrap_or_else(|| panic!("no {series} in\n{text}")).rsplit_once(' ').unwrap().1.to_owned()
    };
    for (series, expected) in [
        (r#"workqueue_depth{name="pods",priority="-100"}"#, "1"),
        (r#"workqueue_depth{name="pods",priority="0"}"#, "0"),
        (r#"workqueue_adds_total{name="pods"}"#, "3"),
        (r#"workqueue_queue_duration_seconds_bucket{name="pods",le="0.01"}"#, "0"),
        (r#"workqueue_queue_duration_seconds_bucket{name="pods",le="0.1"}"#, "2"),
        (r#"workqueue_queue_duration_seconds_bucket{name="pods",le="+Inf"}"#, "2"),
        (r#"workqueue_queue_duration_seconds_sum{name="pods"}"#, "0.035"),
        (r#"workqueue_queue_duration_seconds_count{name="pods"}"#, "2"),
        (r#"workqueue_work_duration_seconds_bucket{name="pods",le="1e-08"}"#, "1"),
        (r#"workqueue_work_duration_seconds_count{name="pods"}"#, "1"),
        (r#"workqueue_unfinished_work_seconds{name="pods"}"#, "1.5"),
        (r#"workqueue_longest_running_processor_seconds{name="pods"}"#, "1.5"),
        (r#"workqueue_retries_total{name="pods"}"#, "1"),
    ] {
        assert_eq!(value(series), expected, "{series}");
    }
    assert!(text.contains("# TYPE workqueue_adds counter\n"));
    assert!(text.contains("# TYPE workqueue_queue_duration_seconds histogram\n"));
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn q4_queues_of_one_name_are_told_apart() {
    let queues: Vec<_> = (0..3).map(|_| WorkQueue::<u8>::builder().name("pods").build()).collect();
    let metrics = Metrics::of(queues.iter().map(WorkQueue::metrics));
    let metrics = metrics.labelled("cluster", "east").and(Metrics::of([queues[0].metrics()]));
    let text = metrics.to_text(Format::Prometheus);
    let mut adds: Vec<_> = text.lines().filter(|line| line.starts_with("workqueue_adds_total{")).collect();
    adds.sort_unstable();
    assert_eq!(
        adds,
        [
            r#"workqueue_adds_total{cluster="east",name="pods",queue="1"} 0"#,
            r#"workqueue_adds_total{cluster="east",name="pods",queue="2"} 0"#,
            r#"workqueue_adds_total{cluster="east",name="pods"} 0"#,
            r#"workqueue_adds_total{name="pods"} 0"#,
        ]
    );
}

/// The page is written by hand. This test keeps it in agreement with the code.
#[test]
fn q4_the_documented_table_is_what_is_served() {
    let page = include_str!("../../../../docs/METRICS.md");
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `workqueue_")).collect();
    let queue = WorkQueue::<u8>::new();
    let text = Metrics::of([queue.metrics()]).to_text(Format::Prometheus);
    let families: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    assert_eq!(rows.len(), families.len());
    for (row, family) in rows.iter().zip(families) {
        let (name, kind) = family.split_once(' ').unwrap();
        assert!(row.starts_with(&format!("| `{name}` | {kind} |")), "{row}: {name}");
    }
}
