//! The page for users of the cluster: each sees what `kubectl auth can-i` says, and nothing of the rest.

use std::collections::BTreeSet;
use std::process::Command;

use control_plane::ControlPlane;
use fastrand::Rng;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use kube_client::client::Body;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use serde_json::{Value, json};

use crate::session::{PATIENCE, Session};

const SPACES: &[&str] = &["viewers-a", "viewers-b", "viewers-c"];
/// Group and plural.
const RESOURCES: &[(&str, &str)] =
    &[("", "configmaps"), ("", "secrets"), ("apps", "deployments"), ("", "serviceaccounts")];

pub(crate) async fn admin(server: &ControlPlane) -> Client {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

pub(crate) async fn send(client: &Client, method: &str, path: &str, body: Value) -> Value {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let answer = client.request(request.body(body.to_string().into_bytes()).unwrap()).await;
    answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
}

/// Makes a namespace, and waits for the server's next second: objects of the first one are shown a minute later.
async fn namespace(client: &Client, name: &str) {
    let made = send(client, "POST", "/api/v1/namespaces", json!({"metadata": {"name": name}})).await;
    let path = format!("/api/v1/namespaces/{name}/configmaps?dryRun=All");
    let second = |object: &Value| object["metadata"]["creationTimestamp"].clone();
    while second(&send(client, "POST", &path, json!({"metadata": {"name": "clock"}})).await) == second(&made)
    {
        tokio::task::yield_now().await;
    }
}

async fn token(client: &Client, account: &str) -> String {
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    send(client, "POST", accounts, json!({"metadata": {"name": account}})).await;
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = send(client, "POST", &format!("{accounts}/{account}/token"), request).await;
    answer["status"]["token"].as_str().unwrap().to_owned()
}

/// Gives an account a right, in a namespace or everywhere.
async fn grant(client: &Client, account: &str, namespace: Option<&str>, rule: Value) {
    let name = format!("viewers-{account}-{:x}", fastrand::u64(..));
    let (path, role, binding) = match namespace {
        Some(namespace) => {
            (format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"), "Role", "RoleBinding")
        }
        None => ("/apis/rbac.authorization.k8s.io/v1".to_owned(), "ClusterRole", "ClusterRoleBinding"),
    };
    let plural = |kind: &str| kind.to_lowercase() + "s";
    let role_body = json!({"metadata": {"name": name}, "rules": [rule]});
    send(client, "POST", &format!("{path}/{}", plural(role)), role_body).await;
    let subject = json!({"kind": "ServiceAccount", "namespace": "default", "name": account});
    let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name});
    let body = json!({"metadata": {"name": name}, "subjects": [subject], "roleRef": reference});
    send(client, "POST", &format!("{path}/{}", plural(binding)), body).await;
}

/// The answer of `kubectl auth can-i`, for an account.
async fn can(
    client: &Client,
    account: &str,
    verb: &str,
    (group, resource): (&str, &str),
    namespace: &str,
    name: &str,
) -> bool {
    let attributes =
        json!({"verb": verb, "group": group, "resource": resource, "namespace": namespace, "name": name});
    let spec = json!({
        "user": format!("system:serviceaccount:default:{account}"), "resourceAttributes": attributes,
        "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
    });
    let review =
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
    let answer = send(client, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review).await;
    answer["status"]["allowed"] == true
}

/// A daemon with a page, and its address.
async fn serve(server: &ControlPlane, folder: &std::path::Path) -> (Session, Page) {
    let certificate = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(folder.join("page.crt"), certificate.cert.pem()).unwrap();
    std::fs::write(folder.join("page.key"), certificate.signing_key.serialize_pem()).unwrap();
    let tls = "{certificate: page.crt, key: page.key}";
    let config = format!(
        "history: {{path: history.db}}\nlisten: '127.0.0.1:0'\nweb: {{listen: '127.0.0.1:0', tls: {tls}}}\n"
    );
    std::fs::write(folder.join("kubediff.yaml"), config).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
    command.arg("serve").arg("-c").arg(folder.join("kubediff.yaml")).env("KUBECONFIG", server.kubeconfig());
    let started = tokio::task::spawn_blocking(move || {
        let mut session = Session::program(command);
        let mut after = |text: &str| session.note(text).split(text).nth(1).unwrap().to_owned();
        let health = after("health and metrics are on ");
        let address = after("the page is on ");
        session.note("watching");
        (session, address, health)
    });
    let (session, address, health) = started.await.unwrap();
    (session, Page { address, health, certificate: certificate.cert.der().to_vec() })
}

