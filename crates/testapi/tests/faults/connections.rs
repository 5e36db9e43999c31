//! Answers that do not come, come late, in pieces, or break off.

use std::time::{Duration, Instant};

use testapi::Verb;
use testapi::faults::{Bytes, Events, Fault, Matcher};

use crate::client::{Client, MAPS, create, get, nothing, start_with, watch_from, within};

#[tokio::test]
async fn a_watch_is_cut_after_so_many_events() {
    let api = start_with(5).await;
    let cut = api.faults().on(Verb::Watch.of("configmaps")).once(Fault::CutAfter(Events(3)));
    let mut watch = get(&api, &format!("{MAPS}?watch=true")).await;
    assert_eq!(watch.status, 200);
    assert_eq!(watch.events(3).await.len(), 3);
    assert!(watch.event().await.is_err(), "a cut is no end");
    within(cut.hit()).await;
    assert_eq!((cut.met(), cut.hits()), (1, 1));
    // Once: the next is whole.
    let mut watch = get(&api, &format!("{MAPS}?watch=true")).await;
    assert_eq!(watch.events(5).await.len(), 5);
}

#[tokio::test]
async fn an_answer_is_cut_after_exactly_so_many_bytes() {
    let api = start_with(5).await;
    let whole = get(&api, MAPS).await.bytes().await.unwrap();
    for bytes in [0, 1, 17, 100, whole.len() - 1] {
        api.faults().on(Verb::List.of("configmaps")).once(Fault::CutAfter(Bytes(bytes as u64)));
        let mut list = get(&api, MAPS).await;
        let mut read = Vec::new();
        let error = loop {
            match list.chunk().await {
                Ok(Some(chunk)) => read.extend_from_slice(&chunk),
                Ok(None) => panic!("an end after {bytes} bytes instead of a cut"),
                Err(error) => break error,
            }
        };
        assert_eq!(read, whole[..bytes], "{bytes} bytes: {error}");
    }
}

#[tokio::test]
async fn over_http2_a_cut_ends_one_request_only() {
    let api = start_with(5).await;
    api.faults().on(Verb::Watch.of("configmaps")).once(Fault::CutAfter(Events(2)));
    let mut client = Client::connect_http2(&api).await;
    let mut cut = client.get(&format!("{MAPS}?watch=true")).await.unwrap();
    let mut whole = client.get(&format!("{MAPS}?watch=true")).await.unwrap();
    assert_eq!(cut.events(2).await.len(), 2);
    assert!(cut.event().await.is_err());
    assert_eq!(whole.events(5).await.len(), 5);
    assert_eq!(api.connections(), 1);
}

#[tokio::test]
async fn a_watch_ends_properly_after_so_many_events() {
    let api = start_with(5).await;
    api.faults().on(Verb::Watch.of("configmaps")).once(Fault::EndAfter(Events(2)));
    let mut watch = get(&api, &format!("{MAPS}?watch=true")).await;
    assert_eq!(watch.events(2).await.len(), 2);
    assert_eq!(watch.event().await.unwrap(), None);
}

#[tokio::test]
async fn a_list_that_ends_early_is_json_cut_short() {
    let api = start_with(5).await;
    api.faults().on(Verb::List.of("configmaps")).once(Fault::EndAfter(Bytes(200)));
    let text = get(&api, MAPS).await.bytes().await.unwrap();
    assert_eq!(text.len(), 200);
    assert!(serde_json::from_slice::<serde_json::Value>(&text).unwrap_err().is_eof());
}

#[tokio::test]
async fn a_stalled_watch_is_silent_and_its_connection_stays() {
    let api = start_with(2).await;
    let stall = api.faults().on(Verb::Watch.of("configmaps")).once(Fault::StallAfter(Events(2)));
    let mut watch = get(&api, &format!("{MAPS}?watch=true")).await;
    assert_eq!(watch.events(2).await.len(), 2);
    within(stall.hit()).await;
    create(&api, "c");
    assert!(watch.is_silent().await);
    assert_eq!(api.connections(), 1);
    assert_eq!(api.faults().running(Matcher::any()).cut(), 1);
    assert!(watch.event().await.is_err());
}

#[tokio::test]
async fn a_request_that_hangs_has_no_answer_and_does_not_hold_others() {
    let api = start_with(1).await;
    let hang = api.faults().on(Verb::List.of("configmaps")).once(Fault::Hang);
    let mut client = Client::connect(&api).await;
    let hanging = tokio::spawn(async move { client.get(MAPS).await.map(|answer| answer.status) });
    within(hang.hit()).await;
    assert_eq!(get(&api, MAPS).await.status, 200);
    assert!(!hanging.is_finished());
    assert_eq!(api.requests().all()[0].status, None);
    within(api.stop()).await;
    assert!(within(hanging).await.unwrap().is_err());
}

