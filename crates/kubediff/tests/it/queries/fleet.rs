//! Questions about several clusters, whose histories are in one PostgreSQL.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use expect_test::expect;
use kubediff::{Schemas, Secrets};
use kubediff_history::{Batch, Location, migrate_database};
use postgres_server::{Durability, Server};
use serde_json::{Value, json};

use super::run::{outputs, run};
use super::world::World;
use crate::at::past::{Past, program};

/// The server, and a database with tables and no history.
static SERVER: LazyLock<(Server, String)> = LazyLock::new(|| {
    let server = Server::start(Durability::None).unwrap();
    let empty = server.create_database().unwrap();
    let Location::Database(address) = Location::parse(&server.address(&empty)).unwrap() else {
        panic!("no address")
    };
    assert!(migrate_database(&address).unwrap());
    (server, empty)
});

/// A database with histories.
pub(crate) struct Database {
    pub(crate) address: String,
}

impl Database {
    fn new() -> Self {
        let (server, empty) = &*SERVER;
        let address = server.address(&server.copy_database(empty).unwrap());
        Self { address }
    }

    /// The history of a cluster, whose daemon has this key.
    fn cluster(&self, name: &str, key: u8) -> World {
        let place = Location::parse(&self.address).unwrap();
        World::of(&place, (&format!("uid-of-{name}"), name), [key; 32], Schemas::default())
    }

    fn run(&self, line: &str) -> String {
        run(Path::new(&self.address), &words(line)).replace(&self.address, "ADDRESS")
    }

    /// The lines of JSON of an answer.
    fn json(&self, line: &str) -> Vec<Value> {
        let (out, err, code) = outputs(Path::new(&self.address), &words(line));
        assert_eq!(code, 0, "{line}: {err}");
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

fn cart(image: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "cart", "namespace": "shop", "uid": format!("cart-{image}"), "creationTimestamp": "2026-03-01T12:00:00Z"},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "web", "image": image}]}}},
    })
}

fn config(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}")}})
}

/// Two clusters with a history, and one without.
pub(crate) fn shops() -> Database {
    let database = Database::new();
    let mut prod = database.cluster("prod", 1);
    let mut staging = database.cluster("staging", 2);
    database.cluster("empty", 3);
    prod.known("12:00:00", cart("web:1", 3));
    staging.known("12:00:00", cart("web:1", 1));
    staging.wrote("14:00:00", "helm", cart("web:2", 1));
    staging.gap("14:01:00", "14:03:00", Some("pods"), "the server restarted");
    prod.wrote("14:02:00", "argocd", cart("web:2", 3));
    prod.wrote("14:03:00", "hpa", cart("web:2", 4));
    // Of one time: in the order of the names.
    staging.wrote("14:05:00", "ann", config("app", json!({"level": "debug"})));
    prod.wrote("14:05:00", "ann", config("app", json!({"level": "info"})));
    prod.deleted("14:06:00", "ConfigMap", "app");
    for world in [&mut prod, &mut staging] {
        let mut batch = Batch::default();
        batch.note("watched-until", "2026-03-01T14:10:00Z");
        world.history().commit(&batch).unwrap();
    }
    database
}

const NOW: &str = "--now=2026-03-01T14:10:30+00:00[UTC]";

