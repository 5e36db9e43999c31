//! The owners of fields: `managedFields` as the controller and the kubelet leave them, from the object's own text.

use serde_json::{Map, Value, json};

use super::Draw;
use super::template::Hole;

/// Lists whose items are owned one by one, with the members that identify an item.
const KEYS: [(&str, &[&str]); 9] = [
    ("containers", &["name"]),
    ("initContainers", &["name"]),
    ("env", &["name"]),
    ("ports", &["containerPort", "protocol"]),
    ("volumeMounts", &["mountPath"]),
    ("volumes", &["name"]),
    ("conditions", &["type"]),
    ("podIPs", &["ip"]),
    ("hostIPs", &["ip"]),
];

pub(super) fn managed_fields(
    draw: &Draw,
    labels: &str,
    annotations: &str,
    spec: &str,
    status: &str,
) -> String {
    // The holes are inside JSON strings, except for the count of restarts.
    let parse = |text: &str| -> Value {
        let text = text.replace(&Hole::Restarts.to_string(), "0").replace('\u{1}', "\\u0001");
        serde_json::from_str(&text).unwrap_or_default()
    };
    let mut spec = parse(spec);
    if let Some(spec) = spec.as_object_mut() {
        // The scheduler's binding and admission set these, and neither leaves an entry.
        for field in ["nodeName", "tolerations", "priority", "preemptionPolicy"] {
            spec.remove(field);
        }
    }
    let metadata = json!({
        "generateName": "", "labels": parse(labels), "annotations": parse(annotations),
        "ownerReferences": [{ "uid": draw.owner_uid }],
    });
    let mut status = parse(status);
    if let Some(status) = status.as_object_mut() {
        status.remove("qosClass");
    }
    let controller = json!({ "f:metadata": fields("", &metadata), "f:spec": fields("", &spec) });
    let kubelet = json!({ "f:status": fields("", &status) });
    let text = format!(
        r#"[{{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"{}","fieldsType":"FieldsV1","fieldsV1":{controller}}},{{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"{}","fieldsType":"FieldsV1","fieldsV1":{kubelet},"subresource":"status"}}]"#,
        Hole::Time(0),
        Hole::Time(9),
    );
    // Holes in keys: in a JSON string within a JSON string.
    text.replace("\\\\u0001", "\u{1}").replace("\\u0001", "\u{1}")
}

fn fields(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let of = |(name, value): (&String, &Value)| {
                let mut inner = fields(name, value);
                if value.is_object() {
                    inner["."] = json!({});
                }
                (format!("f:{name}"), inner)
            };
            members.iter().map(of).collect()
        }
        Value::Array(items) => {
            let keys = KEYS.iter().find(|(list, _)| *list == name);
            keys.map_or_else(
                || json!({}),
                |(_, keys)| {
                    let mut out = Map::from_iter([(".".to_owned(), json!({}))]);
                    for item in items {
                        let key: Map<String, Value> =
                            keys.iter().map(|key| ((*key).to_owned(), item[*key].clone())).collect();
                        let mut of_item = fields("", item);
                        of_item["."] = json!({});
                        out.insert(format!("k:{}", Value::Object(key)), of_item);
                    }
                    Value::Object(out)
                },
            )
        }
        _ => json!({}),
    }
}