#[tokio::test]
async fn a_request_is_left_without_an_answer_by_a_connection_that_closes() {
    let api = start_with(1).await;
    api.faults().on(Verb::List.of("configmaps")).once(Fault::Disconnect);
    assert!(Client::connect(&api).await.get(MAPS).await.is_err());
    assert_eq!(get(&api, MAPS).await.status, 200);
}

#[tokio::test]
async fn all_connections_close_at_one_request() {
    let api = start_with(1).await;
    let mut watch = get(&api, &watch_from(api.api().revision())).await;
    api.faults().on(Verb::List.of("configmaps")).once(Fault::DisconnectAll);
    assert!(Client::connect(&api).await.get(MAPS).await.is_err());
    assert!(watch.event().await.is_err());
    assert_eq!(get(&api, MAPS).await.status, 200);
}

#[tokio::test]
async fn a_delayed_answer_comes_later() {
    let api = start_with(1).await;
    let delay = Duration::from_millis(50);
    api.faults().on(Verb::List.of("configmaps")).once(Fault::Delay(delay));
    let asked = Instant::now();
    assert_eq!(get(&api, MAPS).await.status, 200);
    assert!(asked.elapsed() >= delay);
}

#[tokio::test]
async fn an_answer_comes_in_pieces_of_any_size() {
    let api = start_with(5).await;
    let whole = get(&api, MAPS).await.bytes().await.unwrap();
    for max in [1, 7, 100] {
        let chunks = api.faults().on(Verb::List.of("configmaps")).always(Fault::Chunks { seed: 3, max });
        let mut sizes = Vec::new();
        for _ in 0..2 {
            let mut list = get(&api, MAPS).await;
            let mut pieces = Vec::new();
            while let Some(chunk) = list.chunk().await.unwrap() {
                pieces.push(chunk);
            }
            assert_eq!(pieces.concat(), whole);
            assert!(pieces.iter().all(|piece| piece.len() <= max), "at most {max}");
            sizes.push(pieces.iter().map(bytes::Bytes::len).collect::<Vec<_>>());
        }
        // HTTP may not tell two pieces apart that came at once, but it never puts them together.
        assert_eq!(sizes[0], sizes[1], "the same seed cuts at the same places");
        chunks.disarm();
    }
}

#[tokio::test]
async fn a_slow_answer_takes_its_time() {
    let api = start_with(5).await;
    let bytes_per_second = 4_000;
    api.faults().on(Verb::List.of("configmaps")).once(Fault::Slow { bytes_per_second });
    let asked = Instant::now();
    let length = get(&api, MAPS).await.bytes().await.unwrap().len();
    let least = (length as f64 / f64::from(bytes_per_second)) * 0.8 - 0.1;
    assert!(asked.elapsed().as_secs_f64() > least, "{length} bytes in {:?}", asked.elapsed());
}

#[tokio::test]
async fn connections_are_refused_and_accepted_again_on_the_same_port() {
    let api = start_with(1).await;
    let mut watch = get(&api, &watch_from(api.api().revision())).await;
    api.refuse_connections();
    let refused = Client::try_connect(&api).await.err().unwrap();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    // Open connections go on.
    create(&api, "b");
    assert_eq!(watch.events(1).await, ["ADDED b"]);
    api.accept_connections().unwrap();
    assert_eq!(get(&api, MAPS).await.status, 200);
}

#[tokio::test]
async fn watches_that_run_are_ended_cut_stalled_and_told_things() {
    let api = start_with(0).await;
    let matcher = || Verb::Watch.of("configmaps");
    let revision = api.api().revision();
    let open = async || {
        api.requests().clear();
        let watch = get(&api, &watch_from(revision)).await;
        api.requests().answered(&matcher(), 1).await;
        watch
    };

    let mut watch = open().await;
    assert_eq!(api.faults().running(Verb::Watch.of("pods")).end(), 0);
    assert_eq!(api.faults().running(matcher()).end(), 1);
    assert_eq!(watch.event().await.unwrap(), None);

    let mut watch = open().await;
    assert_eq!(api.faults().running(matcher()).cut(), 1);
    assert!(watch.event().await.is_err());

    let mut watch = open().await;
    let event = serde_json::json!({ "type": "ADDED", "object": { "metadata": { "name": "ghost" } } });
    assert_eq!(api.faults().running(matcher()).event(&event), 1);
    assert_eq!(watch.events(1).await, ["ADDED ghost"]);
    assert_eq!(api.faults().running(matcher()).line("no json"), 1);
    assert_eq!(watch.line().await.unwrap().as_deref(), Some("no json"));
    assert_eq!(api.faults().running(matcher()).error(testapi::faults::StreamError::Expired), 1);
    assert_eq!(watch.events(1).await, ["ERROR Expired"]);
    assert_eq!(watch.event().await.unwrap(), None);

    let mut watch = open().await;
    assert_eq!(api.faults().running(matcher()).stall(), 1);
    create(&api, "z");
    assert!(nothing(watch.event()).await);
}
