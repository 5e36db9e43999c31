//! All other kinds: configuration, events, leases, quotas, classes.

use serde_json::Value;

use super::row::Row;

pub(super) fn cells(resource: &str) -> Option<fn(&Row<'_>) -> Vec<Value>> {
    Some(match resource {
        "namespaces" => namespace,
        "configmaps" => config_map,
        "secrets" => secret,
        "serviceaccounts" => service_account,
        "resourcequotas" => resource_quota,
        "events" | "events.events.k8s.io" => event,
        "componentstatuses" => component_status,
        "leases.coordination.k8s.io" => lease,
        "priorityclasses.scheduling.k8s.io" => priority_class,
        "runtimeclasses.node.k8s.io" => runtime_class,
        "apiservices.apiregistration.k8s.io" => api_service,
        "flowschemas.flowcontrol.apiserver.k8s.io" => flow_schema,
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io" => priority_level,
        "deviceclasses.resource.k8s.io" | "resourceclaimtemplates.resource.k8s.io" => name_and_age,
        "resourceclaims.resource.k8s.io" => resource_claim,
        "resourceslices.resource.k8s.io" => resource_slice,
        "devicetaintrules.resource.k8s.io" => device_taint_rule,
        "storageversionmigrations.storagemigration.k8s.io" => migration,
        "customresourcedefinitions.apiextensions.k8s.io" => definition,
        _ => return None,
    })
}

fn name_and_age(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.age()]
}

fn namespace(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.text("/status/phase").into(), row.age()]
}

fn config_map(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), (row.count("/data") + row.count("/binaryData")).into(), row.age()]
}

fn secret(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.text("/type").into(), row.count("/data").into(), row.age()]
}

fn service_account(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.age()]
}

fn resource_quota(row: &Row<'_>) -> Vec<Value> {
    let hard = row.get("/status/hard").and_then(Value::as_object);
    let mut names: Vec<&String> = hard.into_iter().flatten().map(|(name, _)| name).collect();
    names.sort_unstable();
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for name in names {
        let escaped = name.replace('~', "~0").replace('/', "~1");
        let used = row.either(&format!("/status/used/{escaped}"), "0");
        let text = format!("{name}: {used}/{}", row.either(&format!("/status/hard/{escaped}"), "0"));
        if name.starts_with("limits.") { limits.push(text) } else { requests.push(text) }
    }
    vec![row.name(), requests.join(", ").into(), limits.join(", ").into(), row.age()]
}

/// Events of both groups: `events.k8s.io` has other names for the same members.
fn event(row: &Row<'_>) -> Vec<Value> {
    let has = |pointer: &str| row.time(pointer).is_some();
    let old = |name: &str, other: &str| if has(name) { row.since(name) } else { row.since(other) };
    let first = match has("/firstTimestamp") || has("/deprecatedFirstTimestamp") {
        true => old("/firstTimestamp", "/deprecatedFirstTimestamp"),
        false => row.since("/eventTime"),
    };
    let mut last = match has("/lastTimestamp") || has("/deprecatedLastTimestamp") {
        true => old("/lastTimestamp", "/deprecatedLastTimestamp"),
        false => first.clone(),
    };
    let mut count = row.number("/count").max(row.number("/deprecatedCount")).max(1);
    if row.get("/series").is_some() {
        last = row.since("/series/lastObservedTime");
        count = row.number("/series/count");
    }
    let about = if row.get("/regarding").is_some() { "/regarding" } else { "/involvedObject" };
    let kind = row.text(&format!("{about}/kind")).to_lowercase();
    let target = match row.text(&format!("{about}/name")) {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    vec![
        last.into(),
        row.text("/type").into(),
        row.text("/reason").into(),
        target.into(),
        row.text(&format!("{about}/fieldPath")).into(),
        source(row).into(),
        row.text_or("/message", row.text("/note")).trim().into(),
        first.into(),
        count.into(),
        row.name(),
    ]
}

fn source(row: &Row<'_>) -> String {
    let first = |pointers: [&str; 3]| pointers.into_iter().map(|it| row.text(it)).find(|it| !it.is_empty());
    let component = first([
        "/source/component",
        "/deprecatedSource/component",
        if row.get("/reportingController").is_some() {
            "/reportingController"
        } else {
            "/reportingComponent"
        },
    ]);
    match (
        component.unwrap_or_default(),
        first(["/source/host", "/deprecatedSource/host", "/reportingInstance"]),
    ) {
        (component, None) => component.to_string(),
        (component, Some(host)) => format!("{component}, {host}"),
    }
}

fn component_status(row: &Row<'_>) -> Vec<Value> {
    let condition = row.list("/conditions").find(|condition| condition.text("/type") == "Healthy");
    let (status, message, error) = condition.map_or(("Unknown", "", ""), |condition| {
        let status = if condition.text("/status") == "True" { "Healthy" } else { "Unhealthy" };
        (status, condition.text("/message"), condition.text("/error"))
    });
    vec![row.name(), status.into(), message.into(), error.into()]
}

fn lease(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.text("/spec/holderIdentity").into(), row.age()]
}

