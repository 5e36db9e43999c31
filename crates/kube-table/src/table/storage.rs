//! Volumes, claims, classes and drivers.

use serde_json::Value;

use super::row::Row;

/// The annotation that named the class before the field existed.
const OLD_CLASS: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";

pub(super) fn cells(resource: &str) -> Option<fn(&Row<'_>) -> Vec<Value>> {
    Some(match resource {
        "persistentvolumes" => volume,
        "persistentvolumeclaims" => claim,
        "storageclasses.storage.k8s.io" => storage_class,
        "volumeattributesclasses.storage.k8s.io" => attributes_class,
        "volumeattachments.storage.k8s.io" => attachment,
        "csinodes.storage.k8s.io" => csi_node,
        "csidrivers.storage.k8s.io" => csi_driver,
        _ => return None,
    })
}

fn volume(row: &Row<'_>) -> Vec<Value> {
    let claim = row.get("/spec/claimRef").map_or_else(String::new, |_| {
        format!("{}/{}", row.text("/spec/claimRef/namespace"), row.text("/spec/claimRef/name"))
    });
    vec![
        row.name(),
        row.either("/spec/capacity/storage", "0").into(),
        access_modes(row, "/spec/accessModes").into(),
        row.text("/spec/persistentVolumeReclaimPolicy").into(),
        phase(row).into(),
        claim.into(),
        row.text_or(OLD_CLASS, row.text("/spec/storageClassName")).into(),
        row.either("/spec/volumeAttributesClassName", "<unset>").into(),
        row.text("/status/reason").into(),
        row.age(),
        row.either("/spec/volumeMode", "<unset>").into(),
    ]
}

fn claim(row: &Row<'_>) -> Vec<Value> {
    let volume = row.text("/spec/volumeName");
    let (capacity, modes) = if volume.is_empty() {
        (String::new(), String::new())
    } else {
        (row.either("/status/capacity/storage", "0"), access_modes(row, "/status/accessModes"))
    };
    vec![
        row.name(),
        phase(row).into(),
        volume.into(),
        capacity.into(),
        modes.into(),
        row.text_or(OLD_CLASS, row.text("/spec/storageClassName")).into(),
        row.either("/spec/volumeAttributesClassName", "<unset>").into(),
        row.age(),
        row.either("/spec/volumeMode", "<unset>").into(),
    ]
}

fn phase<'a>(row: &Row<'a>) -> &'a str {
    if row.is_being_deleted() { "Terminating" } else { row.text("/status/phase") }
}

/// The abbreviated modes, each once, in a fixed order.
fn access_modes(row: &Row<'_>, pointer: &str) -> String {
    let modes = row.texts(pointer);
    let short: Vec<&str> = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ]
    .into_iter()
    .filter(|(mode, _)| modes.contains(mode))
    .map(|(_, short)| short)
    .collect();
    short.join(",")
}

fn storage_class(row: &Row<'_>) -> Vec<Value> {
    let name = row.text("/metadata/name");
    let default = row.text("/metadata/annotations/storageclass.kubernetes.io~1is-default-class") == "true"
        || row.text("/metadata/annotations/storageclass.beta.kubernetes.io~1is-default-class") == "true";
    vec![
        if default { format!("{name} (default)").into() } else { name.into() },
        row.text("/provisioner").into(),
        row.either("/reclaimPolicy", "Delete").into(),
        row.either("/volumeBindingMode", "Immediate").into(),
        row.flag("/allowVolumeExpansion").into(),
        row.age(),
    ]
}

fn attributes_class(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.text("/driverName").into(), row.age()]
}

fn attachment(row: &Row<'_>) -> Vec<Value> {
    vec![
        row.name(),
        row.text("/spec/attacher").into(),
        row.text("/spec/source/persistentVolumeName").into(),
        row.text("/spec/nodeName").into(),
        row.flag("/status/attached").into(),
        row.age(),
    ]
}

fn csi_node(row: &Row<'_>) -> Vec<Value> {
    vec![row.name(), row.count("/spec/drivers").into(), row.age()]
}

fn csi_driver(row: &Row<'_>) -> Vec<Value> {
    let modes = row.texts("/spec/volumeLifecycleModes").join(",");
    let tokens = row.get("/spec/tokenRequests").map_or_else(
        || "<unset>".to_string(),
        |_| {
            let audiences: Vec<&str> =
                row.list("/spec/tokenRequests").map(|request| request.text("/audience")).collect();
            audiences.join(",")
        },
    );
    vec![
        row.name(),
        row.get("/spec/attachRequired").and_then(Value::as_bool).unwrap_or(true).into(),
        row.flag("/spec/podInfoOnMount").into(),
        row.flag("/spec/storageCapacity").into(),
        tokens.into(),
        row.flag("/spec/requiresRepublish").into(),
        if modes.is_empty() { "<none>".into() } else { modes.into() },
        row.age(),
    ]
}
