//! The events of controllers.

use serde_json::{Value, json};

/// A definition of `events.k8s.io/v1`, in which controllers record events: for the objects of a server or of a rehearsal.
///
/// Events are a custom resource then, without validation and apart from those of the core group. A real server has one store
/// for both.
pub fn events() -> Value {
    let column = |name, path| json!({ "name": name, "type": "string", "jsonPath": path });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "events.events.k8s.io",
            "annotations": { "api-approved.kubernetes.io": "unapproved, for tests" },
        },
        "spec": {
            "group": "events.k8s.io", "scope": "Namespaced",
            "names": { "plural": "events", "singular": "event", "kind": "Event", "listKind": "EventList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
                "additionalPrinterColumns": [
                    column("Type", ".type"), column("Reason", ".reason"), column("Object", ".regarding.name"),
                    column("Note", ".note"),
                ],
            }],
        },
    })
}