fn priority_class(row: &Row<'_>) -> Vec<Value> {
    vec![
        row.name(),
        row.number("/value").into(),
        row.flag("/globalDefault").into(),
        row.age(),
        row.text("/preemptionPolicy").into(),
    ]
}

fn runtime_class(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.text("/handler").into(), row.age()]
}

fn api_service(row: &Row<'_>) -> Vec<Value> {
    let service = row.get("/spec/service").map_or_else(
        || "Local".to_string(),
        |_| format!("{}/{}", row.text("/spec/service/namespace"), row.text("/spec/service/name")),
    );
    let available = row.condition("Available").map_or_else(
        || "Unknown".to_string(),
        |condition| match condition.text("/status") {
            "True" => "True".to_string(),
            status => format!("{status} ({})", condition.text("/reason")),
        },
    );
    vec![row.name(), service.into(), available.into(), row.age()]
}

fn flow_schema(row: &Row<'_>) -> Vec<Value> {
    vec![
        row.name(),
        row.text("/spec/priorityLevelConfiguration/name").into(),
        row.number("/spec/matchingPrecedence").into(),
        row.text_or("/spec/distinguisherMethod/type", "<none>").into(),
        row.age(),
        row.condition("Dangling").map_or("?", |condition| condition.text("/status")).into(),
    ]
}

fn priority_level(row: &Row<'_>) -> Vec<Value> {
    let number = |pointer: &str| row.get(pointer).cloned().unwrap_or_else(|| "<none>".into());
    let queuing = "/spec/limited/limitResponse/queuing";
    vec![
        row.name(),
        row.text("/spec/type").into(),
        number("/spec/limited/nominalConcurrencyShares"),
        number(&format!("{queuing}/queues")),
        number(&format!("{queuing}/handSize")),
        number(&format!("{queuing}/queueLengthLimit")),
        row.age(),
    ]
}

fn resource_claim(row: &Row<'_>) -> Vec<Value> {
    let mut state = Vec::new();
    if row.is_being_deleted() {
        state.push("deleted");
    }
    if row.get("/status/allocation").is_some() {
        state.push("allocated");
        if row.count("/status/reservedFor") > 0 {
            state.push("reserved");
        }
    } else if !row.is_being_deleted() {
        state.push("pending");
    }
    vec![row.name(), state.join(",").into(), row.age()]
}

fn resource_slice(row: &Row<'_>) -> Vec<Value> {
    let [node, driver, pool] =
        ["/spec/nodeName", "/spec/driver", "/spec/pool/name"].map(|it| row.text(it).into());
    vec![row.name(), node, driver, pool, row.age()]
}

fn device_taint_rule(row: &Row<'_>) -> Vec<Value> {
    let added =
        row.get("/spec/taint/timeAdded").map_or_else(String::new, |_| row.since("/spec/taint/timeAdded"));
    vec![
        row.name(),
        row.text("/spec/taint/key").into(),
        row.text("/spec/taint/value").into(),
        row.text("/spec/taint/effect").into(),
        added.into(),
        row.age(),
    ]
}

fn migration(row: &Row<'_>) -> Vec<Value> {
    let (group, resource) = (row.text("/spec/resource/group"), row.text("/spec/resource/resource"));
    let of = if group.is_empty() { resource.to_string() } else { format!("{resource}.{group}") };
    // The last of the conditions that say how far it is.
    let conditions = row.list("/status/conditions").filter(|condition| condition.text("/status") == "True");
    let mut states = conditions.map(|condition| condition.text("/type"));
    let state = states.rfind(|kind| matches!(*kind, "Running" | "Failed" | "Succeeded"));
    vec![row.name(), of.into(), state.unwrap_or("Unknown").into()]
}

fn definition(row: &Row<'_>) -> Vec<Value> {
    let served = row.list("/spec/versions").filter(|version| version.flag("/served"));
    let named = |version: Row<'_>| {
        let stored = if version.flag("/storage") { "(storage)" } else { "" };
        format!("{}{stored}", version.text("/name"))
    };
    let mut versions: Vec<String> = served.map(named).collect();
    versions.sort_unstable();
    let established = row.condition("Established").is_some_and(|it| it.text("/status") == "True");
    vec![
        row.name(),
        row.text("/spec/scope").into(),
        versions.join(",").into(),
        row.text("/metadata/creationTimestamp").into(),
        row.text("/spec/group").into(),
        row.text("/spec/names/kind").into(),
        row.texts("/spec/names/shortNames").join(",").into(),
        established.into(),
    ]
}
