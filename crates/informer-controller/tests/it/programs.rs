//! Programs: several controllers behind one election, health, metrics, and the end.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use informer::SharedInformerFactory;
use informer_controller::election::Election;
use informer_controller::{Context, Controller, Outcome, Program, RunError, Runnable};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};
use testapi::faults::{Bytes, Fault, Refusal};
use testapi::{Gvr, Patch, Verb};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;

use crate::support::{LONG, Stop, World, map};

fn secret(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": "shop", "name": name } })
}

fn leases() -> Gvr {
    Gvr::new("coordination.k8s.io/v1", "leases")
}

fn election(world: &World, name: &str) -> Election {
    Election::builder(world.server.config(), "shop", "both")
        .identity(name)
        .lease_duration(Duration::from_secs(3))
        .renew_deadline(Duration::from_secs(2))
        .retry_period(Duration::from_millis(100))
        .build()
        .unwrap()
}

/// One controller of config maps and one of secrets, which tell the keys that they reconcile.
fn both(world: &World, told: &UnboundedSender<String>) -> [Runnable; 2] {
    let factory = SharedInformerFactory::new(world.server.config()).unwrap();
    let tell = |kind: &'static str| {
        let told = told.clone();
        move |key: String| drop(told.send(format!("{kind} {key}")))
    };
    let (map, secret) = (tell("map"), tell("secret"));
    [
        Controller::new("maps", &factory.informer::<ConfigMap>()).with(move |context: Context<ConfigMap>| {
            map(context.key().to_string());
            async { Ok(Outcome::Done) }
        }),
        Controller::new("secrets", &factory.informer::<Secret>()).with(move |context: Context<Secret>| {
            secret(context.key().to_string());
            async { Ok(Outcome::Done) }
        }),
    ]
}

async fn both_reconcile(told: &mut UnboundedReceiver<String>) {
    let mut seen = BTreeSet::new();
    let all = async {
        while seen.len() < 2 {
            seen.insert(told.recv().await.expect("the program runs"));
        }
    };
    tokio::time::timeout(LONG, all).await.expect("both controllers reconcile");
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["map shop/a", "secret shop/b"]);
}

/// A program with both controllers, its port, and what ends it.
struct Running {
    stop: Stop,
    running: JoinHandle<Result<(), RunError>>,
    address: SocketAddr,
    told: UnboundedReceiver<String>,
}

fn start(world: &World, name: &str) -> Running {
    let (stop, stopped) = Stop::pair();
    let (tell, told) = mpsc::unbounded_channel();
    let election = election(world, name);
    let program = Program::new(world.server.config())
        .election(&election)
        .listen(([127, 0, 0, 1], 0))
        .unwrap()
        .until(stopped);
    let address = program.address().unwrap();
    let running = tokio::spawn(program.run(both(world, &tell)));
    Running { stop, running, address, told }
}

async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

async fn becomes_ready(address: SocketAddr, with: &str) {
    let ready = async {
        while get(address, "/readyz").await != (200, format!("{with}\n")) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, ready).await.expect("the program becomes ready");
}

/// Issue 20: the second controller of an election never reconciled.
#[tokio::test]
async fn q8_controllers_of_one_program_lead_together_and_the_next_process_follows_at_once() {
    let world = World::new([map("shop", "a"), secret("b")]).await;
    let mut one = start(&world, "one");
    both_reconcile(&mut one.told).await;
    becomes_ready(one.address, "ok: leader").await;
    let mut two = start(&world, "two");
    becomes_ready(two.address, "ok: standby, one leads").await;
    assert!(two.told.try_recv().is_err(), "a standby reconciles nothing");
    one.stop.and_wait(one.running).await.unwrap();
    both_reconcile(&mut two.told).await;
    two.stop.and_wait(two.running).await.unwrap();
    let lease = world.server.api().get(&leases(), "shop", "both").unwrap();
    assert!(lease["spec"]["holderIdentity"].as_str().is_none_or(str::is_empty), "{lease}");
}

#[tokio::test]
async fn q8_controllers_of_one_program_lose_their_term_together_and_have_the_next_one() {
    let world = World::new([map("shop", "a"), secret("b")]).await;
    let mut one = start(&world, "one");
    both_reconcile(&mut one.told).await;
    let taken = json!({ "spec": { "holderIdentity": "somebody", "leaseDurationSeconds": 1 } });
    world.server.api().patch(&leases(), "shop", "both", &Patch::Merge(taken)).unwrap();
    both_reconcile(&mut one.told).await;
    one.stop.and_wait(one.running).await.unwrap();
}

