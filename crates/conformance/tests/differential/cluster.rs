//! Scripts about the server itself: what it says that it serves, definitions of custom resources, namespaces that end.

use fastrand::Rng;
use http::Method;
use serde_json::{Value, json};

use crate::request::Request;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The definition of a script, and where it is served from.
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.{ns}.example.com";
const GROUP: &str = "/apis/{ns}.example.com";
/// The namespace that ends.
const NAMESPACE: &str = "/api/v1/namespaces/{ns}-life";

/// A script for a namespace and a group of its own.
pub(crate) fn script(seed: u64) -> Vec<Request> {
    let mut script = Script { random: Rng::with_seed(seed), requests: Vec::new(), namespaced: true };
    script.namespaced = script.random.u32(..4) > 0;
    for _ in 0..script.random.usize(1..5) {
        script.ask();
    }
    script.namespace();
    script.define();
    script.undefine();
    script.requests
}

struct Script {
    random: Rng,
    requests: Vec<Request>,
    /// Whether what is defined is.
    namespaced: bool,
}

fn post(path: &str, body: &Value) -> Request {
    Request::new(Method::POST, path).body(body)
}

fn merge(path: &str, body: &Value) -> Request {
    let mut request = Request::new(Method::PATCH, path).body(body);
    request.content_type = "application/merge-patch+json";
    request
}

impl Script {
    fn push(&mut self, request: Request) {
        self.requests.push(request);
    }

    /// Asks for everything that the server serves.
    fn ask(&mut self) {
        let path = [
            "/api",
            "/apis",
            "/api/v1",
            "/apis/apps/v1",
            "/apis/apps",
            "/apis/batch/v1",
            "/apis/coordination.k8s.io/v1",
            "/apis/rbac.authorization.k8s.io/v1",
            "/apis/nothing.example.com",
            "/apis/nothing.example.com/v1",
            "/apis/apps/v9",
            "/api/v2",
            "/version",
            "/healthz",
            "/readyz/ping",
            "/apis/diff.example.com",
            "/apis/diff.example.com/v1",
            "/apis/apiextensions.k8s.io/v1",
            "/api/",
            "/apis/policy/v1",
            "/apis/networking.k8s.io/v1",
            "/apis/discovery.k8s.io/v1",
        ];
        let mut request = Request::get(path[self.random.usize(..path.len())]);
        request.accept = match self.random.u32(..8) {
            0..3 => AGGREGATED,
            3 => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
            4 => "text/html",
            _ => "application/json",
        };
        if self.random.u32(..8) == 0 {
            request.method = [Method::POST, Method::PUT, Method::DELETE][self.random.usize(..3)].clone();
        }
        self.push(request);
    }

    /// The life of a namespace, which something in it keeps from going.
    fn namespace(&mut self) {
        let mut namespace = json!({ "metadata": { "name": "{ns}-life", "labels": { "tier": "web" } } });
        match self.random.u32(..6) {
            0 => namespace["metadata"]["labels"] = json!({ "kubernetes.io/metadata.name": "other" }),
            1 => namespace["spec"] = json!({ "finalizers": ["example.com/mine"] }),
            2 => self.push(post("/api/v1/namespaces", &json!({ "metadata": { "name": "with.dots" } }))),
            _ => {}
        }
        self.push(post("/api/v1/namespaces", &namespace));
        let held = json!({ "metadata": { "name": "held", "finalizers": ["diff.example.com/hold"] } });
        self.push(post(&format!("{NAMESPACE}/configmaps"), &held));
        for _ in 0..self.random.usize(..4) {
            self.change_namespace();
        }
        let mut options = json!({});
        if self.random.u32(..4) == 0 {
            options = json!({ "dryRun": ["All"] });
        }
        self.push(Request::new(Method::DELETE, NAMESPACE).body(&options));
        for _ in 0..self.random.usize(1..5) {
            match self.random.u32(..5) {
                0 => self.push(post(
                    &format!("{NAMESPACE}/configmaps"),
                    &json!({ "metadata": { "name": "late" } }),
                )),
                1 => self.push(Request::get(NAMESPACE)),
                2 => self.push(Request::new(Method::DELETE, NAMESPACE)),
                _ => self.change_namespace(),
            }
        }
        let mut list = Request::get("/api/v1/namespaces").query("fieldSelector", "metadata.name={ns}-life");
        if self.random.bool() {
            list.accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        }
        self.push(list);
        let at = self.requests.len();
        self.push(Request::get(NAMESPACE));
        let metadata = json!({ "name": "{ns}-life", "resourceVersion": format!("{{rv:{at}}}") });
        let body = json!({ "kind": "Namespace", "apiVersion": "v1", "metadata": metadata, "spec": {} });
        self.push(Request::new(Method::PUT, format!("{NAMESPACE}/finalize")).body(&body));
        self.push(Request::get(NAMESPACE));
        self.push(
            post(&format!("{NAMESPACE}/configmaps"), &json!({ "metadata": { "name": "later" } })).until(404),
        );
    }

