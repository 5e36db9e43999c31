//! The gap of a restart ends for each resource when that is listed.

use std::process::Command;
use std::time::Duration;

use kubediff_history::{Filter, Origin, Page, Reader, Record, Scope};
use testapi::faults::{Fault, Matcher, Refusal};

use super::{Set, get, on_thread};

/// The eighth attack: ConfigMaps were listed four seconds after the Secrets, with which the gap of both ended.
#[tokio::test(flavor = "multi_thread")]
async fn k1_the_gap_of_a_restart_lasts_until_the_slowest_list() {
    let set = Set::new().await;
    set.configure("watch: {resources: [cm, secrets]}\nsinks: {out: stdout}\n");
    set.shop.create("a", "1").await;
    let (daemon, _) = set.serve().await;
    on_thread(move || daemon.end_with("-TERM")).await;
    set.shop.patch("a", "2").await;
    set.shop.server.faults().on(Matcher::of("configmaps")).once(Fault::Delay(Duration::from_secs(3)));
    let (daemon, _) = set.serve().await;
    on_thread(move || daemon.end_with("-TERM")).await;

    let mut reader = Reader::open(set.path("history.db")).unwrap();
    let records = reader.records(&Filter::default(), &Page::oldest(100)).unwrap().records;
    let listed = records.iter().find_map(|record| match record {
        Record::Change(change) if change.object.name == "a" => Some(change.observed_at),
        _ => None,
    });
    let mut gaps = reader.gaps(&Scope::default(), None, None, &Page::oldest(100)).unwrap();
    gaps.sort_by_key(|gap| gap.from);
    assert!(gaps.windows(2).all(|two| two[0].to == two[1].from), "without a hole: {gaps:#?}");
    assert_eq!(gaps.last().map(|gap| gap.to), listed, "{gaps:#?}");
}

/// The eighth attack: a receiver that does not answer made each reload blind for the ten seconds that its request may take.
#[tokio::test(flavor = "multi_thread")]
async fn k1_the_watches_go_on_while_requests_end_before_a_reload() {
    let set = Set::new().await;
    let hangs = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    std::fs::write(set.path("url"), format!("http://{}/", hangs.local_addr().unwrap())).unwrap();
    let config = "watch: {resources: [cm]}\nsinks: {hook: {webhook: {url: {file: url}}}}\n";
    set.configure(config);
    set.shop.create("a", "1").await;
    let (daemon, _) = set.serve().await;
    set.shop.patch("a", "2").await;
    let _request = hangs.accept().await.unwrap();
    set.configure(&format!("{config}cluster: other\n"));
    daemon.signal("-HUP");
    let daemon = on_thread(move || {
        let mut daemon = daemon;
        daemon.note("the configuration has changed");
        daemon
    })
    .await;
    set.shop.patch("a", "3").await;
    on_thread(move || {
        let mut daemon = daemon;
        daemon.note("watching");
        daemon.kill()
    })
    .await;
    let mut reader = Reader::open(set.path("history.db")).unwrap();
    let records = reader.records(&Filter::default(), &Page::newest(1)).unwrap().records;
    let [Record::Change(change)] = &records[..] else { panic!("{records:#?}") };
    assert_eq!((change.origin, &*change.summary), (Origin::Watch, r#"data.k "2" -> "3""#));
}

/// The eighth attack: nothing said that a resource was never listed, or was not watched any more, and no gap was there for the first.
#[tokio::test(flavor = "multi_thread")]
async fn k1_a_resource_that_is_not_watched_is_named_in_answers_and_at_readyz() {
    let set = Set::new().await;
    set.configure("watch: {resources: [cm, secrets]}\nsinks: {out: stdout}\n");
    set.shop.create("a", "1").await;
    let secret = serde_json::json!({"metadata": {"name": "s"}, "stringData": {"k": "v"}});
    set.shop.post("/api/v1/namespaces/default/secrets", secret).await;
    let faults = set.shop.server.faults();
    let fail = || faults.on(Matcher::of("configmaps")).always(Fault::Refuse(Refusal::InternalError));
    fail();
    let (daemon, address) = set.serve().await;
    let ready = get(&address, "/readyz").await.1;
    assert!(ready.starts_with("ok; not watched: configmaps ("), "{ready}");
    on_thread(move || daemon.end_with("-TERM")).await;
    assert!(ask(&set, &["get", "cm"]).contains("configmaps never watched"));
    faults.clear();
    let (daemon, address) = set.serve().await;
    fail();
    set.shop.server.disconnect_all();
    while !get(&address, "/readyz").await.1.starts_with("ok; not watched: configmaps (") {
        tokio::task::yield_now().await;
    }
    // The history has it a moment later.
    while !ask(&set, &["get", "cm"]).contains("configmaps not watched since 2") {}
    let (told, ..) = on_thread(move || daemon.end_with("-TERM")).await;
    let mut reader = Reader::open(set.path("history.db")).unwrap();
    let gaps = reader.gaps(&Scope::default(), None, None, &Page::oldest(100)).unwrap();
    assert!(gaps.iter().any(|gap| gap.reason == "it was not watched before"), "{gaps:#?}");
    // Nobody waited for messages about a resource that was never watched.
    assert!(!told.iter().any(|line| line.contains("it was not watched before")), "{told:#?}");
}

/// The answer of `kubediff ARGUMENTS -n default`, with what it says besides.
fn ask(set: &Set, arguments: &[&str]) -> String {
    let mut asked = Command::new(env!("CARGO_BIN_EXE_kubediff"));
    asked.args(arguments).args(["-n", "default"]).env("KUBEDIFF_HISTORY", set.path("history.db"));
    let asked = asked.output().unwrap();
    String::from_utf8([asked.stdout, asked.stderr].concat()).unwrap()
}

/// The eighth attack: while another namespace was watched alone, nothing said so, and an object of that time was in no record.
#[tokio::test(flavor = "multi_thread")]
async fn k1_namespaces_that_the_configuration_leaves_out_are_a_gap() {
    let set = Set::new().await;
    let run = async |watch: &str| {
        set.configure(&format!("watch: {{resources: [cm]{watch}}}\nsinks: {{out: stdout}}\n"));
        let (daemon, _) = set.serve().await;
        on_thread(move || daemon.end_with("-TERM")).await;
    };
    let ask = |arguments: &[&str]| ask(&set, arguments);
    set.shop.create("a", "1").await;
    set.shop.create("b", "1").await;
    run("").await;
    run(", namespaces: [other]").await;
    for question in [&["get", "cm"][..], &["log", "cm"]] {
        let said = ask(question);
        assert!(said.contains("only objects of namespace other watched since 2"), "{said}");
    }
    assert!(ask(&["get", "secrets"]).contains("secrets never watched"));
    set.shop.patch("a", "2").await;
    set.shop.delete("b").await;
    set.shop.create("c", "1").await;
    run(", namespaces: [other]").await;
    run("").await;

    let mut reader = Reader::open(set.path("history.db")).unwrap();
    let gaps = reader.gaps(&Scope::default(), None, None, &Page::oldest(100)).unwrap();
    let left_out = gaps.iter().filter(|gap| gap.reason == "only objects of namespace other watched");
    assert_eq!(left_out.count(), 1, "{gaps:#?}");
    let log = ask(&["log", "cm", "--oneline"]);
    for told in ["~ configmaps default/a", "- configmaps default/b", "+ configmaps default/c"] {
        assert!(log.contains(told), "{told}: {log}");
    }
    assert!(!ask(&["get", "cm"]).contains("only"));
}
