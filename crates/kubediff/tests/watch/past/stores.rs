//! Caches of other clients, filled from the past: each has what one of the same kind had then.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use conformance::{Foreign, Replica};
use http::Request;
use serde_json::{Value, json};

use super::Town;
use crate::viewers::send;

const NAMESPACE: &str = "past-stores";

/// A client, and how it is told to read.
type Client = (PathBuf, &'static [&'static str]);
type Contents = BTreeMap<String, Value>;

/// The ConfigMaps of the namespace in the store of a new client. Versions are others in the past.
async fn store_of((program, arguments): &Client, kubeconfig: &Path) -> Contents {
    let (program, kubeconfig) = (program.clone(), kubeconfig.to_str().unwrap().to_owned());
    let arguments = *arguments;
    let asked = tokio::task::spawn_blocking(move || {
        let arguments: Vec<&str> = std::iter::once(&*kubeconfig).chain(arguments.iter().copied()).collect();
        Replica::start(&program, &arguments).contents()
    });
    let mut contents = asked.await.unwrap();
    contents.retain(|key, _| key.starts_with(&format!("{NAMESPACE}/")));
    contents
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_of_client_go_and_of_kube_rs_are_those_of_then() {
    let name = "stores_of_client_go_and_of_kube_rs_are_those_of_then";
    let Some(server) = control_plane::shared_or_skip(name) else { return };
    let build = || Some((Foreign::ClientGo.build_or_skip(name)?, Foreign::KubeRs.build_or_skip(name)?));
    let Some((client_go, kube_rs)) = tokio::task::spawn_blocking(build).await.unwrap() else { return };
    let clients: [Client; 3] =
        [(client_go, &["v1", "configmaps"]), (kube_rs.clone(), &["list"]), (kube_rs, &["stream"])];
    let mut town = Town::open(server, NAMESPACE).await;
    town.record().await;
    let maps = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    for at in 0..20 {
        let name = format!("map-{at}");
        town.post(&maps, json!({"metadata": {"name": name}, "data": {"at": at.to_string()}})).await;
    }
    let change = async |color: &str| {
        for at in [3, 7, 11] {
            let patch = Request::patch(format!("{maps}/map-{at}"))
                .header("content-type", "application/merge-patch+json")
                .body(json!({"data": {"color": color}}).to_string().into_bytes());
            let _: Value = town.admin.request(patch.unwrap()).await.unwrap();
        }
    };
    let delete = async |at: u32| {
        send(&town.admin, "DELETE", &format!("{maps}/map-{at}"), json!({})).await;
    };
    change("red").await;
    delete(5).await;
    let list = [maps.clone()];
    let time = town.recorded(&list).await.to_string();
    let mut then = Vec::new();
    for client in &clients {
        then.push(store_of(client, server.kubeconfig()).await);
    }
    change("blue").await;
    delete(7).await;
    delete(13).await;
    town.post(&maps, json!({"metadata": {"name": "map-5"}, "data": {"at": "again"}})).await;
    town.recorded(&list).await;

    let (past, now) = (town.server_of(&time), town.server_of("now"));
    for (client, then) in clients.iter().zip(&then) {
        let [found, recorded, real] =
            [past.kubeconfig.as_path(), &now.kubeconfig, server.kubeconfig()].map(|it| store_of(client, it));
        assert_eq!(&found.await, then, "{client:?}");
        let real = real.await;
        assert_eq!(recorded.await, real, "{client:?}");
        let colors = [then, &real].map(|it| it[&format!("{NAMESPACE}/map-3")]["data"]["color"].clone());
        assert_eq!((then.len(), real.len(), colors), (19, 18, ["red".into(), "blue".into()]));
    }
    drop((past, now));
    town.close().await;
}
