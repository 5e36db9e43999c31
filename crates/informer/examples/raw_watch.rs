//! Why not just watch? A raw watch and an informer, side by side, lose their connection. Meanwhile one object is created
//! and another one deleted. The raw watch has missed both. The informer reports both: it resumes from its last version, or,
//! if that has expired, lists and reports the missed deletion.
//!
//! The example creates and deletes two config maps in the given namespace. Both clients connect through a forwarder in this
//! program, whose connections can be cut.
//!
//! `cargo run -p informer --example raw_watch -- default`

#![expect(clippy::print_stdout, reason = "an example says what it sees")]

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use informer::{Change, Changes, SharedInformerFactory};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{DeleteParams, PostParams, WatchEvent, WatchParams};
use kube_client::{Api, Client, Config};
use kube_core::ResourceExt;
use tokio::io::{AsyncBufReadExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let namespace = std::env::args().nth(1).ok_or("in which namespace?")?;
    let config = Config::infer().await?;
    let direct: Api<ConfigMap> = Api::namespaced(Client::try_from(config.clone())?, &namespace);
    direct.create(&PostParams::default(), &config_map("present")).await?;

    let (connected, gate) = watch::channel(true);
    let cut_off = through_a_forwarder(config, gate).await?;

    // The raw watch: the program knows only what its events contain.
    let client = Client::try_from(cut_off.clone())?;
    let events = Api::<ConfigMap>::namespaced(client, &namespace).watch(&WatchParams::default(), "0").await?;
    let mut events = Box::pin(events.map_ok(told_by_event));

    // The informer, and the changes that it reports.
    let factory = SharedInformerFactory::builder(cut_off).build()?.in_namespace(&namespace);
    let maps = factory.informer::<ConfigMap>();
    factory.start();
    maps.wait_for_sync(Duration::from_secs(30)).await?;
    let mut changes = maps.changes()?;

    let mut raw = BTreeSet::new();
    while !raw.contains("present") {
        raw.extend(events.next().await.ok_or("the watch ended")??.0);
    }

    connected.send_replace(false);
    direct.delete("present", &DeleteParams::default()).await?;
    direct.create(&PostParams::default(), &config_map("new")).await?;
    println!("Cut off. `present` was deleted, `new` was made. Press Enter to reconnect.");
    BufReader::new(tokio::io::stdin()).read_line(&mut String::new()).await?;
    connected.send_replace(true);

    // The raw watch has ended, and brings nothing more.
    while let Some(Ok((added, gone))) = events.next().await {
        raw.extend(added);
        raw.retain(|name| Some(name) != gone.as_ref());
    }
    let how = learns_of_both(&mut changes).await.ok_or("the informer ended")?;
    println!("The raw watch knows {}.", yes_or_no(|name| raw.contains(name)));
    println!(
        "The informer knows {}.",
        yes_or_no(|name| matches!(maps.lister().namespace(&namespace).get(name), Ok(Some(_))))
    );
    println!("It reported: `present` is {how}.");

    direct.delete("new", &DeleteParams::default()).await?;
    factory.shutdown().await;
    Ok(())
}

/// The names that a watch event adds and removes.
fn told_by_event(event: WatchEvent<ConfigMap>) -> (Option<String>, Option<String>) {
    match event {
        WatchEvent::Added(map) | WatchEvent::Modified(map) => (Some(map.name_any()), None),
        WatchEvent::Deleted(map) => (None, Some(map.name_any())),
        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => (None, None),
    }
}

/// Reads changes until both have arrived. Returns the reason of the deletion.
async fn learns_of_both(changes: &mut Changes<ConfigMap>) -> Option<&'static str> {
    let (mut deleted, mut added) = (None, false);
    loop {
        match changes.recv().await? {
            Change::Deleted(gone) if gone.key().name() == "present" => {
                deleted = Some(if gone.is_missed() { "deleted, but unseen" } else { "deleted" });
            }
            Change::Added { new, .. } if new.key().name() == "new" => added = true,
            _ => {}
        }
        if added && deleted.is_some() {
            return deleted;
        }
    }
}

fn yes_or_no(knows: impl Fn(&str) -> bool) -> String {
    let there = |name| format!("`{name}` as {}", if knows(name) { "there" } else { "not there" });
    format!("{} and {}", there("present"), there("new"))
}

fn config_map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}

/// The same server, through connections that live as long as `gate` is true. TLS passes through unchanged.
async fn through_a_forwarder(
    mut config: Config,
    gate: watch::Receiver<bool>,
) -> Result<Config, Box<dyn Error>> {
    let host = config.cluster_url.host().ok_or("the server's URL has no host")?.to_owned();
    let server = (host.clone(), config.cluster_url.port_u16().unwrap_or(443));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    config.cluster_url = format!("https://{}", listener.local_addr()?).parse()?;
    config.tls_server_name.get_or_insert(host);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(forward(client, server.clone(), gate.clone()));
        }
    });
    Ok(config)
}

async fn forward(mut client: TcpStream, server: (String, u16), mut gate: watch::Receiver<bool>) {
    let forwarding = async {
        let mut server = TcpStream::connect(server).await?;
        copy_bidirectional(&mut client, &mut server).await
    };
    // The connection is closed, for every reason that ends the copy.
    tokio::select! {
        _ = gate.wait_for(|connected| !connected) => {}
        _ = forwarding => {}
    }
}
