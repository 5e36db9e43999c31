//! Networking: services, endpoints, ingresses and policies.

use serde_json::Value;

use super::row::{Row, first_three};

pub(super) fn cells(resource: &str) -> Option<fn(&Row<'_>) -> Vec<Value>> {
    Some(match resource {
        "services" => service,
        "endpoints" => endpoints,
        "endpointslices.discovery.k8s.io" => endpoint_slice,
        "ingresses.networking.k8s.io" => ingress,
        "ingressclasses.networking.k8s.io" => ingress_class,
        "networkpolicies.networking.k8s.io" => network_policy,
        "servicecidrs.networking.k8s.io" => service_cidr,
        "ipaddresses.networking.k8s.io" => ip_address,
        _ => return None,
    })
}

fn service(row: &Row<'_>) -> Vec<Value> {
    let ports: Vec<String> = row
        .list("/spec/ports")
        .map(|port| {
            match (port.number("/port"), port.number("/nodePort"), port.text_or("/protocol", "TCP")) {
                (number, node @ 1.., protocol) => format!("{number}:{node}/{protocol}"),
                (number, _, protocol) => format!("{number}/{protocol}"),
            }
        })
        .collect();
    vec![
        row.name(),
        row.text("/spec/type").into(),
        row.get("/spec/clusterIPs/0").and_then(Value::as_str).unwrap_or("<none>").into(),
        external_ip(row).into(),
        if ports.is_empty() { "<none>".into() } else { ports.join(",").into() },
        row.age(),
        row.labels("/spec/selector").into(),
    ]
}

fn external_ip(row: &Row<'_>) -> String {
    let mut addresses = match row.text("/spec/type") {
        "ClusterIP" | "NodePort" => Vec::new(),
        "LoadBalancer" => balancer(row),
        "ExternalName" => return row.text("/spec/externalName").to_string(),
        _ => return "<unknown>".to_string(),
    };
    addresses.extend(row.texts("/spec/externalIPs"));
    match addresses.is_empty() {
        true if row.text("/spec/type") == "LoadBalancer" => "<pending>".to_string(),
        true => "<none>".to_string(),
        false => addresses.join(","),
    }
}

/// The addresses of a load balancer, each once, sorted.
fn balancer<'a>(row: &Row<'a>) -> Vec<&'a str> {
    let mut addresses: Vec<&str> = row
        .list("/status/loadBalancer/ingress")
        .map(|ingress| ingress.text_or("/ip", ingress.text("/hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

fn endpoints(row: &Row<'_>) -> Vec<Value> {
    let mut all = Vec::new();
    for subset in row.list("/subsets") {
        if subset.count("/ports") == 0 {
            all.extend(subset.list("/addresses").map(|address| address.text("/ip").to_string()));
        }
        for port in subset.list("/ports") {
            all.extend(subset.list("/addresses").map(|address| match address.text("/ip") {
                ip if ip.contains(':') => format!("[{ip}]:{}", port.number("/port")),
                ip => format!("{ip}:{}", port.number("/port")),
            }));
        }
    }
    let if_empty = if row.count("/subsets") == 0 { "<none>" } else { "" };
    vec![row.name(), first_three(&all, if_empty).into(), row.age()]
}

fn endpoint_slice(row: &Row<'_>) -> Vec<Value> {
    let ports: Vec<String> = row
        .list("/ports")
        .map(|port| match port.get("/port") {
            Some(number) => number.to_string(),
            None => port.either("/name", "*"),
        })
        .collect();
    let addresses: Vec<&str> =
        row.list("/endpoints").flat_map(|endpoint| endpoint.texts("/addresses")).collect();
    vec![
        row.name(),
        row.text("/addressType").into(),
        first_three(&ports, "<unset>").into(),
        first_three(&addresses, "<unset>").into(),
        row.age(),
    ]
}

fn ingress(row: &Row<'_>) -> Vec<Value> {
    vec![
        row.name(),
        row.either("/spec/ingressClassName", "<none>").into(),
        hosts(row).into(),
        balancer(row).join(",").into(),
        if row.count("/spec/tls") == 0 { "80".into() } else { "80, 443".into() },
        row.age(),
    ]
}

/// The first three hosts. The number of further ones counts rules, with a host or without.
fn hosts(row: &Row<'_>) -> String {
    let rules: Vec<&str> = row.list("/spec/rules").map(|rule| rule.text("/host")).collect();
    let mut hosts = Vec::new();
    let mut more = false;
    for host in &rules {
        more = more || hosts.len() == 3;
        if !more && !host.is_empty() {
            hosts.push(*host);
        }
    }
    match (hosts.is_empty(), more) {
        (true, _) => "*".to_string(),
        (_, true) => format!("{} + {} more...", hosts.join(","), rules.len() - 3),
        (_, false) => hosts.join(","),
    }
}

fn ingress_class(row: &Row<'_>) -> Vec<Value> {
    let default = row.text("/metadata/annotations/ingressclass.kubernetes.io~1is-default-class") == "true";
    let name = row.text("/metadata/name");
    let parameters = row.get("/spec/parameters").map_or_else(
        || "<none>".to_string(),
        |_| {
            let kind = row.text("/spec/parameters/kind");
            let group = row.get("/spec/parameters/apiGroup").and_then(Value::as_str);
            let group = group.map(|group| format!(".{group}")).unwrap_or_default();
            format!("{kind}{group}/{}", row.text("/spec/parameters/name"))
        },
    );
    vec![
        if default { format!("{name} (default)").into() } else { name.into() },
        row.text("/spec/controller").into(),
        parameters.into(),
        row.age(),
    ]
}

fn network_policy(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.selector("/spec/podSelector"), row.age()]
}

fn service_cidr(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.texts("/spec/cidrs").join(",").into(), row.age()]
}

fn ip_address(row: &Row<'_>) -> Vec<Value> {
    let parent = row.get("/spec/parentRef").map_or_else(
        || "<none>".to_string(),
        |_| {
            let mut parts = vec![match row.text("/spec/parentRef/group") {
                "" => row.text("/spec/parentRef/resource").to_lowercase(),
                group => format!("{}.{group}", row.text("/spec/parentRef/resource")).to_lowercase(),
            }];
            for part in ["/spec/parentRef/namespace", "/spec/parentRef/name"] {
                let part = row.text(part);
                if !part.is_empty() {
                    parts.push(part.to_string());
                }
            }
            parts.join("/")
        },
    );
    // A real server sends an age, too, without a column for it.
    vec![row.name(), parent.into(), row.age()]
}
