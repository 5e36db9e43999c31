//! Access control and admission: roles, bindings, certificates, webhooks.

use serde_json::Value;

use super::row::Row;
use super::time;

pub(super) fn cells(resource: &str) -> Option<fn(&Row<'_>) -> Vec<Value>> {
    Some(match resource {
        "rolebindings.rbac.authorization.k8s.io" | "clusterrolebindings.rbac.authorization.k8s.io" => binding,
        "certificatesigningrequests.certificates.k8s.io" => signing_request,
        "clustertrustbundles.certificates.k8s.io" => trust_bundle,
        "podcertificaterequests.certificates.k8s.io" => pod_certificate,
        "mutatingwebhookconfigurations.admissionregistration.k8s.io"
        | "validatingwebhookconfigurations.admissionregistration.k8s.io" => webhooks,
        "validatingadmissionpolicies.admissionregistration.k8s.io" => |row| policy(row, "/spec/validations"),
        "mutatingadmissionpolicies.admissionregistration.k8s.io" => |row| policy(row, "/spec/mutations"),
        "validatingadmissionpolicybindings.admissionregistration.k8s.io"
        | "mutatingadmissionpolicybindings.admissionregistration.k8s.io" => policy_binding,
        _ => return None,
    })
}

fn binding(row: &Row<'_>) -> Vec<Value> {
    let (mut users, mut groups, mut accounts) = (Vec::new(), Vec::new(), Vec::new());
    for subject in row.list("/subjects") {
        let name = subject.text("/name").to_string();
        match subject.text("/kind") {
            "User" => users.push(name),
            "Group" => groups.push(name),
            "ServiceAccount" => accounts.push(format!("{}/{name}", subject.text("/namespace"))),
            _ => {}
        }
    }
    vec![
        row.name(),
        format!("{}/{}", row.text("/roleRef/kind"), row.text("/roleRef/name")).into(),
        row.age(),
        users.join(", ").into(),
        groups.join(", ").into(),
        accounts.join(", ").into(),
    ]
}

fn trust_bundle(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.text_or("/spec/signerName", "<none>").into()]
}

fn pod_certificate(row: &Row<'_>) -> Vec<Value> {
    // One of them, at most.
    let state = ["Issued", "Denied", "Failed"].into_iter().find(|kind| row.condition(kind).is_some());
    vec![
        row.name(),
        row.text("/spec/podName").into(),
        row.text("/spec/serviceAccountName").into(),
        row.text("/spec/nodeName").into(),
        row.text("/spec/signerName").into(),
        state.unwrap_or("Pending").into(),
        row.labels("/spec/unverifiedUserAnnotations").into(),
    ]
}

fn signing_request(row: &Row<'_>) -> Vec<Value> {
    let is = |kind: &str| row.condition(kind).is_some();
    let mut status = match () {
        () if is("Denied") => "Denied",
        () if is("Approved") => "Approved",
        () => "Pending",
    }
    .to_string();
    if is("Failed") {
        status += ",Failed";
    }
    if !row.text("/status/certificate").is_empty() {
        status += ",Issued";
    }
    let duration = row
        .get("/spec/expirationSeconds")
        .and_then(Value::as_u64)
        .map_or_else(|| "<none>".to_string(), |seconds| time::human(std::time::Duration::from_secs(seconds)));
    vec![
        row.name(),
        row.age(),
        row.text_or("/spec/signerName", "<none>").into(),
        row.text("/spec/username").into(),
        duration.into(),
        status.into(),
    ]
}

fn webhooks(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.count("/webhooks").into(), row.age()]
}

fn policy(row: &Row<'_>, rules: &str) -> Vec<Value> {
    let parameters = row.get("/spec/paramKind").map_or_else(
        || "<unset>".to_string(),
        |_| format!("{}/{}", row.text("/spec/paramKind/apiVersion"), row.text("/spec/paramKind/kind")),
    );
    vec![row.name(), row.count(rules).into(), parameters.into(), row.age()]
}

fn policy_binding(row: &Row<'_>) -> Vec<Value> {
    let name = row.text("/spec/paramRef/name");
    // Without a namespace it may be a cluster-wide object or one of any namespace.
    let parameters = match row.text_or("/spec/paramRef/namespace", "*") {
        _ if name.is_empty() => "<unset>".to_string(),
        namespace => format!("{namespace}/{name}"),
    };
    vec![row.name(), row.text("/spec/policyName").into(), parameters.into(), row.age()]
}
