//! Scaling: autoscalers and disruption budgets.

use serde_json::Value;

use super::row::Row;

pub(super) fn cells(resource: &str) -> Option<fn(&Row<'_>) -> Vec<Value>> {
    Some(match resource {
        "horizontalpodautoscalers.autoscaling" => autoscaler,
        "poddisruptionbudgets.policy" => disruption_budget,
        _ => return None,
    })
}

fn disruption_budget(row: &Row<'_>) -> Vec<Value> {
    vec![
        row.name(),
        row.either("/spec/minAvailable", "N/A").into(),
        row.either("/spec/maxUnavailable", "N/A").into(),
        row.number("/status/disruptionsAllowed").into(),
        row.age(),
    ]
}

fn autoscaler(row: &Row<'_>) -> Vec<Value> {
    let target = "/spec/scaleTargetRef";
    vec![
        row.name(),
        format!("{}/{}", row.text(&format!("{target}/kind")), row.text(&format!("{target}/name"))).into(),
        targets(row).into(),
        row.either("/spec/minReplicas", "<unset>").into(),
        row.number("/spec/maxReplicas").into(),
        row.number("/status/currentReplicas").into(),
        row.age(),
    ]
}

/// Each metric's current and target value, the first two of them.
fn targets(row: &Row<'_>) -> String {
    // autoscaling/v1 has one metric only.
    if row.get("/spec/targetCPUUtilizationPercentage").is_some() {
        let current = percent(row, "/status/currentCPUUtilizationPercentage", "<unknown>");
        return format!("cpu: {current}/{}", percent(row, "/spec/targetCPUUtilizationPercentage", "<auto>"));
    }
    let statuses: Vec<Row<'_>> = row.list("/status/currentMetrics").collect();
    let mut texts: Vec<String> =
        row.list("/spec/metrics").enumerate().map(|(at, metric)| target(&metric, statuses.get(at))).collect();
    match texts.len() {
        0 => "<none>".to_string(),
        all @ 3.. => {
            texts.truncate(2);
            format!("{} + {} more...", texts.join(", "), all - 2)
        }
        _ => texts.join(", "),
    }
}

fn target(metric: &Row<'_>, status: Option<&Row<'_>>) -> String {
    let (source, is_resource) = match metric.text("/type") {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_string(),
    };
    let wanted = |value: &str| format!("/{source}/target/{value}");
    let current = |value: &str| {
        let pointer = format!("/{source}/current/{value}");
        status.map_or_else(|| "<unknown>".to_string(), |status| status.either(&pointer, "<unknown>"))
    };
    let average = metric.get(&wanted("averageValue")).is_some();
    if is_resource {
        let name = metric.text(&format!("/{source}/name"));
        if average {
            return format!(
                "{name}: {}/{}",
                current("averageValue"),
                metric.either(&wanted("averageValue"), "")
            );
        }
        let pointer = format!("/{source}/current/averageUtilization");
        let current =
            status.map_or_else(|| "<unknown>".to_string(), |status| percent(status, &pointer, "<unknown>"));
        return format!("{name}: {current}/{}", percent(metric, &wanted("averageUtilization"), "<auto>"));
    }
    if !average {
        return format!("{}/{}", current("value"), metric.either(&wanted("value"), "<nil>"));
    }
    let text = format!("{}/{}", current("averageValue"), metric.either(&wanted("averageValue"), ""));
    if source == "pods" { text } else { format!("{text} (avg)") }
}

fn percent(row: &Row<'_>, pointer: &str, otherwise: &str) -> String {
    row.get(pointer).map_or_else(|| otherwise.to_string(), |value| format!("{value}%"))
}
