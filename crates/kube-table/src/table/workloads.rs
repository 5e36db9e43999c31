//! Workloads: deployments, sets, jobs and their kin.

use serde_json::Value;

use super::row::Row;
use super::time;

const CONTAINERS: &str = "/spec/template/spec/containers";

pub(super) fn cells(resource: &str) -> Option<fn(&Row<'_>) -> Vec<Value>> {
    Some(match resource {
        "deployments.apps" => deployment,
        "replicasets.apps" => replica_set,
        "statefulsets.apps" => stateful_set,
        "daemonsets.apps" => daemon_set,
        "controllerrevisions.apps" => controller_revision,
        "replicationcontrollers" => replication_controller,
        "podtemplates" => pod_template,
        "jobs.batch" => job,
        "cronjobs.batch" => cron_job,
        _ => return None,
    })
}

fn deployment(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers(CONTAINERS);
    vec![
        row.name(),
        format!("{}/{}", row.number("/status/readyReplicas"), row.number("/spec/replicas")).into(),
        row.number("/status/updatedReplicas").into(),
        row.number("/status/availableReplicas").into(),
        row.age(),
        names,
        images,
        row.selector_text("/spec/selector").into(),
    ]
}

fn replicas(row: &Row<'_>, selector: Value) -> Vec<Value> {
    let [names, images] = row.containers(CONTAINERS);
    vec![
        row.name(),
        row.number("/spec/replicas").into(),
        row.number("/status/replicas").into(),
        row.number("/status/readyReplicas").into(),
        row.age(),
        names,
        images,
        selector,
    ]
}

fn replica_set(row: &Row<'_>) -> Vec<Value> {
    replicas(row, row.selector("/spec/selector"))
}

fn replication_controller(row: &Row<'_>) -> Vec<Value> {
    replicas(row, row.labels("/spec/selector").into())
}

fn stateful_set(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers(CONTAINERS);
    let ready = format!("{}/{}", row.number("/status/readyReplicas"), row.number("/spec/replicas"));
    vec![row.name(), ready.into(), row.age(), names, images]
}

fn daemon_set(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers(CONTAINERS);
    vec![
        row.name(),
        row.number("/status/desiredNumberScheduled").into(),
        row.number("/status/currentNumberScheduled").into(),
        row.number("/status/numberReady").into(),
        row.number("/status/updatedNumberScheduled").into(),
        row.number("/status/numberAvailable").into(),
        row.labels("/spec/template/spec/nodeSelector").into(),
        row.age(),
        names,
        images,
        row.selector("/spec/selector"),
    ]
}

fn controller_revision(row: &Row<'_>) -> Vec<Value> {
    let controller =
        row.list("/metadata/ownerReferences").find(|owner| owner.flag("/controller")).map_or_else(
            || "<none>".to_string(),
            |owner| {
                let kind = owner.text("/kind").to_lowercase();
                let name = owner.text("/name");
                match owner.text("/apiVersion").split_once('/') {
                    Some((group, _)) => format!("{kind}.{group}/{name}"),
                    None => format!("{kind}/{name}"),
                }
            },
        );
    vec![row.name(), controller.into(), row.number("/revision").into(), row.age()]
}

fn pod_template(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers("/template/spec/containers");
    vec![row.name(), names, images, row.labels("/template/metadata/labels").into()]
}

fn job(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers(CONTAINERS);
    let succeeded = row.number("/status/succeeded");
    let completions =
        match (row.get("/spec/completions").and_then(Value::as_i64), row.number("/spec/parallelism")) {
            (Some(wanted), _) => format!("{succeeded}/{wanted}"),
            (None, at_once @ 2..) => format!("{succeeded}/1 of {at_once}"),
            (None, _) => format!("{succeeded}/1"),
        };
    let duration = row.time("/status/startTime").map_or_else(String::new, |start| {
        time::between(start, row.time("/status/completionTime").unwrap_or(row.now))
    });
    let is = |kind: &str| row.condition(kind).is_some_and(|condition| condition.text("/status") == "True");
    let status = match () {
        () if is("Complete") => "Complete",
        () if is("Failed") => "Failed",
        () if row.is_being_deleted() => "Terminating",
        () if is("Suspended") => "Suspended",
        () if is("FailureTarget") => "FailureTarget",
        () if is("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    };
    let selector = row.selector("/spec/selector");
    vec![row.name(), status.into(), completions.into(), duration.into(), row.age(), names, images, selector]
}

fn cron_job(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers("/spec/jobTemplate/spec/template/spec/containers");
    let last = match row.get("/status/lastScheduleTime") {
        Some(_) => row.since("/status/lastScheduleTime"),
        None => "<none>".to_string(),
    };
    let suspended = match row.get("/spec/suspend").and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    vec![
        row.name(),
        row.text("/spec/schedule").into(),
        row.either("/spec/timeZone", "<none>").into(),
        suspended.into(),
        row.count("/status/active").into(),
        last.into(),
        row.age(),
        names,
        images,
        row.selector("/spec/jobTemplate/spec/selector"),
    ]
}