#[test]
fn the_logs_of_all_clusters_are_one_by_time() {
    let shops = shops();
    let ask = |line: &str| shops.run(&format!("{line} {NOW}"));
    expect![[r#"
        prod     2026-03-01 14:06:00  - configmaps shop/app  (deleted) #5
        prod         data level (4 bytes)
        prod     2026-03-01 14:05:00  + configmaps shop/app  (added by ann) #4
        prod         data level (4 bytes)
        staging  2026-03-01 14:05:00  + configmaps shop/app  (added by ann) #4
        staging      data level (5 bytes)
        prod     2026-03-01 14:03:00  ~ deployments.apps shop/cart  (updated by hpa) #3
        prod         replicas 3 -> 4
        staging  2026-03-01 14:03:00  ! not watched from 14:01:00 to 14:03:00 (2m0s): pods
        staging      the server restarted
        prod     2026-03-01 14:02:00  ± deployments.apps shop/cart  (recreated by argocd) #2
        prod         image web 1 -> 2
        staging  2026-03-01 14:00:00  ± deployments.apps shop/cart  (recreated by helm) #2
        staging      image web 1 -> 2
        kubediff: empty: the history is empty
    "#]]
    .assert_eq(&ask("log --all-clusters"));
    expect![[r#"
        staging  2026-03-01 14:00:00  ± deployments.apps shop/cart  image web 1 -> 2  (recreated by helm) #2
        prod     2026-03-01 14:02:00  ± deployments.apps shop/cart  image web 1 -> 2  (recreated by argocd) #2
        prod     2026-03-01 14:03:00  ~ deployments.apps shop/cart  replicas 3 -> 4  (updated by hpa) #3
    "#]]
    .assert_eq(&ask("log --cluster staging,prod --oneline --reverse --limit 3"));
    expect![[r#"
        prod     2026-03-01 14:03:00  ~ deployments.apps shop/cart  (updated by hpa) #3
        prod         ~ spec.replicas: 3 → 4
        staging  2026-03-01 14:00:00  ± deployments.apps shop/cart  (recreated by helm) #2
        staging      ~ spec.template.spec.containers[web].image: web:1 → web:2
        kubediff: empty: the history is empty
    "#]]
    .assert_eq(&ask("log deploy --all-clusters --manager h* --since 14:00 -p"));
    expect![[r#"
        kubediff: no change since 2026-03-01 14:09:00
        kubediff: empty: the history is empty
        kubediff: prod, staging: the history covers 2026-03-01 12:00:00 to 2026-03-01 14:10:00
    "#]]
    .assert_eq(&ask("log --all-clusters --since 14:09"));
    expect![[r#"
        kubediff: there is no resource `widgets.example.com`: it is not built in, and the history has configmaps, deployments.apps
        exit 2
    "#]].assert_eq(&ask("log widgets.example.com --all-clusters"));
    expect![[r#"
        prod     2026-03-01 14:06:00  - configmaps shop/app  (deleted) #5
        prod         data level (4 bytes)
        prod     2026-03-01 14:05:00  + configmaps shop/app  (added by ann) #4
        prod         data level (4 bytes)
        kubediff: empty: the history is empty
    "#]]
    .assert_eq(&ask("log --all-clusters --fold --limit 2"));

    let lines = shops.json(&format!("log --all-clusters -o json {NOW}"));
    let of: Vec<(&str, &str)> =
        lines.iter().map(|it| (it["cluster"].as_str().unwrap(), it["change"].as_str().unwrap())).collect();
    let expected = [
        ("prod", "deleted"),
        ("prod", "added"),
        ("staging", "added"),
        ("prod", "updated"),
        ("staging", "gap"),
        ("prod", "recreated"),
        ("staging", "recreated"),
    ];
    assert_eq!(of, expected);

    let mut staging = shops.cluster("staging", 2);
    staging.keeps_events();
    let about = json!({"kind": "Pod", "namespace": "shop", "name": "cart-a", "uid": "p"});
    let metadata = json!({"name": "e", "namespace": "shop", "uid": "e"});
    staging.became(
        "14:07:00",
        json!({"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": about, "reason": "BackOff", "message": "one\ntwo"}),
    );
    expect![[r#"
        staging  2026-03-01 14:07:00  * Pod shop/cart-a  BackOff  () #5
        staging      one
        staging      two
    "#]]
    .assert_eq(&ask("log --cluster prod,staging --events --limit 1"));
    let lines = shops.json(&format!("log --all-clusters --events --limit 1 -o json {NOW}"));
    assert_eq!((&lines[0]["cluster"], &lines[0]["event"]["number"]), (&json!("staging"), &json!(5)));
}

#[test]
fn clusters_are_listed_with_who_records_them() {
    let shops = shops();
    expect![[r#"
        CLUSTER   UID              LEADER   LAST RECORD           WATCHED UNTIL         LAST HOUR   OBJECTS   SIZE
        empty     uid-of-empty     none     none                  none                  0           0         0 bytes
        prod      uid-of-prod      none     2026-03-01 14:06:00   2026-03-01 14:10:00   4           1         2,272 bytes
        staging   uid-of-staging   none     2026-03-01 14:05:00   2026-03-01 14:10:00   2           2         1,568 bytes
    "#]].assert_eq(&shops.run(&format!("clusters {NOW}")));
    let _prod = shops.cluster("prod", 1);
    let lines = shops.json(&format!("clusters -o json {NOW}"));
    let by_name: BTreeMap<&str, &Value> = lines.iter().map(|it| (it["name"].as_str().unwrap(), it)).collect();
    assert_eq!(by_name.keys().copied().collect::<Vec<_>>(), ["empty", "prod", "staging"]);
    let prod = by_name["prod"];
    assert_eq!(prod["leader"]["name"], "kubediff");
    assert!(prod["leader"]["since"].as_str().unwrap() > "2026-03-01");
    assert_eq!(prod["last"], json!({"number": 5, "at": "2026-03-01T14:06:00Z"}));
    assert_eq!((&prod["changes_in_last_hour"], &prod["objects"]), (&json!(4), &json!(1)));
    assert_eq!(by_name["staging"]["leader"], Value::Null);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    World::open(&file, [1; 32]).known("12:00:00", cart("web:1", 1));
    let (out, err, code) = outputs(&file, &["clusters", "-o", "json", NOW]);
    let one: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&one["name"], &one["leader"], code), (&json!("prod"), &Value::Null, 0), "{err}");
}

#[test]
fn objects_of_all_clusters_are_in_one_table() {
    let shops = shops();
    let ask = |line: &str| shops.run(&format!("{line} {NOW}"));
    expect![[r#"
        CLUSTER   NAMESPACE   NAME   READY   UP-TO-DATE   AVAILABLE   AGE
        prod      shop        cart   0/4     0            0           130m
        staging   shop        cart   0/1     0            0           130m
        kubediff: empty: no deployments.apps found; the history is empty
    "#]]
    .assert_eq(&ask("get deploy --all-clusters"));
    expect![[r#"
        prod deployment.apps/cart
        staging deployment.apps/cart
        prod configmap/app
        staging configmap/app
    "#]]
    .assert_eq(&ask("get deploy,cm -n shop --cluster prod,staging -o name --at 14:05:30"));
    expect![[r#"
        kubediff: no cluster has deployments.apps/nothing
        exit 1
    "#]]
    .assert_eq(&ask("get deploy/nothing --all-clusters"));
}

#[test]
fn an_object_is_compared_with_its_twin_in_another_cluster() {
    let database = Database::new();
    let mut prod = database.cluster("prod", 1);
    let mut staging = database.cluster("staging", 2);
    let mut shared = database.cluster("shared", 1);
    let secret = |password: &str, user: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": "db", "namespace": "shop", "uid": format!("{user}{password}")},
            "stringData": {"password": password, "user": user}})
    };
    for (world, image, password) in [
        (&mut prod, "web:2", "hunter2hunter2"),
        (&mut staging, "web:1", "hunter3hunter3"),
        (&mut shared, "web:2", "hunter2hunter2"),
    ] {
        world.wrote("14:00:00", "helm", cart(image, 3));
        world.known("14:00:00", secret(password, "admin"));
    }
    prod.known("14:00:00", json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "shop", "uid": "a"}, "stringData": {"key": "hunter2hunter2", "same": "1234567890abc"}}));
    staging.known("14:00:00", json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "shop", "uid": "b"}, "stringData": {"key": "hunter2", "same": "1234567890abd"}}));
    prod.wrote("14:01:00", "ann", config("app", json!({"level": "info", "token": "Zx9-hunter-token"})));
    // It is hidden in one of the clusters alone.
    let mut secrets = Secrets::with_key([2; 32]);
    secrets.hide("ConfigMap.core".parse().unwrap(), "data.token".parse().unwrap());
    staging.hides(secrets);
    staging.wrote("14:01:00", "ann", config("app", json!({"level": "debug", "token": "Zx9-hunter-token"})));
    prod.wrote("14:02:00", "ann", config("only", json!({"a": "b"})));
    let mut note = Batch::default();
    note.note("key", Secrets::with_key([1; 32]).key_id().to_string());
    prod.history().commit(&note).unwrap();
    shared.history().commit(&note).unwrap();
    shared.wrote("14:03:00", "eve", secret("hunter4hunter4", "admin"));

    let ask = |line: &str| database.run(&format!("diff {line} {NOW}"));
    expect![[r#"
        deployments.apps shop/cart  staging → prod
            ~ spec.template.spec.containers[web].image: web:1 → web:2
        kubediff: staging: the history ends at 2026-03-01 14:01:00: what happened later is not known
        kubediff: prod: the history ends at 2026-03-01 14:02:00: what happened later is not known
    "#]]
    .assert_eq(&ask("deploy/cart -n shop --cluster staging --to-cluster prod"));
    expect![[r#"
        kubediff: nothing of deployments.apps/cart differs between shared and prod at 2026-03-01 14:00:30
    "#]]
    .assert_eq(&ask("deploy/cart --cluster shared --to-cluster prod --at 14:00:30"));
    expect![[r#"
        kubediff: neither cluster has deployments.apps/cart; the history covers 2026-03-01 14:00:00 to 2026-03-01 14:02:00
        exit 1
    "#]].assert_eq(&ask("deploy/cart --cluster staging --to-cluster prod --at 13:00"));
    // Hashes of two keys say nothing, but for the lengths beside them.
    expect![[r#"
        kubediff: nothing of secrets/db differs between staging and prod
        kubediff: hidden values have hashes of different keys in the two clusters: those of one length cannot be told apart
        kubediff: staging: the history ends at 2026-03-01 14:01:00: what happened later is not known
        kubediff: prod: the history ends at 2026-03-01 14:02:00: what happened later is not known
    "#]].assert_eq(&ask("secret/db --cluster staging --to-cluster prod"));
    expect![[r#"
        secrets shop/key  staging → prod
            ~ stringData.key: <hmac:? 7 bytes> → <hmac:? 14 bytes>
        kubediff: hidden values have hashes of different keys in the two clusters: those of one length cannot be told apart
        kubediff: staging: the history ends at 2026-03-01 14:01:00: what happened later is not known
        kubediff: prod: the history ends at 2026-03-01 14:02:00: what happened later is not known
    "#]].assert_eq(&ask("secret/key --cluster staging --to-cluster prod"));
    expect![[r#"
        secrets shop/db  shared → prod
            ~ stringData.password: <hmac:b433745242e810de 14 bytes> → <hmac:2923eb4bbd330b92 14 bytes>
        kubediff: shared: the history ends at 2026-03-01 14:03:00: what happened later is not known
        kubediff: prod: the history ends at 2026-03-01 14:02:00: what happened later is not known
    "#]]
    .assert_eq(&ask("secret/db --cluster shared --to-cluster prod"));
    expect![[r#"
        kubediff: nothing of secrets/db differs between shared and prod at 2026-03-01 14:00:30
    "#]]
    .assert_eq(&ask("secret/db --cluster shared --to-cluster prod --at 14:00:30"));
    expect![[r#"
        configmaps shop/app  staging → prod
            ~ data.level: debug → info
        kubediff: 1 value is hidden in one of the clusters alone, and may be the same
        kubediff: staging: the history ends at 2026-03-01 14:01:00: what happened later is not known
        kubediff: prod: the history ends at 2026-03-01 14:02:00: what happened later is not known
    "#]]
    .assert_eq(&ask("cm/app --cluster staging --to-cluster prod"));
    expect![[r#"
        configmaps shop/only  only in prod
            data  a (1 byte)
        kubediff: staging: the history ends at 2026-03-01 14:01:00: what happened later is not known
        kubediff: prod: the history ends at 2026-03-01 14:02:00: what happened later is not known
    "#]]
    .assert_eq(&ask("cm/only --cluster staging --to-cluster prod"));
    expect![[r#"
        configmaps shop/only  only in prod  data a (1 byte)
        kubediff: prod: the history ends at 2026-03-01 14:02:00: what happened later is not known
        kubediff: staging: the history ends at 2026-03-01 14:01:00: what happened later is not known
    "#]]
    .assert_eq(&ask("cm/only --cluster prod --to-cluster staging -o oneline"));
    let json =
        &database.json(&format!("diff deploy/cart --cluster staging --to-cluster prod -o json {NOW}"))[0];
    assert_eq!((&json["from_cluster"], &json["to_cluster"]), (&json!("staging"), &json!("prod")));
    assert!(json["patch"].to_string().contains("web:2"), "{json}");
    assert_eq!((&json["managers"], &json["change"]), (&json!([]), &json!("updated")));
}

#[test]
fn a_choice_of_clusters_that_is_none_is_explained() {
    let shops = shops();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    World::open(&file, [1; 32]).known("12:00:00", cart("web:1", 1));
    for (line, code, words) in [
        ("log", 1, "choose one with --cluster"),
        (
            "log --cluster prd",
            1,
            "no history of the cluster prd; choose with --cluster from empty, prod, staging",
        ),
        ("log --cluster prod,prd", 1, "no history of the cluster prd"),
        ("log --cluster prod,prod", 2, "names a cluster twice"),
        ("log --cluster prod,", 2, "names a cluster twice, or none"),
        ("log --all-clusters --cluster prod", 2, "cannot be used with"),
        ("log --all-clusters --daemon a/b", 2, "cannot be used with"),
        ("log --all-clusters --story 3", 2, "this command is of one cluster"),
        ("blame deploy/cart --all-clusters", 2, "this command is of one cluster"),
        ("show 3 --cluster prod,staging", 2, "this command is of one cluster"),
        ("history stats --all-clusters", 2, "this command is of one cluster"),
        ("ui --all-clusters", 2, "this command is of one cluster"),
        ("diff --from 14:00 --all-clusters", 2, "this command is of one cluster"),
        ("get deploy --all-clusters -o json", 2, "objects do not say of which cluster they are"),
        ("get nothings --all-clusters", 2, "there is no resource `nothings`"),
        ("diff deploy/cart --to-cluster prod", 2, "name that one with --cluster"),
        ("diff deploy/cart --cluster prod --to-cluster prd", 1, "no history of the cluster prd"),
        ("diff deploy/cart --cluster prod --to-cluster prod", 2, "names a cluster twice"),
        ("diff deploy/cart --cluster prod --to-cluster uid-of-prod", 2, "names a cluster twice"),
        ("diff deploy --cluster prod --to-cluster staging", 2, "is not one object"),
        ("diff deploy/x --cluster prod --to-cluster staging", 1, "neither cluster has deployments.apps/x"),
        ("diff deploy/cart --cluster prod --to-cluster staging --from 14:00", 2, "cannot be used with"),
        ("diff deploy/cart --at 14:00", 2, "--to-cluster"),
        ("diff deploy/cart --cluster prod", 2, "--from"),
    ] {
        let (out, err, ended) = outputs(Path::new(&shops.address), &self::words(line));
        assert!(ended == code && err.contains(words) && out.is_empty(), "{line}: {ended} {out}{err}");
    }
    for line in ["log --all-clusters", "get deploy --all-clusters", "diff deploy/cart --to-cluster prod"] {
        let (out, err, ended) = outputs(&file, &self::words(line));
        let words = "a file has the history of one cluster";
        assert!(ended == 2 && err.contains(words) && out.is_empty(), "{line}: {ended} {out}{err}");
    }
}

#[test]
fn clients_read_the_past_of_one_cluster() {
    let database = Database::new();
    for (name, image) in [("prod", "web:1"), ("staging", "web:2")] {
        let mut world = database.cluster(name, 7);
        world.wrote("14:00:00", "helm", cart(image, 1));
        world.wrote("14:01:00", "helm", config("b", json!({"k": name})));
        world.wrote("14:01:00", "helm", config("a", json!({"k": name})));
        world.wrote("14:10:00", "helm", cart(image, 3));
    }
    let mut command = program(Path::new(&database.address), "14:05");
    command.args(["--cluster", "staging"]);
    let past = Past::of(command);
    let carts = past.get("/apis/apps/v1/deployments").json();
    assert_eq!(carts["items"][0]["spec"]["replicas"], 1);
    assert_eq!(carts["items"][0]["spec"]["template"]["spec"]["containers"][0]["image"], "web:2");
    let first = past.get("/api/v1/configmaps?limit=1").json();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = past.get(&format!("/api/v1/configmaps?limit=1&continue={token}")).json();
    let names = [&first, &second].map(|list| list["items"][0]["metadata"]["name"].clone());
    assert_eq!(names, [json!("a"), json!("b")]);
    assert_eq!(second["items"][0]["data"]["k"], "staging");

    let mut one_of_several = program(Path::new(&database.address), "14:05");
    let output = one_of_several.args(["--", "true"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("--cluster"), "{said}");
}