    fn change_namespace(&mut self) {
        let request = match self.random.u32(..6) {
            0 => merge(NAMESPACE, &json!({ "metadata": { "labels": { "tier": "db" } } })),
            1 => merge(NAMESPACE, &json!({ "metadata": { "labels": null } })),
            2 => merge(NAMESPACE, &json!({ "spec": { "finalizers": [] } })),
            3 => merge(&format!("{NAMESPACE}/status"), &json!({ "status": { "conditions": [] } })),
            4 => merge(NAMESPACE, &json!({ "metadata": { "annotations": { "note": "x" } } })),
            _ => Request::new(Method::PUT, NAMESPACE)
                .body(&json!({ "metadata": { "name": "{ns}-life", "labels": { "a": "b" } } })),
        };
        self.push(request);
    }

    /// A definition, and objects of it.
    fn define(&mut self) {
        for _ in 0..self.random.usize(..3) {
            let wrong = self.wrong();
            self.push(post(DEFINITIONS, &wrong));
        }
        let definition = self.definition();
        self.push(post(DEFINITIONS, &definition));
        self.push(Request::get(self.gadgets()).until(200));
        self.push(Request::get(format!("{GROUP}/v1")).until(200));
        for _ in 0..self.random.usize(2..8) {
            self.use_it();
        }
        if self.random.bool() {
            self.redefine();
        }
        for _ in 0..self.random.usize(..4) {
            self.use_it();
        }
    }

    fn gadgets(&self) -> String {
        let namespace = if self.namespaced { "namespaces/{ns}/" } else { "" };
        format!("{GROUP}/v1/{namespace}gadgets")
    }