/// The server has carried out the creation, and the candidate does not know yet.
#[tokio::test]
async fn q8_a_program_that_ends_while_it_takes_the_lease_has_released_it() {
    let world = World::new([map("shop", "a"), secret("b")]).await;
    let stalled = world.server.faults().on(Verb::Create.of("leases")).once(Fault::StallAfter(Bytes(0)));
    let one = start(&world, "one");
    stalled.hit().await;
    let taken = |lease: &Value| lease["spec"]["holderIdentity"] == "one";
    world.server.api().wait_for(&leases(), "shop", "both", taken).await.unwrap();
    one.stop.and_wait(one.running).await.unwrap();
    assert!(!taken(&world.server.api().get(&leases(), "shop", "both").unwrap()));
}

/// Issue 20: it waited for ever, without a word.
#[tokio::test]
async fn q8_a_second_controller_of_a_busy_election_is_an_error() {
    let world = World::new([map("shop", "a")]).await;
    let election = election(&world, "one");
    let run = |election: &Election| {
        let (controller, election) =
            (Controller::new("test", &world.factory.informer::<ConfigMap>()), election.clone());
        let (begun, has_begun) = mpsc::unbounded_channel();
        let config = world.server.config();
        let running = tokio::spawn(async move {
            let reconciler = move |_: Context<ConfigMap>| {
                let _ = begun.send(());
                async { Ok(Outcome::Done) }
            };
            controller.run_elected(&election, config, reconciler).await
        });
        (running, has_begun)
    };
    let (first, mut has_begun) = run(&election);
    has_begun.recv().await.unwrap();
    let (second, _) = run(&election);
    let error = tokio::time::timeout(LONG, second).await.expect("it does not wait").unwrap().unwrap_err();
    assert!(error.as_election().is_some_and(|error| error.is_busy()), "{error}");
    assert!(error.to_string().contains("give them all to one `Program`"), "{error}");
    // Once the first has ended, the election is free.
    first.abort();
    let _ = first.await;
    let (third, mut has_begun) = run(&election);
    assert!(tokio::time::timeout(LONG, has_begun.recv()).await.unwrap().is_some());
    third.abort();
}

#[tokio::test]
async fn m1_a_program_shows_its_health_and_one_text_of_metrics() {
    let world = World::new([map("shop", "a"), secret("b")]).await;
    let refused =
        world.server.faults().on(Verb::List.of("secrets")).always(Fault::Refuse(Refusal::InternalError));
    let mut one = start(&world, "one");
    refused.hit().await;
    let (code, reason) = get(one.address, "/readyz").await;
    assert_eq!((code, reason.contains("secrets is not synced: ")), (503, true), "{reason}");
    assert_eq!(get(one.address, "/livez").await, (200, "ok\n".to_owned()));
    assert_eq!(get(one.address, "/else").await.0, 404);
    drop(refused);
    world.server.faults().clear();
    both_reconcile(&mut one.told).await;
    let (code, text) = get(one.address, "/metrics").await;
    assert_eq!(code, 200);
    let types: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    assert_eq!(types.iter().collect::<BTreeSet<_>>().len(), types.len(), "a family is there twice");
    for line in [
        r#"informer_objects{group="",version="v1",resource="configmaps""#,
        r#"informer_objects{group="",version="v1",resource="secrets""#,
        r#"workqueue_adds_total{name="maps"}"#,
        r#"controller_reconciles_total{name="secrets",result="done"}"#,
        r#"leader_election_master_status{name="both"} 1"#,
        "informer_hot_set_bytes",
    ] {
        assert!(text.lines().any(|has| has.starts_with(line)), "{line} is missing in {text}");
    }
    assert_eq!(text.matches("# EOF").count(), 1);
    one.stop.and_wait(one.running).await.unwrap();
}

#[tokio::test]
async fn a_controller_that_fails_ends_its_program() {
    let world = World::new([map("shop", "a"), secret("b")]).await;
    world.server.faults().on(Verb::List.of("secrets")).always(Fault::Refuse(Refusal::Forbidden));
    let (tell, _told) = mpsc::unbounded_channel();
    let [maps, secrets] = both(&world, &tell);
    let program = Program::new(world.server.config()).until(std::future::pending()).run([maps, secrets]);
    let error = tokio::time::timeout(LONG, program).await.expect("it ends").unwrap_err();
    assert!(error.as_not_synced().is_some(), "{error}");
}

#[tokio::test]
async fn an_address_that_is_taken_is_an_error_that_names_it() {
    let world = World::new([]).await;
    let first = Program::new(world.server.config()).listen(([127, 0, 0, 1], 0)).unwrap();
    let address = first.address().unwrap();
    let error = Program::new(world.server.config()).listen(address).unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}
