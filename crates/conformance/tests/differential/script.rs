//! Scripts: what a client might ask, drawn from a seed. Most of it is right, much of it is wrong on purpose.

use fastrand::Rng;
use http::Method;
use serde_json::{Value, json};

use crate::request::Request;

/// A script for a namespace of its own.
pub(crate) fn script(seed: u64, templates: &Templates) -> Vec<Request> {
    let mut script =
        Script { random: Rng::with_seed(seed), requests: Vec::new(), known: Vec::new(), templates };
    // The state that everything begins with, for watches.
    script.requests.push(Request::get("/api/v1/namespaces/{ns}/configmaps"));
    for _ in 0..script.random.usize(15..40) {
        script.draw();
    }
    // The resulting objects, in the order of events.
    for kind in KINDS {
        script.requests.push(Request::get(kind.collection()));
        script.requests.push(watch(kind).query("resourceVersion", "{rv:0}"));
    }
    script.requests
}

/// Bodies that the real server has completed, so that its defaults are in both servers' objects.
#[derive(Default)]
pub(crate) struct Templates {
    pub(crate) deployment: Value,
    pub(crate) pod: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    ConfigMap,
    Secret,
    Lease,
    Role,
    Deployment,
    Pod,
    Widget,
}

const KINDS: [Kind; 7] =
    [Kind::ConfigMap, Kind::Secret, Kind::Lease, Kind::Role, Kind::Deployment, Kind::Pod, Kind::Widget];

impl Kind {
    pub(crate) fn collection(self) -> String {
        let (api, plural) = match self {
            Self::ConfigMap => ("api/v1", "configmaps"),
            Self::Secret => ("api/v1", "secrets"),
            Self::Pod => ("api/v1", "pods"),
            Self::Lease => ("apis/coordination.k8s.io/v1", "leases"),
            Self::Role => ("apis/rbac.authorization.k8s.io/v1", "roles"),
            Self::Deployment => ("apis/apps/v1", "deployments"),
            Self::Widget => ("apis/diff.example.com/v1", "widgets"),
        };
        format!("/{api}/namespaces/{{ns}}/{plural}")
    }

    pub(crate) fn types(self) -> (&'static str, &'static str) {
        match self {
            Self::ConfigMap => ("v1", "ConfigMap"),
            Self::Secret => ("v1", "Secret"),
            Self::Pod => ("v1", "Pod"),
            Self::Lease => ("coordination.k8s.io/v1", "Lease"),
            Self::Role => ("rbac.authorization.k8s.io/v1", "Role"),
            Self::Deployment => ("apps/v1", "Deployment"),
            Self::Widget => ("diff.example.com/v1", "Widget"),
        }
    }

    pub(crate) fn has_status(self) -> bool {
        matches!(self, Self::Deployment | Self::Pod | Self::Widget)
    }

    pub(crate) fn has_scale(self) -> bool {
        matches!(self, Self::Deployment | Self::Widget)
    }
}

pub(crate) struct Script<'a> {
    pub(crate) random: Rng,
    pub(crate) requests: Vec<Request>,
    /// Objects that may be there, and the last request that was answered with them.
    known: Vec<(Kind, String, usize)>,
    templates: &'a Templates,
}

/// Ends after a second: whatever is to come is there by then.
fn watch(kind: Kind) -> Request {
    Request::get(kind.collection()).query("watch", "true").query("timeoutSeconds", "1")
}

