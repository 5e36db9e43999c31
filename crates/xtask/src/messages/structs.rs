//! Writes the code of `informer-k8s-openapi`: for each message of the kinds that fill clusters, which field of which struct each
//! number is.
//!
//! The names of the fields are those of k8s-openapi's own source, for each version of Kubernetes that it supports. Its macros
//! cannot wrap the arm of a match, so a field that some versions lack has a function, which they can wrap.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{Message, Walked, layout};
use crate::definitions::Many;

/// The kinds that fill clusters. All others are decoded through serde.
const KINDS: [(&str, &str); 26] = [
    ("v1", "Pod"),
    ("v1", "Node"),
    ("v1", "Service"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Event"),
    ("v1", "Namespace"),
    ("v1", "ServiceAccount"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "PersistentVolume"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("autoscaling/v1", "HorizontalPodAutoscaler"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("coordination.k8s.io/v1", "Lease"),
    ("discovery.k8s.io/v1", "EndpointSlice"),
    ("events.k8s.io/v1", "Event"),
    ("networking.k8s.io/v1", "Ingress"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("policy/v1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
];
/// These have no default, and are written by hand (`special.rs` there).
const BY_HAND: [&str; 2] =
    ["k8s.io.apimachinery.pkg.apis.meta.v1.Condition", "k8s.io.api.events.v1.EventSeries"];

/// The structs of k8s-openapi.
pub(super) struct Structs {
    /// The folder of each minor version of Kubernetes.
    versions: BTreeMap<u32, PathBuf>,
    read: BTreeMap<String, Struct>,
}

/// The names of the fields by their names in JSON, for each version that has the struct. [`ANY_JSON`] has itself as a field.
type Struct = BTreeMap<u32, BTreeMap<String, String>>;

/// The declaration of a message that has no fields until now: any JSON.
const ANY_JSON: &str = "(pub crate::serde_json::Value);";

impl Structs {
    /// The structs in the sources of k8s-openapi.
    pub(super) fn of(sources: &Path) -> Result<Self, String> {
        let listed = std::fs::read_dir(sources).map_err(|error| format!("{}: {error}", sources.display()))?;
        let versions: BTreeMap<u32, PathBuf> = listed
            .filter_map(Result::ok)
            .filter_map(|entry| {
                let minor = entry.file_name().to_str()?.strip_prefix("v1_")?.parse().ok()?;
                Some((minor, entry.path()))
            })
            .collect();
        Ok(Self { versions, read: BTreeMap::new() })
    }

    /// The struct of a message, read when it is asked for.
    fn of_message(&mut self, message: &str) -> Result<&Struct, String> {
        if !self.read.contains_key(message) {
            let (folder, name) = place(message)?;
            let mut found = Struct::new();
            for (minor, version) in &self.versions {
                if let Some(fields) = fields_in(&version.join(folder.replace("::", "/")), name) {
                    found.insert(*minor, fields);
                }
            }
            self.read.insert(message.to_owned(), found);
        }
        self.read.get(message).filter(|found| !found.is_empty()).ok_or(format!("no struct for {message}"))
    }

    fn is_any_json(&mut self, message: &str) -> Result<bool, String> {
        Ok(self.of_message(message)?.values().any(|fields| fields.contains_key(ANY_JSON)))
    }

    /// The field of the struct for a member, if any version has it, and the versions that have it.
    fn field(&mut self, message: &str, json: &str) -> Result<Option<(String, BTreeSet<u32>)>, String> {
        let versions = self.of_message(message)?;
        let having = versions.iter().filter_map(|(minor, fields)| Some((*minor, fields.get(json)?)));
        let names: BTreeSet<&String> = having.clone().map(|(_, name)| name).collect();
        match names.len() {
            0 => Ok(None),
            1 => Ok(names.first().map(|&name| (name.clone(), having.map(|(minor, _)| minor).collect()))),
            _ => Err(format!("{message}.{json} is called {names:?}")),
        }
    }
}

/// The module of k8s-openapi and the name: `k8s.io.api.core.v1.Pod` is `api::core::v1`, `Pod`.
fn place(message: &str) -> Result<(String, &str), String> {
    let inside = message.strip_prefix("k8s.io.").ok_or(format!("not of Kubernetes: {message}"))?;
    let (package, name) = inside.rsplit_once('.').ok_or(format!("no package: {message}"))?;
    Ok((package.replace('.', "::"), name))
}

fn path(message: &str) -> Result<String, String> {
    place(message).map(|(package, name)| format!("{package}::{name}"))
}

/// The fields of the struct, by their names in JSON: its source compares with each name.
fn fields_in(folder: &Path, name: &str) -> Option<BTreeMap<String, String>> {
    let declared = [" {", ANY_JSON].map(|begin| format!("\npub struct {name}{begin}"));
    let files = std::fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let text = files
        .filter_map(|file| std::fs::read_to_string(file.path()).ok())
        .find(|text| declared.iter().any(|declared| text.contains(declared)))?;
    let pairs = text.lines().filter_map(|line| {
        let (json, field) = line.trim().strip_suffix(',')?.split_once(" => Field::Key_")?;
        Some((json.trim_matches('"').to_owned(), field.to_owned()))
    });
    if text.contains(&declared[1]) {
        return Some(BTreeMap::from([(ANY_JSON.to_owned(), ANY_JSON.to_owned())]));
    }
    // `apiVersion` and `kind` of a whole object are no fields.
    Some(pairs.filter(|(_, field)| text.contains(&format!("\n    pub {field}: "))).collect())
}

/// A range of versions that do not include all.
fn condition(having: &BTreeSet<u32>, all: &BTreeSet<u32>) -> Result<Option<[String; 2]>, String> {
    let (Some(first), Some(last)) = (having.first(), having.last()) else {
        return Err("no version".to_owned());
    };
    if having == all {
        return Ok(None);
    }
    if having.iter().eq(all.range(first..)) {
        return Ok(Some([format!("k8s_if_ge_1_{first}"), format!("k8s_if_le_1_{}", first - 1)]));
    }
    if having.iter().eq(all.range(..=last)) {
        return Ok(Some([format!("k8s_if_le_1_{last}"), format!("k8s_if_ge_1_{}", last + 1)]));
    }
    Err(format!("neither the first nor the last versions: {having:?}"))
}

/// Returns the code.
pub(super) fn code(walked: &Walked, structs: &mut Structs, versions: &str) -> Result<String, String> {
    let mut writer =
        Writer { walked, structs, text: String::new(), done: BTreeSet::new(), pending: Vec::new() };
    let mut roots = Vec::new();
    for (api_version, kind) in KINDS {
        let found = walked.kinds.iter().find(|it| it.api_version == api_version && it.kind == kind);
        let message = &found.ok_or(format!("no {api_version} {kind}"))?.message;
        roots.push(path(message)?);
        writer.pending.push(message);
    }
    while let Some(message) = writer.pending.pop() {
        if writer.done.insert(message) {
            writer.message(message).map_err(|error| format!("{message}: {error}"))?;
        }
    }
    let mut text = format!("// By `cargo xtask messages` from {versions} and k8s-openapi.\n\n");
    text += "/// Decodes into `decoded` if there is code for its type, and returns the heap bytes.\n#[inline(always)]\n";
    text += "pub(crate) fn decode_into<T: 'static>(decoded: &mut Option<T>, kind: Kind, raw: &[u8], skips_managed_fields: bool) -> Option<usize> {\n";
    for (index, root) in roots.iter().enumerate() {
        let or = if index == 0 { "    " } else { "        .or_else(|| " };
        let end = if index == 0 { "" } else { ")" };
        _ = writeln!(
            text,
            "{or}crate::decode_as::<T, {root}>(decoded, kind, raw, skips_managed_fields){end}"
        );
    }
    text += "}\n";
    Ok(text + &writer.text)
}

struct Writer<'a> {
    walked: &'a Walked,
    structs: &'a mut Structs,
    text: String,
    done: BTreeSet<&'a str>,
    pending: Vec<&'a str>,
}

impl<'a> Writer<'a> {
    fn message(&mut self, name: &'a str) -> Result<(), String> {
        let message = self.named(name)?;
        if message.form != "object" {
            return if message.form == "list" { Err("a list is not supported".to_owned()) } else { Ok(()) };
        }
        if BY_HAND.contains(&name) {
            return Ok(());
        }
        let (path, all) = (path(name)?, self.structs.versions.keys().copied().collect());
        let having: BTreeSet<u32> = self.structs.of_message(name)?.keys().copied().collect();
        let (mut always, mut functions) = (String::new(), String::new());
        let arms = self.arms(name, name, &having, "self", &mut always, &mut functions)?;
        let begin = if self.structs.is_any_json(name)? {
            "        Self(serde_json::Value::Object(serde_json::Map::new()))\n".to_owned()
        } else if always.is_empty() {
            "        Self::default()\n".to_owned()
        } else {
            format!("        let mut it = Self::default();\n{always}        it\n")
        };
        let code = format!(
            "\nimpl Message for {path} {{\n    fn begin() -> Self {{\n{begin}    }}\n\n    fn read_fields(&mut self, raw: &[u8], context: &mut Context) {{\n{arms}    }}\n}}\n{functions}"
        );
        match condition(&having, &all)? {
            None => self.text += &code,
            Some([holds, _]) => _ = writeln!(self.text, "\nk8s_openapi::{holds}! {{{code}}}"),
        }
        Ok(())
    }

    fn named(&self, name: &str) -> Result<&'a Message, String> {
        self.walked.messages.get(name).ok_or(format!("no message {name}"))
    }

    /// The match over the fields of a message whose members are in the struct of `host`.
    fn arms(
        &mut self,
        host: &'a str,
        name: &'a str,
        versions: &BTreeSet<u32>,
        it: &str,
        always: &mut String,
        functions: &mut String,
    ) -> Result<String, String> {
        let path = path(host)?;
        let mut arms = "        let mut at = At::before(raw);\n        while at.next(context) {\n            match at.number {\n".to_owned();
        for field in &self.named(name)?.fields {
            let number = field.number;
            if field.name == "~" {
                let function = snake(&format!("{host}.{}", place(&field.of)?.1));
                let inner = self.arms(host, &field.of, versions, "it", always, functions)?;
                _ = writeln!(
                    arms,
                    "                {number} => {function}({it}, at.message(context), context),"
                );
                _ = write!(
                    functions,
                    "\nfn {function}(it: &mut {path}, raw: &[u8], context: &mut Context) {{\n{inner}}}\n"
                );
                continue;
            }
            let Some((member, having)) = self.structs.field(host, &field.name)? else { continue };
            let presence = layout::presence(field, self.walked)?;
            let way = if presence == "NotEmpty" && field.many == Many::One { "not_empty" } else { "given" };
            // Managed fields are most of what nobody reads.
            let is_skipped = (place(host)?.1, field.name.as_str()) == ("ObjectMeta", "managedFields");
            let guard = if is_skipped { " if !context.skips_managed_fields()" } else { "" };
            let is_always = presence == "Always" && field.many == Many::One;
            match condition(&having, versions)? {
                None => {
                    _ = writeln!(
                        arms,
                        "                {number}{guard} => {it}.{member}.{way}(&at, context),"
                    );
                    if is_always {
                        _ = writeln!(always, "        it.{member}.always();");
                    }
                }
                Some([holds, fails]) => {
                    let function = snake(&format!("{host}.{member}"));
                    _ = writeln!(arms, "                {number} => {function}({it}, &at, context),");
                    let head = |it: &str, at: &str, context: &str| {
                        format!("fn {function}({it}: &mut {path}, {at}: &At<'_>, {context}: &mut Context)")
                    };
                    _ = writeln!(
                        functions,
                        "\nk8s_openapi::{holds}! {{\n    {} {{\n        it.{member}.{way}(at, context);\n    }}\n}}",
                        head("it", "at", "context")
                    );
                    _ = writeln!(functions, "k8s_openapi::{fails}! {{\n    {} {{}}\n}}", head("_", "_", "_"));
                    if is_always {
                        return Err(format!("{member} is always there, but not in each version"));
                    }
                }
            }
            if self.walked.messages.contains_key(&field.of) {
                self.pending.push(&field.of);
            }
        }
        arms += "                _ => {}\n            }\n        }\n";
        Ok(arms)
    }
}

/// A name of a function: `k8s.io.api.core.v1.Pod.x` is `core_v1_pod_x`.
fn snake(name: &str) -> String {
    let inside = name.trim_start_matches("k8s.io.").trim_start_matches("api.").replace('.', "_");
    inside.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_a_condition() {
        let all = BTreeSet::from([33, 34, 35]);
        let of = |having: &[u32]| condition(&having.iter().copied().collect(), &all);
        assert_eq!(of(&[33, 34, 35]), Ok(None));
        assert_eq!(of(&[34, 35]), Ok(Some(["k8s_if_ge_1_34".to_owned(), "k8s_if_le_1_33".to_owned()])));
        assert_eq!(of(&[33]), Ok(Some(["k8s_if_le_1_33".to_owned(), "k8s_if_ge_1_34".to_owned()])));
        assert!(of(&[34]).is_err() && of(&[]).is_err());
    }

    #[test]
    fn places_are_those_of_k8s_openapi() {
        assert_eq!(path("k8s.io.api.core.v1.Pod").unwrap(), "api::core::v1::Pod");
        assert_eq!(snake("k8s.io.api.core.v1.Volume.hostPath"), "core_v1_volume_hostpath");
        assert!(path("example.com.A").is_err());
    }
}
