//! Objects, profiles and renderers that the tests share.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kubediff::render::{Color, Renderer};
use kubediff::{Change, Gvk, Noise, Origin, Profile, Schemas, Secrets, Sighting, States, Tally};
use serde_json::{Value, json};

/// A profile with the rules that are on by default, and a key that does not change.
pub(crate) fn profile() -> Profile {
    Profile { noise: Noise::default(), secrets: Secrets::with_key([7; 32]), schemas: Schemas::default() }
}

/// When everything is seen.
pub(crate) fn now() -> Timestamp {
    "2026-03-01T14:03:22Z".parse().unwrap()
}

/// Kind and collection of an object.
pub(crate) fn gvk(object: &Value) -> (Gvk, String) {
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    let kind = text("kind");
    let resource = match kind {
        "Endpoints" => "endpoints".to_owned(),
        _ if kind.ends_with('s') => format!("{}es", kind.to_lowercase()),
        _ => format!("{}s", kind.to_lowercase()),
    };
    (Gvk::new(text("apiVersion"), kind), resource)
}

/// The change between two states, seen in a watch.
pub(crate) fn change_with(
    profile: &Profile,
    old: Option<&Value>,
    new: Option<&Value>,
    tally: &mut Tally,
) -> Option<Change> {
    let (gvk, resource) = gvk(new.or(old).unwrap());
    let sighting =
        Sighting { cluster: None, gvk: &gvk, resource: &resource, observed_at: now(), origin: Origin::Watch };
    Change::between(&sighting, both(old, new), 1, profile, tally).change()
}

/// States as a watch has them: from JSON.
pub(crate) fn both(old: Option<&Value>, new: Option<&Value>) -> States {
    let [old, new] = [old, new].map(|state| state.map(|state| serde_json::to_vec(state).unwrap()));
    States::read(old.as_deref(), new.as_deref()).unwrap()
}

/// The same with the default profile.
pub(crate) fn change(old: Option<&Value>, new: Option<&Value>) -> Option<Change> {
    change_with(&profile(), old, new, &mut Tally::default())
}

/// For a terminal of 100 columns in Greenwich.
pub(crate) fn renderer() -> Renderer {
    Renderer { width: 100, time_zone: TimeZone::UTC, ..Renderer::default() }
}

/// The text without colours.
pub(crate) fn plain(text: &str) -> String {
    let mut stream = Color::Never.stream(Vec::new());
    std::io::Write::write_all(&mut stream, text.as_bytes()).unwrap();
    String::from_utf8(stream.into_inner()).unwrap()
}

/// The text of a change, without colours.
pub(crate) fn rendered(old: Option<&Value>, new: Option<&Value>) -> String {
    change(old, new).map_or_else(|| "nothing\n".to_owned(), |change| plain(&renderer().text(&change)))
}

/// A deployment as a cluster has it.
pub(crate) fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "cart",
            "namespace": "shop",
            "uid": "2c3b9c1e-7d5a-4f0e-9b62-0d7c1f6a8e11",
            "resourceVersion": "1001",
            "generation": 3,
            "creationTimestamp": "2026-02-26T10:00:00Z",
            "labels": {"app": "cart", "tier": "web"},
            "annotations": {"deployment.kubernetes.io/revision": "3"},
            "managedFields": [{
                "manager": "helm", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-02-26T10:00:00Z",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}},
            }],
        },
        "spec": {
            "replicas": 2,
            "template": {"spec": {"containers": [
                {
                    "name": "web",
                    "image": "nginx:1.27",
                    "env": [{"name": "LOG", "value": "info"}, {"name": "PORT", "value": "8080"}],
                    "ports": [{"containerPort": 8080, "name": "http"}],
                    "resources": {"limits": {"memory": "64Mi"}},
                },
            ]}},
        },
        "status": {"observedGeneration": 3, "replicas": 2, "conditions": [
            {"type": "Available", "status": "True", "lastTransitionTime": "2026-02-26T10:00:00Z"},
            {"type": "Progressing", "status": "True", "lastTransitionTime": "2026-02-26T10:00:00Z"},
        ]},
    })
}

/// The state after `edit`, with a new resourceVersion.
pub(crate) fn edited(object: &Value, edit: impl FnOnce(&mut Value)) -> Value {
    let mut object = object.clone();
    let before: u64 = object["metadata"]["resourceVersion"].as_str().unwrap_or("1").parse().unwrap();
    object["metadata"]["resourceVersion"] = (before + 1).to_string().into();
    edit(&mut object);
    object
}

/// How often a test does something that `cargo xtask soak` does more often.
pub(crate) fn times(usually: u64) -> u64 {
    std::env::var("INFORMER_SOAK").ok().and_then(|text| text.parse().ok()).unwrap_or(usually)
}

/// The seed of a property test, printed so that a failure can be had again: `SEED=... cargo test`.
#[allow(clippy::print_stdout, reason = "shown when the test fails")]
pub(crate) fn seeded(test: &str) -> fastrand::Rng {
    let seed =
        std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("{test}: SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

/// Does what an act of the demo says. Owners have the uids that the server gave.
#[cfg(feature = "demo")]
pub(crate) async fn perform(api: &testapi::Api, act: &kubediff::demo::Act) {
    use http::Method;
    use kubediff::demo::Verb;

    let (method, content_type) = match act.verb {
        Verb::Create => (Method::POST, "application/json"),
        Verb::Patch => (Method::PATCH, "application/merge-patch+json"),
        Verb::Delete => (Method::DELETE, "application/json"),
    };
    let mut body = act.body.clone();
    if let Some(owner) = &act.owner {
        let uid = object(api, &owner.path).await.unwrap()["metadata"]["uid"].clone();
        let reference = json!({"apiVersion": owner.api, "kind": owner.kind, "name": owner.name, "uid": uid, "controller": true});
        body["metadata"]["ownerReferences"] = json!([reference]);
    }
    let answer = request(api, method, &act.path, content_type, &body).await;
    assert!(answer.is_some(), "{act:?}");
}

/// The object at a path, if there is one.
#[cfg(feature = "demo")]
pub(crate) async fn object(api: &testapi::Api, path: &str) -> Option<Value> {
    request(api, http::Method::GET, path, "application/json", &Value::Null).await
}

#[cfg(feature = "demo")]
async fn request(
    api: &testapi::Api,
    method: http::Method,
    path: &str,
    content_type: &str,
    body: &Value,
) -> Option<Value> {
    use http_body_util::BodyExt as _;

    let body = if body.is_null() { bytes::Bytes::new() } else { body.to_string().into() };
    let request = http::Request::builder().method(method).uri(path).header("content-type", content_type);
    let answer = api.handle(request.body(body).unwrap()).await;
    let is_success = answer.status().is_success();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    is_success.then(|| serde_json::from_slice(&bytes).unwrap())
}
