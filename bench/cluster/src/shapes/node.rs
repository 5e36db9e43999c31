//! Nodes, as a kubelet of a cloud reports them: most of their bytes are the names of images.

use std::fmt::Write as _;

use super::{APPS, ROLES};

const IMAGES: usize = 40;

pub fn name(index: usize) -> String {
    format!("node-{index:04}.zone-{}.internal", index % 3)
}

pub(super) fn address(index: usize) -> String {
    format!("192.168.{}.{}", index / 250, index % 250 + 1)
}

pub(super) fn node(random: &mut fastrand::Rng, index: usize) -> String {
    let (name, address) = (name(index), address(index));
    let zone = index % 3;
    let kind = ["m6i.xlarge", "m6i.2xlarge", "r6i.xlarge"][random.usize(..3)];
    let machine = format!("{:032x}", random.u128(..));
    format!(
        r#"{{"kind":"Node","apiVersion":"v1","metadata":{{"name":"{name}","labels":{{"kubernetes.io/arch":"amd64","kubernetes.io/hostname":"{name}","kubernetes.io/os":"linux","node.kubernetes.io/instance-type":"{kind}","topology.kubernetes.io/region":"internal","topology.kubernetes.io/zone":"zone-{zone}"}},"annotations":{{"node.alpha.kubernetes.io/ttl":"0","volumes.kubernetes.io/controller-managed-attach-detach":"true"}}}},"spec":{{"podCIDR":"10.{}.{}.0/24","providerID":"cloud:///zone-{zone}/i-{}"}},"status":{{"addresses":[{{"type":"InternalIP","address":"{address}"}},{{"type":"Hostname","address":"{name}"}}],"allocatable":{{"cpu":"3920m","memory":"15147128Ki","pods":"58"}},"capacity":{{"cpu":"4","memory":"16164984Ki","pods":"58"}},"conditions":{},"images":{},"nodeInfo":{{"architecture":"amd64","bootID":"{machine}","containerRuntimeVersion":"containerd://2.1.4","kernelVersion":"6.12.40","kubeProxyVersion":"v1.36.3","kubeletVersion":"v1.36.3","machineID":"{machine}","operatingSystem":"linux","osImage":"Linux","systemUUID":"{machine}"}}}}}}"#,
        64 + index / 256,
        index % 256,
        &machine[..17],
        conditions(),
        images(random),
    )
}

fn conditions() -> String {
    let kinds =
        [("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False"), ("Ready", "True")];
    let conditions = kinds.map(|(kind, status)| {
        format!(
            r#"{{"type":"{kind}","status":"{status}","lastHeartbeatTime":"2026-11-20T10:00:00Z","lastTransitionTime":"2026-11-01T08:00:00Z","reason":"KubeletSays","message":"kubelet says {kind} is {status}"}}"#
        )
    });
    format!("[{}]", conditions.join(","))
}

fn images(random: &mut fastrand::Rng) -> String {
    let mut out = String::from("[");
    for index in 0..IMAGES {
        let image = format!("{}-{}", APPS[index % APPS.len()], ROLES[random.usize(..ROLES.len())]);
        let (digest, separator) =
            (format!("{:032x}{:032x}", random.u128(..), random.u128(..)), if index > 0 { "," } else { "" });
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            r#"{separator}{{"names":["registry.internal/shop/{image}@sha256:{digest}","registry.internal/shop/{image}:{}.{}"],"sizeBytes":{}}}"#,
            random.u8(1..9),
            random.u8(..40),
            random.u32(10_000_000..400_000_000),
        );
    }
    out.push(']');
    out
}
