//! Rarer requests of clients: other subresources, other options, other mistakes.

use http::Method;
use serde_json::{Value, json};

use crate::request::Request;
use crate::script::{Kind, Script};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

impl Script<'_> {
    pub(crate) fn rarer(&mut self) {
        match self.random.u32(..10) {
            0 => self.put_status_or_scale(),
            1 => self.delete_by_query(),
            2 => self.table(),
            3 => self.pod_action(),
            4 => self.apply_status(),
            5 => self.wrong_metadata(),
            6 => self.validated(),
            7 => self.immutable(),
            8 => self.wrong_deployment(),
            _ => self.pages(),
        }
    }

    fn put_status_or_scale(&mut self) {
        let (kind, name, last) = self.target();
        let path = format!("{}/{name}", kind.collection());
        let metadata = json!({ "name": name, "resourceVersion": format!("{{rv:{last}}}") });
        if kind.has_scale() && self.random.bool() {
            let mut scale =
                json!({ "metadata": { "name": name }, "spec": { "replicas": self.random.u32(..6) } });
            if self.random.bool() {
                scale["metadata"] = metadata;
            }
            if self.random.bool() {
                scale["kind"] = "Scale".into();
                scale["apiVersion"] = "autoscaling/v1".into();
            }
            self.requests.push(Request::new(Method::PUT, format!("{path}/scale")).body(&scale));
        } else {
            let mut object = self.object(kind, &name);
            object["metadata"]["resourceVersion"] = metadata["resourceVersion"].clone();
            object["status"] = match kind {
                Kind::Pod => {
                    json!({ "phase": "Running", "podIP": "10.0.0.7", "podIPs": [{ "ip": "10.0.0.7" }] })
                }
                Kind::Deployment => json!({ "replicas": 2, "readyReplicas": 1 }),
                _ => json!({ "ready": 2 }),
            };
            self.push_for(kind, &name, Request::new(Method::PUT, format!("{path}/status")).body(&object));
        }
    }

    fn delete_by_query(&mut self) {
        let (kind, name, _) = self.target();
        let mut request = Request::new(Method::DELETE, format!("{}/{name}", kind.collection()));
        request = request.query("gracePeriodSeconds", ["0", "-1", "x"][self.random.usize(..3)]);
        request = match self.random.u32(..4) {
            0 => request.query("propagationPolicy", "Background"),
            1 => request.query("dryRun", "All"),
            2 => request.query("orphanDependents", "true"),
            _ => request,
        };
        self.requests.push(request);
    }

    fn table(&mut self) {
        let kind = self.kind();
        let mut request = Request::get(kind.collection());
        request.accept = TABLE;
        request = request
            .query("includeObject", ["None", "Object", "Metadata", "Other", ""][self.random.usize(..5)]);
        self.requests.push(request);
    }

    fn pod_action(&mut self) {
        let name = self.name();
        let path = format!("{}/{name}", Kind::Pod.collection());
        let request = match self.random.u32(..3) {
            0 => {
                let eviction =
                    json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name } });
                Request::new(Method::POST, format!("{path}/eviction")).body(&eviction)
            }
            1 => {
                let target = json!({ "kind": "Node", "name": "node-1" });
                let binding = json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name }, "target": target });
                Request::new(Method::POST, format!("{path}/binding")).body(&binding)
            }
            _ => Request::get(format!("{path}/log")),
        };
        self.requests.push(request);
        self.requests.push(Request::get(path));
    }

    fn apply_status(&mut self) {
        let (kind, name, _) = self.target();
        let (api_version, kind_name) = kind.types();
        let status = if kind == Kind::Pod {
            json!({ "phase": "Failed" })
        } else {
            json!({ "replicas": 3, "ready": 1 })
        };
        let config = json!({
            "apiVersion": api_version, "kind": kind_name, "metadata": { "name": name }, "status": status,
        });
        let mut request = Request::new(Method::PATCH, format!("{}/{name}/status", kind.collection()));
        request.content_type = "application/apply-patch+yaml";
        request = request.query("fieldManager", "controller").query("force", "true");
        self.push_for(kind, &name, request.body(&config));
    }

    fn wrong_metadata(&mut self) {
        let (kind, name) = (self.kind(), self.name());
        let mut object = self.object(kind, &name);
        let metadata = &mut object["metadata"];
        match self.random.u32(..6) {
            0 => metadata["labels"] = json!({ "a": "not valid" }),
            1 => metadata["annotations"] = json!({ "not valid": "" }),
            2 => metadata["finalizers"] = json!(["nowhere"]),
            3 => metadata["labels"] = json!({ "a": 1 }),
            4 => metadata["generation"] = 7.into(),
            _ => metadata["labels"] = Value::Null,
        }
        self.push_for(kind, &name, Request::new(Method::POST, kind.collection()).body(&object));
    }

    fn validated(&mut self) {
        let (kind, name, _) = self.target();
        let mut request = Request::new(Method::PATCH, format!("{}/{name}", kind.collection()));
        request.content_type = "application/merge-patch+json";
        let how = ["Strict", "Ignore", "Warn", "Loud"][self.random.usize(..4)];
        let patch = json!({ "unknown": 1, "metadata": { "labels": { "by": "patch" } } });
        self.push_for(kind, &name, request.query("fieldValidation", how).body(&patch));
    }

    fn immutable(&mut self) {
        let kind = [Kind::ConfigMap, Kind::Secret][self.random.usize(..2)];
        let name = self.name();
        let mut request = Request::new(Method::PATCH, format!("{}/{name}", kind.collection()));
        request.content_type = "application/merge-patch+json";
        let patch = match self.random.u32(..3) {
            0 => json!({ "immutable": true }),
            1 => json!({ "immutable": null }),
            _ => json!({ "data": { "value": "bmV3" } }),
        };
        self.push_for(kind, &name, request.body(&patch));
    }

    fn wrong_deployment(&mut self) {
        let name = self.name();
        let mut object = self.object(Kind::Deployment, &name);
        let spec = &mut object["spec"];
        match self.random.u32(..4) {
            0 => spec["selector"] = json!({ "matchLabels": { "app": "other" } }),
            1 => spec["template"]["spec"]["containers"] = json!([]),
            2 => spec["selector"] = Value::Null,
            _ => spec["replicas"] = "many".into(),
        }
        let path = Kind::Deployment.collection();
        let request = match self.random.bool() {
            true => Request::new(Method::POST, path),
            false => Request::new(Method::PUT, format!("{path}/{name}")),
        };
        self.push_for(Kind::Deployment, &name, request.body(&object));
    }

    fn pages(&mut self) {
        let token = ["", "nonsense", "e30"];
        let request = Request::get(self.kind().collection()).query("limit", "2");
        self.requests.push(request.query("continue", token[self.random.usize(..3)]));
    }
}