/// A page that is served.
struct Page {
    address: String,
    /// The address of health and metrics.
    health: String,
    certificate: Vec<u8>,
}

/// Somebody who asks the page.
struct Viewer(Client);

impl Viewer {
    fn new(page: &Page, token: Option<&str>) -> Self {
        let mut config = Config::new(page.address.parse().unwrap());
        config.root_cert = Some(vec![page.certificate.clone()]);
        config.auth_info.token = token.map(|token| token.to_owned().into());
        Self(Client::try_from(config).unwrap())
    }

    async fn ask(
        &self,
        request: http::request::Builder,
        body: &str,
    ) -> (StatusCode, http::HeaderMap, String) {
        let request = request.body(Body::from(body.as_bytes().to_vec())).unwrap();
        let response = self.0.send(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts.status, parts.headers, String::from_utf8(bytes.to_vec()).unwrap())
    }

    async fn get(&self, path: &str) -> (StatusCode, String) {
        let (status, _, text) = self.ask(Request::get(path), "").await;
        (status, text)
    }

    /// The objects of the changes that the page shows, by resource, namespace and name.
    async fn changes(&self) -> BTreeSet<(String, String, String)> {
        let (mut found, mut cursor) = (BTreeSet::new(), String::new());
        loop {
            let (status, text) = self.get(&format!("/v1/changes?since=-1h&limit=100{cursor}")).await;
            if status == StatusCode::FORBIDDEN {
                return found;
            }
            assert_eq!(status, StatusCode::OK, "{text}");
            let answer: Value = serde_json::from_str(&text).unwrap();
            for item in answer["items"].as_array().unwrap() {
                let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
                if item["change"] != "gap" {
                    found.insert((text("resource"), text("namespace"), text("name")));
                }
            }
            match answer["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return found,
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn k9_a_viewer_sees_what_the_cluster_lets_them_list_and_get() {
    let name = "k9_a_viewer_sees_what_the_cluster_lets_them_list_and_get";
    let Some(server) = control_plane::shared_or_skip(name) else { return };
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let admin = admin(server).await;
    for space in SPACES {
        namespace(&admin, space).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let (daemon, page) = serve(server, folder.path()).await;

    // Objects with names that nothing else has.
    let mut objects = Vec::new();
    for space in SPACES {
        for (group, resource) in RESOURCES {
            let name = format!("m{:08x}", random.u32(..));
            let labels = json!({"app": name});
            let path = match *group {
                "" => format!("/api/v1/namespaces/{space}/{resource}"),
                group => format!("/apis/{group}/v1/namespaces/{space}/{resource}"),
            };
            let body = match *resource {
                "deployments" => {
                    json!({"metadata": {"name": name}, "spec": {"replicas": 0, "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}})
                }
                _ => json!({"metadata": {"name": name}}),
            };
            send(&admin, "POST", &path, body).await;
            objects.push(((*group, *resource), *space, name));
        }
    }
    let owner = token(&admin, "owner").await;
    grant(&admin, "owner", None, json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "get"]}))
        .await;
    while !can(&admin, "owner", "get", ("*", "*"), "", "").await {
        tokio::task::yield_now().await;
    }
    let owner = Viewer::new(&page, Some(&owner));
    let shown = tokio::time::timeout(PATIENCE, async {
        loop {
            let changes = owner.changes().await;
            let has = |name: &String| changes.iter().any(|(.., known)| known == name);
            if objects.iter().all(|(.., name)| has(name)) {
                return;
            }
            tokio::task::yield_now().await;
        }
    });
    shown.await.expect("all changes are on the page of somebody who may see all");

    // The next tenant of a namespace sees nothing of the former one. It is the first whose rights are looked up: those of others hold for a while.
    let maps = "/api/v1/namespaces/viewers-t/configmaps";
    let map = |name: &str| json!({"metadata": {"name": name}});
    namespace(&admin, "viewers-t").await;
    send(&admin, "POST", maps, map("former-tenant")).await;
    send(&admin, "DELETE", &format!("{maps}/former-tenant"), json!({})).await;
    let path = "/api/v1/namespaces/viewers-t";
    let mut deleted = send(&admin, "DELETE", path, json!({})).await;
    // No controller empties the namespace here.
    deleted["spec"]["finalizers"] = json!([]);
    send(&admin, "PUT", &format!("{path}/finalize"), deleted).await;
    namespace(&admin, "viewers-t").await;
    send(&admin, "POST", maps, map("next-tenant")).await;
    let sent = token(&admin, "tenant").await;
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]});
    grant(&admin, "tenant", Some("viewers-t"), rule).await;
    while !can(&admin, "tenant", "get", ("", "configmaps"), "viewers-t", "").await {
        tokio::task::yield_now().await;
    }
    let names = |all: BTreeSet<(String, String, String)>| -> Vec<String> {
        let ours = all.into_iter().filter(|(kind, space, _)| kind == "configmaps" && space == "viewers-t");
        ours.map(|(.., name)| name).collect()
    };
    let both = async {
        while names(owner.changes().await) != ["former-tenant", "next-tenant"] {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, both).await.expect("both tenants are in the history");
    let tenant = Viewer::new(&page, Some(&sent));
    assert_eq!(names(tenant.changes().await), ["next-tenant"]);
    // Nor the time of a record of it.
    let (_, text) = owner.get("/v1/changes?kind=configmaps&ns=viewers-t&since=-1h").await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    let items = answer["items"].as_array().unwrap().iter();
    for item in items.filter(|item| item["change"] != "gap") {
        let (status, _) = tenant.get(&format!("/at?time=%23{}", item["number"])).await;
        let is_own = item["name"] == "next-tenant";
        let expected = if is_own { StatusCode::SEE_OTHER } else { StatusCode::NOT_FOUND };
        assert_eq!(status, expected, "{}", item["name"]);
    }
    for path in [
        "/at/now/api/v1/namespaces/viewers-t/configmaps",
        "/?since=-1h",
        "/v1/diff?from=-1h",
        "/v1/state?kind=configmaps",
        "/o/configmaps/viewers-t/next-tenant",
    ] {
        let (_, text) = tenant.get(path).await;
        assert!(text.contains("next-tenant") && !text.contains("former-tenant"), "{path}: {text}");
    }
    assert_eq!(tenant.get("/v1/objects/configmaps/viewers-t/former-tenant").await.0, StatusCode::NOT_FOUND);

    for number in 0..6 {
        let account = format!("viewer-{number}");
        let sent = token(&admin, &account).await;
        let mut granted = Vec::new();
        for kind in RESOURCES {
            for space in SPACES.iter().copied().map(Some).chain([None]) {
                if random.u8(..6) > 0 {
                    continue;
                }
                let verbs: &[&str] =
                    [&["list", "get"][..], &["list", "get"], &["list"], &["get"]][random.usize(..4)];
                let rule = json!({"apiGroups": [kind.0], "resources": [kind.1], "verbs": verbs});
                grant(&admin, &account, space, rule).await;
                granted.extend(verbs.iter().map(|verb| (*verb, *kind, space.unwrap_or("viewers-a"))));
            }
        }
        // The server's authorizer has its own informers.
        for (verb, kind, space) in granted {
            while !can(&admin, &account, verb, kind, space, "").await {
                tokio::task::yield_now().await;
            }
        }
        let mut hidden = Vec::new();
        let mut seen = BTreeSet::new();
        for ((group, resource), space, name) in &objects {
            let may = can(&admin, &account, "list", (group, resource), space, "").await
                && can(&admin, &account, "get", (group, resource), space, "").await;
            if may {
                let full =
                    if group.is_empty() { (*resource).to_owned() } else { format!("{resource}.{group}") };
                seen.insert((full, (*space).to_owned(), name.clone()));
            } else {
                hidden.push(name.clone());
            }
        }
        let viewer = Viewer::new(&page, Some(&sent));
        let changes = viewer.changes().await;
        let places: BTreeSet<_> =
            changes.iter().map(|(resource, space, _)| (resource.as_str(), space.as_str())).collect();
        for (resource, space) in places {
            let kind = RESOURCES.iter().find(|(_, plural)| *plural == resource);
            let kind = kind.unwrap_or_else(|| panic!("{account} has no right to {resource}"));
            assert!(
                can(&admin, &account, "list", *kind, space, "").await,
                "{account}: {resource} of {space}"
            );
            assert!(can(&admin, &account, "get", *kind, space, "").await, "{account}: {resource} of {space}");
        }
        let ours: BTreeSet<_> = changes
            .iter()
            .filter(|(.., name)| objects.iter().any(|(.., known)| known == name))
            .map(|(resource, space, name)| (resource.clone(), space.clone(), name.clone()))
            .collect();
        let names = |all: &BTreeSet<(String, String, String)>| -> BTreeSet<String> {
            all.iter().map(|(.., name)| name.clone()).collect()
        };
        assert_eq!(names(&ours), names(&seen), "{account}");

        let mut asked: Vec<String> = [
            "/?since=-1h",
            "/?since=-1h&fold=0",
            "/about",
            "/help",
            "/diff?from=-1h",
            "/v1/kinds",
            "/v1/status",
            "/v1/gaps",
            "/v1/facets?of=kind&since=-1h",
            "/v1/facets?of=ns&since=-1h",
            "/v1/facets?of=by&since=-1h",
            "/v1/histogram?since=-1h",
            "/v1/diff?from=-1h",
            "/v1/changes?fold=1&since=-1h",
            "/v1/changes?events=1&since=-1h",
        ]
        .map(str::to_owned)
        .to_vec();
        for (group, resource) in RESOURCES {
            let full = if group.is_empty() { (*resource).to_owned() } else { format!("{resource}.{group}") };
            asked.push(format!("/v1/state?kind={full}"));
            asked.push(format!("/at/now/?kind={full}"));
            for space in SPACES {
                asked.push(format!("/v1/state?kind={full}&ns={space}"));
                asked.push(format!("/?kind={full}&ns={space}&since=-1h"));
            }
        }
        for ((group, resource), space, name) in &objects {
            let full = if group.is_empty() { (*resource).to_owned() } else { format!("{resource}.{group}") };
            let is_seen = !hidden.contains(name);
            for path in ["", "/versions", "/blame"] {
                let (status, text) = viewer.get(&format!("/v1/objects/{full}/{space}/{name}{path}")).await;
                // A right to one object by its name is one to get it.
                let may_get = can(&admin, &account, "get", (group, resource), space, name).await;
                let expected = if is_seen || may_get { StatusCode::OK } else { StatusCode::NOT_FOUND };
                assert!(
                    status == expected || !is_seen && status == StatusCode::FORBIDDEN,
                    "{account} {name}{path}: {status} {text}"
                );
            }
        }
        // The API of the past, as that of the cluster: a part of a list is none.
        for (group, resource) in RESOURCES {
            let root = if group.is_empty() { "api/v1".to_owned() } else { format!("apis/{group}/v1") };
            let everywhere = can(&admin, &account, "list", (group, resource), "", "").await
                && can(&admin, &account, "get", (group, resource), "", "").await;
            let (status, _) = viewer.get(&format!("/at/now/{root}/{resource}")).await;
            let of = |may: bool| if may { StatusCode::OK } else { StatusCode::FORBIDDEN };
            assert_eq!(status, of(everywhere), "{account}: all {resource}");
            for space in SPACES {
                let path = format!("/at/now/{root}/namespaces/{space}/{resource}");
                let may = can(&admin, &account, "list", (group, resource), space, "").await
                    && can(&admin, &account, "get", (group, resource), space, "").await;
                let (status, text) = viewer.get(&path).await;
                assert_eq!(status, of(may), "{account}: {path}: {text}");
                for ((_, of), within, name) in objects.iter().filter(|it| it.0 == (*group, *resource)) {
                    let is_listed = text.contains(&format!("\"{name}\""));
                    assert_eq!(is_listed, may && within == space, "{account}: {of} {name} in {space}");
                }
                let attributes =
                    json!({"verb": "list", "group": group, "resource": resource, "namespace": space});
                let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                    "spec": {"resourceAttributes": attributes}});
                let request = Request::post("/at/now/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
                let (_, _, text) = viewer.ask(request, &review.to_string()).await;
                let answer: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(answer["status"]["allowed"], may, "{account}: {text}");
            }
        }
        for path in asked {
            let (status, text) = viewer.get(&path).await;
            let leaked = hidden.iter().find(|name| text.contains(*name));
            assert_eq!(leaked, None, "{account}: {path} ({status})");
            assert!(
                status == StatusCode::OK
                    || seen.is_empty()
                    || status == StatusCode::NOT_FOUND
                    || status == StatusCode::FORBIDDEN && path.contains("ns="),
                "{account}: {path}: {status} {text}"
            );
        }
    }

    // One object by its name: its own pages, and no list.
    let ((_, resource), space, name) = &objects[0];
    let sent = token(&admin, "named").await;
    let rule = json!({"apiGroups": [""], "resources": [resource], "verbs": ["get"], "resourceNames": [name]});
    grant(&admin, "named", Some(space), rule).await;
    while !can(&admin, "named", "get", ("", resource), space, name).await {
        tokio::task::yield_now().await;
    }
    let nobody = Viewer::new(&page, Some(&token(&admin, "nobody").await));
    let (status, text) = nobody.get("/").await;
    assert!(status == StatusCode::FORBIDDEN && text.contains("the verbs get and list"), "{status} {text}");
    let viewer = Viewer::new(&page, Some(&sent));
    assert_eq!(viewer.get(&format!("/o/{resource}/{space}/{name}")).await.0, StatusCode::OK);
    assert_eq!(viewer.changes().await, BTreeSet::new());
    let of_past = format!("/at/now/api/v1/namespaces/{space}/{resource}");
    assert_eq!(viewer.get(&format!("{of_past}/{name}")).await.0, StatusCode::OK);
    assert_eq!(viewer.get(&of_past).await.0, StatusCode::FORBIDDEN);
    let (status, text) = Viewer::new(&page, None).get("/at/now/api/v1/pods").await;
    assert!(status == StatusCode::UNAUTHORIZED && text.contains("\"Status\""), "{status} {text}");
    let (_, _, other) = &objects[4];
    assert_ne!(viewer.get(&format!("/o/{resource}/{}/{other}", SPACES[1])).await.0, StatusCode::OK);

    tokio::task::spawn_blocking(move || drop(daemon)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_enters_with_a_token_and_nobody_without() {
    let name = "a_user_enters_with_a_token_and_nobody_without";
    let Some(server) = control_plane::shared_or_skip(name) else { return };
    let admin = admin(server).await;
    let folder = tempfile::tempdir().unwrap();
    let (mut daemon, page) = serve(server, folder.path()).await;
    let sent = token(&admin, "enters").await;
    grant(&admin, "enters", None, json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "get"]}))
        .await;
    while !can(&admin, "enters", "get", ("*", "*"), "", "").await {
        tokio::task::yield_now().await;
    }

    let nobody = Viewer::new(&page, None);
    let (status, headers, text) = nobody.ask(Request::get("/v1/changes"), "").await;
    assert_eq!(
        (status, &headers["www-authenticate"]),
        (StatusCode::UNAUTHORIZED, &"Bearer".parse().unwrap())
    );
    assert!(text.contains("Authorization: Bearer TOKEN"), "{text}");
    let (status, headers, _) = nobody.ask(Request::get("/change/1?x=1"), "").await;
    assert_eq!(
        (status, headers["location"].to_str().unwrap()),
        (StatusCode::SEE_OTHER, "/login?to=%2Fchange%2F1%3Fx%3D1")
    );
    let (status, text) = nobody.get("/login?to=/%22%3E%3Cscript%3E").await;
    assert!(status == StatusCode::OK && !text.contains("<script>"), "{text}");
    assert_eq!(nobody.get("/static/style.css").await.0, StatusCode::OK);
    let stranger = Viewer::new(&page, Some("no.such.token"));
    assert_eq!(stranger.get("/v1/changes").await.0, StatusCode::UNAUTHORIZED);

    let form = |token: &str, to: &str| format!("token={token}&to={to}");
    let post = || Request::post("/login").header("content-type", "application/x-www-form-urlencoded");
    let same = || post().header("sec-fetch-site", "same-origin");
    assert_eq!(nobody.ask(post(), &form(&sent, "/")).await.0, StatusCode::FORBIDDEN);
    let cross = post().header("sec-fetch-site", "cross-site");
    assert_eq!(nobody.ask(cross, &form(&sent, "/")).await.0, StatusCode::FORBIDDEN);
    let (status, _, text) = nobody.ask(same(), &form("wrong", "/")).await;
    assert!(status == StatusCode::UNAUTHORIZED && text.contains("does not know this token"), "{text}");
    for (to, expected) in [
        ("/change/1", "/change/1"),
        ("//evil.example", "/"),
        ("/%5Cevil.example", "/"),
        ("/%09/evil.example", "/"),
        ("/%0a/evil.example", "/"),
        ("https://evil.example", "/"),
    ] {
        let (status, headers, _) = nobody.ask(same(), &form(&sent, to)).await;
        assert_eq!(
            (status, headers["location"].to_str().unwrap()),
            (StatusCode::SEE_OTHER, expected),
            "{to}"
        );
    }
    let (_, headers, _) = nobody.ask(same(), &form(&sent, "/")).await;
    let cookie = headers["set-cookie"].to_str().unwrap().to_owned();
    assert!(
        cookie.starts_with("__Host-kubediff=") && cookie.contains("Secure; HttpOnly; SameSite=Strict"),
        "{cookie}"
    );
    assert!(!cookie.contains(&sent));
    let cookie = cookie.split(';').next().unwrap();
    let inside = |path: &str| Request::get(path).header("cookie", cookie);
    let (status, _, text) = nobody.ask(inside("/"), "").await;
    assert!(
        status == StatusCode::OK && text.contains("system:serviceaccount:default:enters"),
        "{status} {text}"
    );
    assert_eq!(nobody.ask(Request::post("/"), "").await.0, StatusCode::METHOD_NOT_ALLOWED);
    let (_, metrics) = crate::daemon::get(&page.health, "/metrics").await;
    for line in
        [r#"kubediff_page_requests_total{code="401"} 3"#, r#"kubediff_page_requests_total{code="405"} 1"#]
    {
        assert!(metrics.contains(line), "no {line} in {metrics}");
    }
    // A configuration that is taken ends no session, and a logout ends the streams of its own.
    let file = folder.path().join("kubediff.yaml");
    let port = page.address.trim_start_matches("https://");
    let config = std::fs::read_to_string(&file).unwrap();
    let config = config.replace("web: {listen: '127.0.0.1:0'", &format!("web: {{listen: '{port}'"));
    std::fs::write(&file, format!("cluster: again\n{config}")).unwrap();
    let again = tokio::task::spawn_blocking(move || {
        daemon.note("watching");
        daemon
    });
    let daemon = tokio::time::timeout(PATIENCE, again).await.unwrap().unwrap();
    assert_eq!(nobody.ask(inside("/"), "").await.0, StatusCode::OK);
    let live = inside("/v1/live").body(Body::from(Vec::new())).unwrap();
    let live = nobody.0.send(live).await.unwrap();
    assert_eq!(live.status(), StatusCode::OK);
    let out = Request::post("/logout").header("cookie", cookie).header("sec-fetch-site", "same-origin");
    assert_eq!(nobody.ask(out, "").await.0, StatusCode::SEE_OTHER);
    let ended = tokio::time::timeout(PATIENCE, live.into_body().collect()).await;
    ended.expect("the stream ends").unwrap();
    assert_eq!(nobody.ask(inside("/"), "").await.0, StatusCode::SEE_OTHER);

    tokio::task::spawn_blocking(move || drop(daemon)).await.unwrap();
}
