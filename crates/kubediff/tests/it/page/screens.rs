//! The screens, as text.

use std::collections::{BTreeMap, VecDeque};

use expect_test::expect;

use super::browser::{NOW, Page, links, text};
use crate::queries::run::run;
use crate::queries::shop::Shop;
use crate::stories::cast::{CONTROLLER, Cast, replica_set};

/// The text of the content of a screen.
fn content(page: &Page, path: &str) -> String {
    let answer = page.get(path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    let (_, rest) = answer.text.split_once("<h1").unwrap();
    let (content, _) = rest.split_once("</main>").unwrap();
    text(&format!("<h1{content}"))
}

/// The rows of a screen.
fn rows(page: &Page, path: &str) -> String {
    let answer = page.get(path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    let rows = answer.text.split("data-row=").skip(1).map(|part| {
        let part = part.split("</li>").next().unwrap();
        text(&format!("<div data-row={part}"))
    });
    rows.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_timeline_shows_the_last_hour() {
    let shop = Shop::open();
    let page = Page::at(&shop.path, NOW);
    expect![[r#"
        14:50:00 - Secret shop/db age 10m, type Opaque, data password (14 bytes)
        14:40:00 + Secret shop/db type Opaque, data password (14 bytes) kubectl-create
        14:30:00 ± Deployment shop/cart replicas 3 -> 2, availableReplicas 1 -> 0, readyReplicas 1 -> 0, updatedReplicas 1 -> 0 helm
        14:20:00 + Offer shop/sale price 5 operator
        14:15:00 - Pod shop/cart-a age 14m, image web: web:1, phase Running, node n1
        14:13:00 ~ ConfigMap shop/app app.yaml#log.level debug -> info kubectl-edit
        14:12:00 ! not watched for 1m0s, from 14:11:00: deployments.apps, pods the server restarted
        14:10:00 ~ Deployment shop/cart replicas 1 -> 3 hpa/scale
        14:07:00 ~ ConfigMap shop/app app.yaml#log.level info -> debug kubectl-edit
        14:06:00 ~ Pod shop/cart-a Ready True -> False, containerStatuses[web].ready true -> false, containerStatuses[web].restartCount 0 -> 3, -containerStatuses[web].state.running, 1 more kubelet/status
        14:05:00 ~ Deployment shop/cart image web 1 -> 2 kubectl-set
        14:01:00 + Pod shop/cart-a image web: web:1, phase Running, node n1 kubelet/status
        14:00:00 + Deployment shop/cart image web: web:1, replicas 1 helm"#]].assert_eq(&rows(&page, "/"));
    expect![[r#"
        14:13:00 ~ ConfigMap shop/app app.yaml#log.level debug -> info kubectl-edit
        14:07:00 ~ ConfigMap shop/app app.yaml#log.level info -> debug kubectl-edit"#]]
    .assert_eq(&rows(&page, "/?kind=cm&ns=shop&fold=0"));
    expect!["Timeline the last hour 2026-03-01 14:00:00 to 2026-03-01 15:00:00 15 m 1 h 6 h 24 h 7 d 30 d All ‹ Earlier Wider Filters Kinds Namespaces Names By Path Changes Part of a name Since Until Events, too Each change by itself Show Show Events Show each change by itself 0 changes No change of nodes between 2026-03-01 14:00:00 and 2026-03-01 15:00:00. The history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00. Look at a wider period"].assert_eq(&content(&page, "/?kind=nodes"));
    let around = page.get("/search?s=14:05");
    assert_eq!(
        around.header("location"),
        Some("/?since=2026-03-01T14%3A00%3A00Z&until=2026-03-01T14%3A10%3A00Z")
    );
}

#[test]
fn the_page_about_the_history_lists_each_target_once() {
    let shop = Shop::open();
    let writer = rusqlite::Connection::open(&shop.path).unwrap();
    writer
        .execute("INSERT INTO positions VALUES ('pods', '0'), ('pods@dev', '8'), ('pods@shop', '7')", [])
        .unwrap();
    let about = content(&Page::at(&shop.path, NOW), "/about");
    assert!(about.contains("pods watched") && !about.contains("pods@"), "{about}");
}

#[test]
fn a_change_is_shown_with_its_differences_and_its_object() {
    let shop = Shop::open();
    let page = Page::at(&shop.path, NOW);
    expect![[r#"ConfigMap shop/app updated #9 app.yaml#log.level info -> debug Time 2026-03-01 14:07:00 By kubectl-edit resourceVersion 1002 → 1009 Newer › Blame JSON kubediff show 9 Differences ~ data["app.yaml"]#log.level info debug Noise rules leave out some differences, which are in the object below. Noise rules left out: managed-fields (1), resource-version (1). The object after this change Since, by, change Line apiVersion: v1 data: app.yaml: | log: level: debug kind: ConfigMap metadata: creationTimestamp: "2026-03-01T12:00:00Z" name: app namespace: shop resourceVersion: "1009" uid: shop-app"#]].assert_eq(&content(&page, "/change/9"));
    // The number of a gap is no change, and is shown all the same.
    expect!["Record #11 Sunday, 1 March 2026 14:12:00 ! not watched for 1m0s, from 14:11:00: deployments.apps the server restarted"].assert_eq(&content(&page, "/change/11"));
}

#[test]
fn an_object_is_shown_with_the_author_of_each_line() {
    let shop = Shop::open();
    let page = Page::at(&shop.path, NOW);
    expect![[r#"ConfigMap shop/app Resource configmaps Changed 2026-03-01 14:13:00 , #13 ! The history of it begins at 2026-03-01 13:59:00, in the middle of its life: of earlier writes it knows only the managers that own fields. ‹ Older Time Go JSON kubediff blame cm/app -n shop Manifest Changes Compare Events Related Its state Path Show Since, by, change Line 1h1m #2 apiVersion: v1 data: 47m kubectl-edit #13 app.yaml: | log: level: info 1h1m #2 kind: ConfigMap metadata: 1h1m #2 creationTimestamp: "2026-03-01T12:00:00Z" name: app namespace: shop resourceVersion: "1011" 1h1m #2 uid: shop-app"#]].assert_eq(&content(&page, "/o/cm/shop/app"));
    expect!["Deployment shop/cart deleted at 2026-03-01 14:30:00 Resource deployments.apps At 2026-03-01 14:06:00 , go to the current state Changed 2026-03-01 14:05:00 , #7 ± An object of this name was deleted and created again: the history has 2 of them. ‹ Older Newer › Time Go JSON kubediff blame deployments.apps/cart -n shop Manifest Changes Compare Events Related Its state Path Show Since, by, change Line 5m0s helm #5 replicas: 1 app: cart 0s kubectl-set #7 - image: web:2 5m0s helm #5 name: web"].assert_eq(&content(&page, "/o/deployments.apps/shop/cart?at=14:06&path=spec"));
    expect!["Deployment shop/cart Resource deployments.apps Changed 2026-03-01 14:30:00 , #16 ± An object of this name was deleted and created again: the history has 2 of them. Time Go JSON kubediff blame deployments.apps/cart -n shop Manifest Changes Compare Events Related Changes Sunday, 1 March 2026 14:30:00 ± Deployment shop/cart replicas 3 -> 2, availableReplicas 1 -> 0, readyReplicas 1 -> 0, updatedReplicas 1 -> 0 helm 14:12:00 ! not watched for 1m0s, from 14:11:00: deployments.apps the server restarted 14:10:00 ~ Deployment shop/cart replicas 1 -> 3 hpa/scale 14:05:00 ~ Deployment shop/cart image web 1 -> 2 kubectl-set 14:00:00 + Deployment shop/cart image web: web:1, replicas 1 helm"].assert_eq(&content(&page, "/o/deployments.apps/shop/cart?tab=changes"));
    expect![[r#"ConfigMap shop/app Resource configmaps Changed 2026-03-01 14:13:00 , #13 ‹ Older Time Go JSON kubediff blame cm/app -n shop Manifest Changes Compare Events Related From #9 ( 2026-03-01 14:07:00 ) to #13 ( 2026-03-01 14:13:00 ) From #13 2026-03-01 14:13:00 app.yaml#log.level debug -> info #9 2026-03-01 14:07:00 app.yaml#log.level info -> debug To #13 2026-03-01 14:13:00 app.yaml#log.level debug -> info #9 2026-03-01 14:07:00 app.yaml#log.level info -> debug Compare ~ data["app.yaml"]#log.level debug info"#]].assert_eq(&content(&page, "/o/cm/shop/app?tab=diff&rev=13&vs=9"));
}

#[test]
fn the_cluster_at_a_time_is_what_get_prints() {
    let shop = Shop::open();
    let page = Page::at(&shop.path, NOW);
    let moved = page.get("/at?time=14:06");
    assert_eq!(moved.header("location"), Some("/at/2026-03-01T14:06:00Z/"));
    let shown = content(&page, "/at/2026-03-01T14:06:00Z/?kind=pods&ns=shop");
    let printed = run(&shop.path, &["get", "pods", "-n", "shop", "--at", "2026-03-01T14:06:00Z"]);
    for cell in printed.split_whitespace() {
        assert!(shown.contains(cell), "{cell}: {shown}");
    }
    expect!["The cluster at 2026-03-01 14:06:00 #7 ‹ 5 minutes before 5 minutes after › Time Go Kinds configmaps 1 pods 1 deployments.apps 1 pods in shop 1 in all NAME READY STATUS RESTARTS AGE cart-a 0/1 CrashLoopBackOff 3 5m The same in a terminal kubediff get pods -n shop --at 2026-03-01T14:06:00Z"].assert_eq(&shown);
    expect![[r#"Differences From To Kinds Namespace Name Compare 3 objects differ between 2026-03-01 14:02:00 and 2026-03-01 14:08:00. ~ ConfigMap shop/app updated by kubectl-edit ~ data["app.yaml"]#log.level info debug ~ Pod shop/cart-a updated by kubelet/status ~ status.conditions[Ready].status True False ~ status.containerStatuses[web].ready true false ~ status.containerStatuses[web].restartCount 0 3 - status.containerStatuses[web].state.running {} + status.containerStatuses[web].state.waiting {reason: CrashLoopBackOff} ~ Deployment shop/cart updated by kubectl-set ~ spec.template.spec.containers[web].image web:1 web:2"#]].assert_eq(&content(&page, "/diff?from=14:02&to=14:08"));
}

#[test]
fn a_story_is_shown_with_its_pods() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut cast = Cast::in_rollout(&path);
    cast.passes(1.0);
    cast.writes(CONTROLLER, replica_set("cart", "new", "shop/cart:2", 1, 2));
    cast.starts("cart", "new", "cart-b");
    cast.passes(4.0);
    cast.crashes("cart-b", 1, "Error", "CrashLoopBackOff");
    cast.passes(10.0);
    cast.ends("cart-a");
    drop(cast);
    let page = Page::at(&path, "2026-03-01T14:30:00Z[UTC]");
    let shown = rows(&page, "/");
    let id: u64 = page.get("/v1/changes?fold=1").json()["items"][0]["story"]["id"].as_u64().unwrap();
    expect!["14:01:00 ▸ Deployment shop/cart image web 1 -> 2; failing, 0 of 1 updated, cart-b crash-looped (1 restart) argocd 8 changes"].assert_eq(&shown);
    expect!["Deployment shop/cart #4 image web 1 -> 2 failing, 0 of 1 updated cart-b crash-looped (1 restart) Story rollout Time 2026-03-01 14:01:00 to 2026-03-01 14:01:16 By argocd Size 8 changes The cluster before it Markdown JSON kubediff get deployments -n shop --at 2026-03-01T14:00:59Z The change that it began with ~ spec.template.spec.containers[web].image shop/cart:1 shop/cart:2 Pods cart-b new cart-a old 14:01:00 14:01:03 14:01:06 14:01:09 14:01:13 pending 14:01:01 to 14:01:02 ready 14:01:02 to 14:01:06 crash-looped 14:01:06 to 14:01:16 ready 14:01:00 to 14:01:16 terminating 14:01:16 to 14:01:16 Deployment began pending running, not ready ready in trouble terminating Deployment began As a table Pod Template Node Ready after Restarts Trouble State cart-b new n1 1s 1 ! crash-looped exists cart-a old n1 0 ended All its changes Sunday, 1 March 2026 14:01:00 ~ Deployment shop/cart image web 1 -> 2 argocd 14:01:01 + ReplicaSet shop/cart-new image web: shop/cart:2, replicas 1 kube-controller-manager 14:01:01 + Pod shop/cart-b image web: web:1, phase Pending kube-controller-manager 14:01:01 ~ Pod shop/cart-b +nodeName n1 kube-scheduler 14:01:02 ~ Pod shop/cart-b phase Pending -> Running, +conditions, +containerStatuses kubelet/status 14:01:06 ~ Pod shop/cart-b Ready True -> False, +containerStatuses[web].lastState, containerStatuses[web].ready true -> false, containerStatuses[web].restartCount 0 -> 1, 2 more kubelet/status 14:01:16 ~ Pod shop/cart-a +deletionTimestamp 2026-03-01T14:01:16.1Z kube-controller-manager 14:01:16 - Pod shop/cart-a age 1h1m, image web: web:1, phase Running, node n1"].assert_eq(&content(&page, &format!("/story/{id}")));
    expect![[r#"
        ### [Deployment shop/cart](http://HOST/story/4)

        image web 1 -\> 2; failing, 0 of 1 updated, cart-b crash-looped (1 restart)

        2026-03-01 14:01:00 to 2026-03-01 14:01:16 (UTC+00:00), by argocd; 8 changes

        - `spec.template.spec.containers[web].image`

        | time | change | object | |
        |---|---|---|---|
        | 14:01:00 | [#4](http://HOST/change/4) | Deployment shop/cart | image web 1 -\> 2 |
        | 14:01:01 | [#5](http://HOST/change/5) | ReplicaSet shop/cart-new | image web: shop/cart:2, replicas 1 |
        | 14:01:01 | [#6](http://HOST/change/6) | Pod shop/cart-b | image web: web:1, phase Pending |
        | 14:01:01 | [#7](http://HOST/change/7) | Pod shop/cart-b | +nodeName n1 |
        | 14:01:02 | [#8](http://HOST/change/8) | Pod shop/cart-b | phase Pending -\> Running, +conditions, +containerStatuses |
        | 14:01:06 | [#9](http://HOST/change/9) | Pod shop/cart-b | Ready True -\> False, +containerStatuses\[web\].lastState, containerStatuses\[web\].ready true -\> false, containerStatuses\[web\].restartCount 0 -\> 1, 2 more |
        | 14:01:16 | [#10](http://HOST/change/10) | Pod shop/cart-a | +deletionTimestamp 2026-03-01T14:01:16.1Z |
        | 14:01:16 | [#11](http://HOST/change/11) | Pod shop/cart-a | age 1h1m, image web: web:1, phase Running, node n1 |
    "#]]
        .assert_eq(&page.get(&format!("/story/{id}.md")).text.replace(&page.host, "HOST"));
}

/// Every address that a screen names has a screen, and none takes back what another one says.
#[test]
fn no_link_is_broken() {
    let shop = Shop::open();
    let page = Page::at(&shop.path, NOW);
    let mut seen: BTreeMap<String, u16> = BTreeMap::new();
    let mut queue = VecDeque::from([
        "/".to_owned(),
        "/?fold=0&events=1".to_owned(),
        "/at/2026-03-01T14:06:00Z/".to_owned(),
    ]);
    while let Some(path) = queue.pop_front() {
        if seen.contains_key(&path) || seen.len() > 400 {
            continue;
        }
        let answer = page.get(&path);
        seen.insert(path.clone(), answer.status);
        assert!(answer.status == 200 || answer.status == 303, "{path}: {} {}", answer.status, answer.text);
        assert!(!answer.text.contains("hunter2") && !answer.text.contains("aHVudGVyMmh1bnRlcjI"), "{path}");
        if answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html")) {
            queue.extend(links(&answer.text));
        }
    }
    assert!(seen.len() > 100, "{seen:?}");
}
