//! The status of a running pod, as a kubelet reports it.

use super::template::Hole;
use super::{Container, Draw, put};

const CONDITIONS: [(&str, u16); 5] = [
    ("PodReadyToStartContainers", 3),
    ("Initialized", 4),
    ("Ready", 9),
    ("ContainersReady", 9),
    ("PodScheduled", 0),
];

pub(super) fn status(draw: &Draw) -> String {
    let mut out = String::from(r#"{"observedGeneration":1,"phase":"Running","conditions":["#);
    for (at, (condition, later)) in CONDITIONS.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        put(
            &mut out,
            format_args!(
                r#"{comma}{{"type":"{condition}","observedGeneration":1,"status":"True","lastProbeTime":null,"lastTransitionTime":"{}"}}"#,
                Hole::Time(*later)
            ),
        );
    }
    put(
        &mut out,
        format_args!(
            r#"],"hostIP":"{host}","hostIPs":[{{"ip":"{host}"}}],"podIP":"{pod}","podIPs":[{{"ip":"{pod}"}}],"startTime":"{start}""#,
            host = Hole::HostIp,
            pod = Hole::PodIp,
            start = Hole::Time(1),
        ),
    );
    if !draw.init_containers.is_empty() {
        put(&mut out, format_args!(r#","initContainerStatuses":{}"#, statuses(&draw.init_containers, true)));
    }
    put(
        &mut out,
        format_args!(
            r#","containerStatuses":{},"qosClass":"Burstable"}}"#,
            statuses(&draw.containers, false)
        ),
    );
    out
}

fn statuses(containers: &[Container], ended: bool) -> String {
    let texts: Vec<String> = containers
        .iter()
        .map(|container| {
            let Container { name, image, .. } = container;
            let id = Hole::Digest;
            let state = match ended {
                true => format!(
                    r#"{{"terminated":{{"exitCode":0,"reason":"Completed","startedAt":"{}","finishedAt":"{}","containerID":"containerd://{id}"}}}}"#,
                    Hole::Time(2),
                    Hole::Time(4)
                ),
                false => format!(r#"{{"running":{{"startedAt":"{}"}}}}"#, Hole::Time(6)),
            };
            let digest = digest_of(image);
            format!(
                r#"{{"name":"{name}","state":{state},"lastState":{{}},"ready":true,"restartCount":{},"image":"{image}","imageID":"{image}@sha256:{digest}","containerID":"containerd://{id}","started":{}}}"#,
                Hole::Restarts,
                !ended,
            )
        })
        .collect();
    format!("[{}]", texts.join(","))
}

/// The same for all containers of an image.
fn digest_of(image: &str) -> String {
    let seed = image.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let mut random = fastrand::Rng::with_seed(seed);
    format!("{:032x}{:032x}", random.u128(..), random.u128(..))
}
