//! The spec of a pod: volumes, containers, scheduling.

use super::template::Hole;
use super::{Container, Draw, Variable, put};

/// The projected volume of each pod's token; its name differs in each pod.
const TOKEN_VOLUME: &str = r#""projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}"#;

pub(super) fn spec(draw: &Draw) -> String {
    let Draw { app, team, .. } = draw;
    let mut out = format!(r#"{{"volumes":{}"#, volumes(draw));
    if !draw.init_containers.is_empty() {
        put(&mut out, format_args!(r#","initContainers":{}"#, containers(draw, &draw.init_containers)));
    }
    put(
        &mut out,
        format_args!(
            r#","containers":{},"restartPolicy":"Always","terminationGracePeriodSeconds":{},"dnsPolicy":"ClusterFirst""#,
            containers(draw, &draw.containers),
            [30, 30, 60, 120][draw.containers.len() % 4],
        ),
    );
    if draw.node_selector {
        put(&mut out, format_args!(r#","nodeSelector":{{"kubernetes.io/os":"linux","pool":"{team}"}}"#));
    }
    put(
        &mut out,
        format_args!(
            r#","serviceAccountName":"{app}","serviceAccount":"{app}","nodeName":"{}","securityContext":{{"runAsUser":1000,"runAsNonRoot":true,"fsGroup":1000}}"#,
            Hole::Node
        ),
    );
    if draw.helm {
        out.push_str(r#","imagePullSecrets":[{"name":"registry"}]"#);
    }
    if draw.affinity {
        put(
            &mut out,
            format_args!(
                r#","affinity":{{"podAntiAffinity":{{"preferredDuringSchedulingIgnoredDuringExecution":[{{"weight":100,"podAffinityTerm":{{"labelSelector":{{"matchExpressions":[{{"key":"app.kubernetes.io/name","operator":"In","values":["{app}"]}}]}},"topologyKey":"kubernetes.io/hostname"}}}}]}}}}"#
            ),
        );
    }
    out.push_str(r#","schedulerName":"default-scheduler","tolerations":["#);
    for toleration in 0..draw.tolerations {
        put(
            &mut out,
            format_args!(
                r#"{{"key":"dedicated-{toleration}","operator":"Equal","value":"{team}","effect":"NoSchedule"}},"#
            ),
        );
    }
    out.push_str(r#"{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority""#);
    if draw.spread {
        put(
            &mut out,
            format_args!(
                r#","topologySpreadConstraints":[{{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"ScheduleAnyway","labelSelector":{{"matchLabels":{{"app.kubernetes.io/name":"{app}"}}}}}}]"#
            ),
        );
    }
    out.push('}');
    out
}

/// The names of a workload's volumes, without the one of the token.
fn volume_names(draw: &Draw) -> Vec<String> {
    let names = |kind: &str, count| (0..count).map(move |at| format!("{kind}-{at}")).collect::<Vec<_>>();
    let mut all = names("config", draw.config_maps);
    all.extend(names("secret", draw.secrets));
    all.extend(names("scratch", draw.empty_dirs));
    all.extend(draw.claim.then(|| "data-0".to_owned()));
    all
}

fn volumes(draw: &Draw) -> String {
    let app = &draw.app;
    let mut out = String::from("[");
    for name in volume_names(draw) {
        put(&mut out, format_args!(r#"{{"name":"{name}","#));
        match name.split('-').next() {
            Some("config") => {
                put(&mut out, format_args!(r#""configMap":{{"name":"{app}-{name}","defaultMode":420}}}},"#))
            }
            Some("secret") => put(
                &mut out,
                format_args!(r#""secret":{{"secretName":"{app}-{name}","defaultMode":420}}}},"#),
            ),
            Some("data") => {
                put(&mut out, format_args!(r#""persistentVolumeClaim":{{"claimName":"{app}-{name}"}}}},"#))
            }
            _ => out.push_str(r#""emptyDir":{"sizeLimit":"1Gi"}},"#),
        }
    }
    put(&mut out, format_args!(r#"{{"name":"kube-api-access-{}",{TOKEN_VOLUME}}}]"#, Hole::Suffix));
    out
}

fn containers(draw: &Draw, containers: &[Container]) -> String {
    let texts: Vec<String> = containers.iter().map(|it| container(draw, it)).collect();
    format!("[{}]", texts.join(","))
}

fn container(draw: &Draw, container: &Container) -> String {
    let Container { name, image, cpu, memory, .. } = container;
    let mut out = format!(r#"{{"name":"{name}","image":"{image}""#);
    if container.arguments > 0 {
        let arguments: Vec<String> =
            (0..container.arguments).map(|at| format!(r#""--{}-option-{at}={name}""#, draw.team)).collect();
        put(&mut out, format_args!(r#","args":[{}]"#, arguments.join(",")));
    }
    let ports: Vec<String> = (0..container.ports)
        .map(|at| format!(r#"{{"name":"port-{at}","containerPort":{},"protocol":"TCP"}}"#, 8_080 + at))
        .collect();
    if !ports.is_empty() {
        put(&mut out, format_args!(r#","ports":[{}]"#, ports.join(",")));
    }
    let variables: Vec<String> = container.variables.iter().map(variable).collect();
    put(&mut out, format_args!(r#","env":[{}]"#, variables.join(",")));
    put(
        &mut out,
        format_args!(
            r#","resources":{{"limits":{{"memory":"{}Mi"}},"requests":{{"cpu":"{cpu}m","memory":"{memory}Mi"}}}},"volumeMounts":["#,
            memory * 2,
        ),
    );
    for volume in volume_names(draw).iter().take(container.mounts) {
        put(&mut out, format_args!(r#"{{"name":"{volume}","mountPath":"/etc/{volume}"}},"#));
    }
    put(
        &mut out,
        format_args!(
            r#"{{"name":"kube-api-access-{}","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}}]"#,
            Hole::Suffix
        ),
    );
    let probes = ["livenessProbe", "readinessProbe", "startupProbe"];
    for (at, probe) in probes.iter().take(container.probes).enumerate() {
        let action = match container.probe {
            0 => r#""httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"}"#,
            1 => r#""tcpSocket":{"port":8080}"#,
            _ => r#""exec":{"command":["/bin/check","--ready"]}"#,
        };
        put(
            &mut out,
            format_args!(
                r#","{probe}":{{{action},"timeoutSeconds":{},"periodSeconds":{},"successThreshold":1,"failureThreshold":3}}"#,
                1 + at,
                5 * (at + 1),
            ),
        );
    }
    out.push_str(r#","terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent""#);
    if container.hardened {
        out.push_str(r#","securityContext":{"capabilities":{"drop":["ALL"]},"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false}"#);
    }
    out.push('}');
    out
}

fn variable(variable: &Variable) -> String {
    match variable {
        Variable::Value(name, value) => format!(r#"{{"name":"{name}","value":"{value}"}}"#),
        Variable::Secret(name, secret) => format!(
            r#"{{"name":"{name}","valueFrom":{{"secretKeyRef":{{"name":"{secret}","key":"{}"}}}}}}"#,
            name.to_lowercase()
        ),
        Variable::Field(name, path) => {
            format!(
                r#"{{"name":"{name}","valueFrom":{{"fieldRef":{{"apiVersion":"v1","fieldPath":"{path}"}}}}}}"#
            )
        }
    }
}
