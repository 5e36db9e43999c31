//! Issue 12, first item 5: an outage is told as a gap, with from and to.

use serde_json::Value;

use crate::session::Session;
use crate::shop::Shop;

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_a_gap_in_text_and_json() {
    for format in ["diff", "json"] {
        let shop = Shop::open().await;
        shop.create("a", "1").await;
        let kubeconfig = shop.kubeconfig().to_owned();
        let session = tokio::task::spawn_blocking(move || {
            let mut session = Session::with(&kubeconfig, &["-o", format, "cm,secrets,services,pods,nodes"]);
            session.note("watching 5 resources");
            session
        });
        let mut session = session.await.unwrap();
        shop.server.refuse_connections();
        shop.server.disconnect_all();
        let session = tokio::task::spawn_blocking(move || {
            let note = session.note("not watched: ");
            assert!(note.contains("not watched: http") && note.ends_with("; trying again"), "{note}");
            session
        });
        let mut session = session.await.unwrap();
        shop.patch("a", "2").await;
        shop.server.accept_connections().unwrap();
        let lines = tokio::task::spawn_blocking(move || {
            let line = match format {
                "json" => session.line(&["\"change\":\"gap\""]),
                _ => session.line(&["  ! not watched from "]),
            };
            session.note("everything is watched again");
            (line, session.interrupt().0)
        });
        let (line, lines) = lines.await.unwrap();
        assert_eq!(
            lines.iter().filter(|line| line.contains("not watched from") || line.contains("\"gap\"")).count(),
            1
        );
        if format == "json" {
            let gap: Value = serde_json::from_str(&line).unwrap();
            let time = |name: &str| gap[name].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
            assert!(time("from") < time("to"), "{gap}");
            assert_eq!(gap["resources"].as_array().unwrap().len(), 5, "{gap}");
            let cause = gap["cause"].as_str().unwrap();
            assert!(
                cause.ends_with(": connection refused") || cause.ends_with(": the connection broke"),
                "{gap}"
            );
        } else {
            assert!(line.ends_with("s): 5 resources"), "{line}");
            assert!(
                lines.iter().any(|line| line.starts_with("Not watched for a time: 1 gap, ")),
                "{lines:#?}"
            );
        }
    }
}