impl Script<'_> {
    fn draw(&mut self) {
        match self.random.u32(..112) {
            0..25 => self.create(),
            25..38 => self.patch(),
            38..46 => self.apply(),
            46..56 => self.update(),
            56..60 => self.status_or_scale(),
            60..67 => self.get(),
            67..82 => self.list(),
            82..90 => self.delete(),
            90..92 => self.delete_collection(),
            92..95 => self.short_watch(),
            95..100 => self.nonsense(),
            _ => self.rarer(),
        }
    }

    pub(crate) fn kind(&mut self) -> Kind {
        KINDS[self.random.usize(..KINDS.len())]
    }

    /// Something that may be there, or not.
    pub(crate) fn target(&mut self) -> (Kind, String, usize) {
        if self.known.is_empty() || self.random.u32(..12) == 0 {
            return (self.kind(), self.name(), 0);
        }
        // Mostly something recent.
        let recent = self.random.usize(..self.known.len().min(4));
        self.known[self.known.len() - 1 - recent].clone()
    }

    pub(crate) fn name(&mut self) -> String {
        ["a", "b", "c", "web", "x.y", "n-1"][self.random.usize(..6)].to_owned()
    }

    /// Adds a request that is answered with an object, if all is well.
    pub(crate) fn push_for(&mut self, kind: Kind, name: &str, request: Request) {
        self.known.retain(|(known_kind, known, _)| (*known_kind, known.as_str()) != (kind, name));
        self.known.push((kind, name.to_owned(), self.requests.len()));
        self.requests.push(request);
    }

    pub(crate) fn object(&mut self, kind: Kind, name: &str) -> Value {
        let (api_version, kind_name) = kind.types();
        let mut object =
            json!({ "apiVersion": api_version, "kind": kind_name, "metadata": { "name": name } });
        if self.random.bool() {
            object["metadata"]["labels"] = json!({ "tier": self.tier(), "app": "shop" });
        }
        if self.random.u32(..8) == 0 {
            object["metadata"]["finalizers"] = json!(["diff.example.com/hold"]);
        }
        if self.random.u32(..6) == 0 {
            object["metadata"]["annotations"] = json!({ "note": self.word() });
        }
        match kind {
            Kind::ConfigMap => object["data"] = json!({ "value": self.word(), "other": self.word() }),
            Kind::Secret => {
                object["type"] = "Opaque".into();
                if self.random.bool() {
                    object["stringData"] = json!({ "password": self.word() });
                } else {
                    object["data"] = json!({ "password": "aGVsbG8=" });
                }
            }
            Kind::Lease => {
                object["spec"] =
                    json!({ "holderIdentity": self.word(), "leaseDurationSeconds": self.random.u32(1..60) });
            }
            Kind::Role => {
                object["rules"] =
                    json!([{ "apiGroups": [""], "resources": [self.word()], "verbs": ["get", "list"] }]);
            }
            Kind::Deployment => {
                object["spec"] = self.templates.deployment["spec"].clone();
                object["spec"]["replicas"] = self.random.u32(..5).into();
            }
            Kind::Pod => {
                object["spec"] = self.templates.pod["spec"].clone();
                object["spec"]["containers"][0]["image"] = format!("nginx:{}", self.random.u32(1..4)).into();
            }
            Kind::Widget => {
                object["spec"] = json!({
                    "size": self.random.u32(..5), "replicas": self.random.u32(..5),
                    "parts": [{ "name": "a", "count": self.random.u32(..3) }, { "name": "b", "count": 1 }],
                    "tags": ["x", "y"],
                });
            }
        }
        object
    }

    fn tier(&mut self) -> &'static str {
        ["web", "db", "cache"][self.random.usize(..3)]
    }

    fn word(&mut self) -> String {
        ["red", "green", "blue", "ä \"quoted\"", "multi\nline", ""][self.random.usize(..6)].to_owned()
    }

    fn create(&mut self) {
        let (kind, name) = (self.kind(), self.name());
        let mut object = self.object(kind, &name);
        let mut request = Request::new(Method::POST, kind.collection());
        match self.random.u32(..24) {
            0 => object["metadata"]["name"] = "Not_A Name".into(),
            1 => {
                // The number decides where it is in lists, whatever the server adds.
                let prefix = format!("made-{:02}-", self.requests.len());
                object["metadata"] = json!({ "generateName": prefix });
            }
            2 => object["metadata"]["namespace"] = "elsewhere".into(),
            3 => object["metadata"] = json!({}),
            4 => object["metadata"]["resourceVersion"] = "5".into(),
            5 => object["kind"] = "Other".into(),
            6 => object["apiVersion"] = "other/v1".into(),
            7 => {
                object["unknown"] = 1.into();
                request = request.query("fieldValidation", "Strict");
            }
            8 => request = request.query("dryRun", "All"),
            9 => request = request.query("dryRun", "Some"),
            10 => request = request.query("fieldManager", "somebody"),
            11 => object["metadata"]["labels"] = json!({ "not valid!": "x" }),
            12 => {
                request.content_type = "application/xml";
            }
            13 => {
                request.body = Some("{\"kind\":".to_owned());
                self.requests.push(request);
                return;
            }
            14 => object["metadata"]["uid"] = "mine".into(),
            15 => {
                object["metadata"]["ownerReferences"] =
                    json!([{ "apiVersion": "v1", "kind": "Node", "name": "n" }])
            }
            _ => {}
        }
        self.push_for(kind, &name, request.body(&object));
    }

    fn update(&mut self) {
        let (kind, name, last) = self.target();
        let mut object = self.object(kind, &name);
        let request = Request::new(Method::PUT, format!("{}/{name}", kind.collection()));
        match self.random.u32(..10) {
            0 => object["metadata"]["resourceVersion"] = "1".into(),
            1 => {}
            2 => object["metadata"]["name"] = "another".into(),
            3 => object["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000".into(),
            4 => object["metadata"]["resourceVersion"] = "many".into(),
            5 => object["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z".into(),
            _ => object["metadata"]["resourceVersion"] = format!("{{rv:{last}}}").into(),
        }
        self.push_for(kind, &name, request.body(&object));
    }

    fn patch(&mut self) {
        let (kind, name, last) = self.target();
        let mut request = Request::new(Method::PATCH, format!("{}/{name}", kind.collection()));
        if self.random.u32(..4) == 0 {
            request = request.query("fieldManager", ["one", "two"][self.random.usize(..2)]);
        }
        request.content_type = [
            "application/merge-patch+json",
            "application/json-patch+json",
            "application/strategic-merge-patch+json",
        ][self.random.usize(..3)];
        let body = match (request.content_type, self.random.u32(..12)) {
            (_, 0) => json!({ "metadata": { "resourceVersion": "1" } }),
            ("application/json-patch+json", 1) => {
                json!([{ "op": "test", "path": "/metadata/name", "value": "zzz" }])
            }
            ("application/json-patch+json", 2) => {
                json!([{ "op": "remove", "path": "/metadata/labels/absent" }])
            }
            ("application/json-patch+json", 3) => json!({ "op": "add" }),
            ("application/json-patch+json", _) => json!([
                { "op": "add", "path": "/metadata/annotations", "value": { "patched": self.word() } },
                { "op": "test", "path": "/metadata/name", "value": name },
            ]),
            (_, 1) => {
                json!({ "metadata": { "resourceVersion": format!("{{rv:{last}}}"), "labels": { "tier": "new" } } })
            }
            (_, 2) => json!({ "metadata": { "finalizers": null } }),
            (_, 3) => json!({ "metadata": { "labels": null } }),
            (_, 4) => json!({ "metadata": { "name": "another" } }),
            (_, 5) => json!([]),
            ("application/strategic-merge-patch+json", _) if kind == Kind::Pod => json!({ "spec": {
                "containers": [{ "name": "web", "image": format!("nginx:{}", self.random.u32(1..6)) }],
            } }),
            ("application/strategic-merge-patch+json", _) if kind == Kind::Deployment => {
                let container = [
                    json!({ "name": "web", "env": [{ "name": "A", "value": self.word() }] }),
                    json!({ "name": "web", "env": [{ "$patch": "delete", "name": "A" }] }),
                    json!({ "name": "web", "ports": [{ "containerPort": 80, "protocol": "TCP", "name": "http" }] }),
                ][self.random.usize(..3)]
                .clone();
                json!({ "spec": { "template": { "spec": { "containers": [container] } } } })
            }
            (_, _) => match kind {
                Kind::ConfigMap => json!({ "data": { "value": self.word(), "other": null } }),
                Kind::Secret => json!({ "stringData": { "password": self.word() } }),
                Kind::Lease => json!({ "spec": { "holderIdentity": self.word() } }),
                Kind::Role => json!({ "rules": null }),
                Kind::Pod => json!({ "metadata": { "labels": { "tier": self.tier() } } }),
                Kind::Deployment => {
                    json!({ "spec": { "replicas": self.random.u32(..9), "paused": self.random.bool() } })
                }
                Kind::Widget => {
                    json!({ "spec": { "size": self.random.u32(..9), "dropped": 1 }, "status": { "ready": 5 } })
                }
            },
        };
        self.push_for(kind, &name, request.body(&body));
    }

    fn apply(&mut self) {
        let (kind, name, _) = self.target();
        let mut object = self.object(kind, &name);
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("finalizers");
        }
        match self.random.u32(..10) {
            0 => {
                object["metadata"]["managedFields"] = json!([]);
            }
            1 => object["metadata"]["name"] = "another".into(),
            2 => {
                object.as_object_mut().map(|object| object.remove("kind"));
            }
            _ => {}
        }
        let mut request = Request::new(Method::PATCH, format!("{}/{name}", kind.collection()));
        request.content_type = "application/apply-patch+yaml";
        if self.random.u32(..12) > 0 {
            request = request.query("fieldManager", ["one", "two", "three"][self.random.usize(..3)]);
        }
        if self.random.bool() {
            request = request.query("force", "true");
        }
        self.push_for(kind, &name, request.body(&object));
    }

    fn status_or_scale(&mut self) {
        let (kind, name, _) = self.target();
        let path = format!("{}/{name}", kind.collection());
        if kind.has_scale() && self.random.bool() {
            let mut request = Request::new(Method::PATCH, format!("{path}/scale"));
            request.content_type = "application/merge-patch+json";
            self.requests.push(request.body(&json!({ "spec": { "replicas": self.random.u32(..9) } })));
            self.requests.push(Request::get(format!("{path}/scale")));
        } else if kind.has_status() {
            let mut request = Request::new(Method::PATCH, format!("{path}/status"));
            request.content_type = "application/merge-patch+json";
            let status = match kind {
                Kind::Deployment => json!({ "replicas": self.random.u32(..5), "observedGeneration": 1 }),
                Kind::Pod => json!({ "phase": "Running", "message": self.word() }),
                _ => json!({ "ready": self.random.u32(..5) }),
            };
            let body = json!({ "metadata": { "labels": { "by": "status" } }, "spec": { "paused": true }, "status": status });
            self.push_for(kind, &name, request.body(&body));
        } else {
            self.requests.push(Request::get(format!("{path}/status")));
        }
    }

    fn get(&mut self) {
        let (kind, name, _) = self.target();
        let mut request = Request::get(format!("{}/{name}", kind.collection()));
        request.accept = self.accept(false);
        if self.random.u32(..6) == 0 {
            request = request.query("resourceVersion", self.version());
        }
        self.requests.push(request);
    }

    fn accept(&mut self, list: bool) -> &'static str {
        match self.random.u32(..10) {
            0 | 1 => "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            2 if list => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            2 => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            3 => "application/vnd.example,application/json;q=0.5",
            4 => "text/html",
            _ => "application/json",
        }
    }

    fn version(&mut self) -> String {
        let last = self.random.usize(..self.requests.len());
        match self.random.u32(..8) {
            0 => String::new(),
            1 => "0".to_owned(),
            2 => "many".to_owned(),
            3 => "-1".to_owned(),
            _ => format!("{{rv:{last}}}"),
        }
    }

    fn list(&mut self) {
        let kind = self.kind();
        let mut request = Request::get(kind.collection());
        request.accept = self.accept(true);
        if self.random.u32(..3) == 0 {
            let selector = [
                "tier=web",
                "tier in (web,db)",
                "tier!=web",
                "!tier",
                "tier notin (web)",
                "app",
                "tier=",
                "a b",
                "tier in web",
            ][self.random.usize(..9)];
            request = request.query("labelSelector", selector);
        }
        if self.random.u32(..4) == 0 {
            let selector = [
                "metadata.name=a",
                "metadata.name!=a",
                "spec.nothing=1",
                "metadata.namespace={ns}",
                "status.phase=Running",
            ][self.random.usize(..5)];
            request = request.query("fieldSelector", selector);
        }
        if self.random.u32(..3) == 0 {
            request = request.query("resourceVersion", self.version());
        }
        if self.random.u32(..4) == 0 {
            let matching = ["Exact", "NotOlderThan", "Other"][self.random.usize(..3)];
            request = request.query("resourceVersionMatch", matching);
        }
        let pages = self.random.u32(..3) == 0;
        if pages {
            request = request.query("limit", ["1", "2", "0", "-1", "x"][self.random.usize(..5)]);
        }
        let at = self.requests.len();
        self.requests.push(request.clone());
        if pages {
            request.query.retain(|(name, _)| !name.starts_with("resourceVersion"));
            self.requests.push(request.query("continue", format!("{{continue:{at}}}")));
        }
    }

    fn delete(&mut self) {
        let (kind, name, last) = self.target();
        let request = Request::new(Method::DELETE, format!("{}/{name}", kind.collection()));
        // Pods of no node are gone at once either way, but it takes a kubelet to tell for the others.
        let mut options = json!({ "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0 });
        match self.random.u32(..10) {
            0 => options["preconditions"] = json!({ "uid": "00000000-0000-0000-0000-000000000000" }),
            1 => options["preconditions"] = json!({ "resourceVersion": "1" }),
            2 => options["preconditions"] = json!({ "uid": format!("{{uid:{last}}}") }),
            3 => options["propagationPolicy"] = "Foreground".into(),
            4 => options["propagationPolicy"] = "Orphan".into(),
            5 => options["propagationPolicy"] = "Sideways".into(),
            6 => options["dryRun"] = json!(["All"]),
            _ => {}
        }
        self.requests.push(request.body(&options));
    }

    fn delete_collection(&mut self) {
        let kind = self.kind();
        let request = Request::new(Method::DELETE, kind.collection());
        let request = request.query("labelSelector", format!("tier={}", self.tier()));
        self.requests.push(request.body(&json!({ "gracePeriodSeconds": 0 })));
    }

    fn short_watch(&mut self) {
        let kind = self.kind();
        let mut request = watch(kind);
        request.accept = match self.random.u32(..5) {
            0 => "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            1 => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            _ => "application/json",
        };
        match self.random.u32(..8) {
            0 => {
                request = request
                    .query("sendInitialEvents", "true")
                    .query("resourceVersionMatch", "NotOlderThan")
                    .query("allowWatchBookmarks", "true");
            }
            1 => request = request.query("sendInitialEvents", "true"),
            2 => request = request.query("resourceVersionMatch", "Exact"),
            3 => request = request.query("resourceVersion", "many"),
            4 => request = request.query("labelSelector", "tier=web").query("resourceVersion", "{rv:0}"),
            5 => {
                request = request.query("fieldSelector", "metadata.name=a").query("resourceVersion", "{rv:0}")
            }
            6 => request = request.query("resourceVersion", "0"),
            _ => {
                let last = self.random.usize(..self.requests.len());
                request = request.query("resourceVersion", format!("{{rv:{last}}}"));
            }
        }
        self.requests.push(request);
    }

    fn nonsense(&mut self) {
        let kind = self.kind();
        let name = self.name();
        let request = match self.random.u32(..10) {
            0 => Request::get("/api/v1/namespaces/{ns}/nothings"),
            1 => Request::get("/apis/nothing.example.com/v1/things"),
            2 => Request::new(Method::POST, format!("{}/{name}", kind.collection())).body(&json!({})),
            3 => Request::new(Method::PUT, kind.collection()).body(&json!({})),
            4 => Request::get(format!("{}/{name}/nothing", kind.collection())),
            5 => {
                let mut request = Request::new(Method::PATCH, format!("{}/{name}", kind.collection()));
                request.content_type = "text/plain";
                request.body(&json!({}))
            }
            6 => Request::get("/apis/apps"),
            7 => Request::get("/nothing"),
            8 => Request::get("/api/v1/namespaces/not-there/configmaps"),
            _ => Request::get("/api/v1/namespaces/{ns}"),
        };
        self.requests.push(request);
    }
}