    fn definition(&mut self) -> Value {
        let mut version = json!({
            "name": "v1", "served": true, "storage": true,
            "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "spec": { "type": "object", "properties": {
                    "size": { "type": "integer", "minimum": 0, "maximum": 100 },
                    "color": { "type": "string", "enum": ["red", "blue"] },
                    "mode": { "type": "string", "default": "fast" },
                } },
                "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            } } },
        });
        if self.random.bool() {
            version["subresources"] = json!({ "status": {} });
        }
        if self.random.bool() {
            version["additionalPrinterColumns"] = json!([
                { "name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "How big." },
                { "name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1 },
                { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
            ]);
        }
        if self.random.u32(..3) == 0 {
            version["selectableFields"] = json!([{ "jsonPath": ".spec.color" }]);
        }
        let mut names = json!({ "plural": "gadgets", "kind": "Gadget" });
        if self.random.bool() {
            names["shortNames"] = json!(["gd"]);
            names["categories"] = json!(["all", "things"]);
        }
        if self.random.bool() {
            names["singular"] = "gadget".into();
            names["listKind"] = "GadgetList".into();
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "gadgets.{ns}.example.com" },
            "spec": {
                "group": "{ns}.example.com",
                "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
                "names": names,
                "versions": [version],
            },
        })
    }

    fn wrong(&mut self) -> Value {
        let mut wrong = self.definition();
        let spec = &mut wrong["spec"];
        match self.random.u32(..8) {
            0 => wrong["metadata"]["name"] = "other.{ns}.example.com".into(),
            1 => spec["scope"] = "Everywhere".into(),
            2 => spec["versions"][0]["storage"] = false.into(),
            3 => spec["names"]["kind"] = "".into(),
            4 => spec["names"]["plural"] = "".into(),
            5 => spec["scope"] = Value::Null,
            6 => spec["group"] = "".into(),
            _ => spec["versions"][0]["schema"]["openAPIV3Schema"]["type"] = "".into(),
        }
        wrong
    }

    fn use_it(&mut self) {
        let gadgets = self.gadgets();
        let name = ["a", "b"][self.random.usize(..2)];
        let color = ["red", "blue", "green"][self.random.usize(..3)];
        // One thing that is wrong at a time: of several, the real server's order is any.
        let size = if color == "green" { 7 } else { self.random.i32(-5..120) };
        let mut gadget = json!({
            "apiVersion": "{ns}.example.com/v1", "kind": "Gadget", "metadata": { "name": name },
            "spec": { "size": size, "color": color },
        });
        let request = match self.random.u32(..14) {
            0 => Request::get(DEFINITION),
            1 => Request::get(GROUP),
            2 => Request::get(format!("{GROUP}/v1")),
            3..7 => {
                match self.random.u32(..5) {
                    0 => gadget["spec"]["unknown"] = 1.into(),
                    1 => gadget["status"] = json!({ "anything": [1] }),
                    2 if color != "green" => gadget["spec"]["size"] = "big".into(),
                    _ => {}
                }
                post(&gadgets, &gadget)
            }
            7 => {
                let mut list = Request::get(&gadgets);
                list.accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
                list
            }
            8 => Request::get(&gadgets).query("fieldSelector", "spec.color=red"),
            9 => merge(&format!("{gadgets}/{name}/status"), &json!({ "status": { "done": true } })),
            10 => Request::get(format!("{gadgets}/{name}/scale")),
            11 => {
                merge(&format!("{gadgets}/{name}"), &json!({ "spec": { "size": self.random.i32(-5..120) } }))
            }
            12 => Request::new(Method::DELETE, format!("{gadgets}/{name}")),
            _ => Request::get(format!("{gadgets}/{name}")),
        };
        self.push(request);
    }

    fn redefine(&mut self) {
        let at = self.requests.len();
        self.push(Request::get(DEFINITION));
        match self.random.u32(..6) {
            0 => self.push(merge(DEFINITION, &json!({ "spec": { "scope": "Cluster" } }))),
            1 => self.push(merge(DEFINITION, &json!({ "metadata": { "labels": { "a": "b" } } }))),
            2 => self.push(merge(DEFINITION, &json!({ "spec": { "names": { "kind": "Other" } } }))),
            3 => self.push(merge(DEFINITION, &json!({ "spec": { "versions": [] } }))),
            4 => self.push(merge(DEFINITION, &json!({ "spec": { "group": "other.example.com" } }))),
            _ => {
                let mut definition = self.definition();
                definition["metadata"]["resourceVersion"] = format!("{{rv:{at}}}").into();
                let mut second = definition["spec"]["versions"][0].clone();
                second["name"] = "v2".into();
                second["storage"] = false.into();
                if let Some(versions) = definition["spec"]["versions"].as_array_mut() {
                    versions.push(second);
                }
                self.push(Request::new(Method::PUT, DEFINITION).body(&definition));
                self.push(Request::get(self.gadgets().replace("/v1/", "/v2/")).until(200));
                self.push(Request::get(GROUP));
            }
        }
        self.push(Request::get(DEFINITION));
    }

    /// The end of a definition, with all that there is of it.
    fn undefine(&mut self) {
        if self.random.u32(..3) == 0 {
            self.push(Request::new(Method::DELETE, DEFINITION).body(&json!({ "dryRun": ["All"] })));
        }
        self.push(Request::new(Method::DELETE, DEFINITION));
        self.push(Request::get(DEFINITION).until(404));
        self.push(Request::get(self.gadgets()).until(404));
    }
}
