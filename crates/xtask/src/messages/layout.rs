//! Lays out the constant tables of `informer-protobuf`; `src/schema.rs` there says what they mean.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Field, Kind, Message, Walked};
use crate::definitions::Many;

/// `informer-protobuf` keeps members as a set of bits.
const MEMBERS_MAX: usize = 64;
/// The slot of a field without a member.
const NO_SLOT: usize = 0xff;
/// The flag of a field whose message is inlined.
const INLINE: usize = 0x80;

/// A member of a message in JSON; the members of an inlined message are in its place.
struct Member<'a> {
    field: &'a Field,
    presence: &'static str,
}

#[derive(Default)]
struct Tables {
    /// With quotes and colon, as in JSON.
    names: String,
    names_at: BTreeMap<String, usize>,
    names_length: usize,
    members: String,
    members_count: usize,
    slots: String,
    slots_count: usize,
    inlines: Vec<(usize, usize)>,
    messages: String,
}

/// `kubernetes` is the release of these messages, major and minor.
pub(super) fn table(walked: &Walked, versions: &str, kubernetes: (u32, u32)) -> Result<String, String> {
    let numbers: BTreeMap<&str, usize> =
        walked.messages.keys().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
    let mut tables = Tables::default();
    for (name, message) in &walked.messages {
        tables.add(name, message, walked, &numbers).map_err(|error| format!("{name}: {error}"))?;
    }
    let mut text = format!("// By `cargo xtask messages` from {versions}.\n");
    _ = writeln!(text, "\npub(crate) const KUBERNETES: (u32, u32) = {kubernetes:?};");
    tables.write(&mut text, walked.messages.len());
    kinds(&mut text, walked, &numbers)?;
    Ok(text)
}

impl Tables {
    fn add(
        &mut self,
        name: &str,
        message: &Message,
        walked: &Walked,
        numbers: &BTreeMap<&str, usize>,
    ) -> Result<(), String> {
        let (members_at, slots_at) = (self.members_count, self.slots_count);
        let members = members(message, walked)?;
        if members.len() > MEMBERS_MAX {
            return Err(format!("{} members", members.len()));
        }
        let last = message.fields.iter().map(|field| field.number as usize).max().unwrap_or(0);
        let mut slots = vec![NO_SLOT; last];
        let mut rank = 0;
        for field in &message.fields {
            let slot = &mut slots[field.number as usize - 1];
            if field.name == "~" {
                *slot = INLINE + self.inlines.len();
                self.inlines.push((number_of(&field.of, numbers)?, rank));
                rank += members_of(&field.of, walked)?.len();
            } else {
                *slot = rank;
                rank += 1;
            }
        }
        if INLINE + self.inlines.len() > NO_SLOT {
            return Err("too many are inlined".to_owned());
        }
        let mut always = 0_u64;
        _ = writeln!(self.members, "    // {name}");
        for (rank, Member { field, presence }) in members.iter().enumerate() {
            let of = match field.of.as_str() {
                "string" => "Of::String".to_owned(),
                "bytes" => "Of::Bytes".to_owned(),
                "bool" => "Of::Bool".to_owned(),
                "int32" => "Of::Int32".to_owned(),
                "int64" => "Of::Int64".to_owned(),
                "double" => "Of::Double".to_owned(),
                message => format!("Of::Message({})", number_of(message, numbers)?),
            };
            always |= u64::from(matches!(*presence, "Always" | "Nullable")) << rank;
            let (at, length) = self.name(&field.name)?;
            let (number, label) = (field.number, &field.name);
            let many = match field.many {
                Many::One => "One",
                Many::List => "List",
                Many::Map => "Map",
            };
            let line = format!("member({at}, {length}, {of}, Many::{many}, Presence::{presence})");
            _ = writeln!(self.members, "    {line}, // {number} {label}");
        }
        self.members_count += members.len();
        let line: Vec<String> = slots.iter().map(ToString::to_string).collect();
        if !line.is_empty() {
            _ = writeln!(self.slots, "    {},", line.join(", "));
        }
        self.slots_count += slots.len();
        let form = form(&message.form)?;
        let (count, slots) = (members.len(), slots.len());
        let line = format!(
            "message(Form::{form}, {members_at}, {count}, {slots_at}, {slots}, {always:#x}), // {name}"
        );
        _ = writeln!(self.messages, "    {line}");
        Ok(())
    }

    /// The offset of the name, and its length without quotes and colon.
    fn name(&mut self, name: &str) -> Result<(usize, usize), String> {
        if !name.chars().all(|letter| letter.is_ascii_alphanumeric() || "$-".contains(letter)) {
            return Err(format!("cannot be quoted: {name}"));
        }
        if let Some(at) = self.names_at.get(name) {
            return Ok((*at, name.len()));
        }
        let at = self.names_length;
        _ = writeln!(self.names, "\\\"{name}\\\":\\");
        self.names_length += name.len() + r#""":"#.len();
        self.names_at.insert(name.to_owned(), at);
        Ok((at, name.len()))
    }

    fn write(&self, text: &mut String, messages: usize) {
        let Self { names, members, members_count, slots, slots_count, inlines, .. } = self;
        _ = writeln!(text, "\npub(super) static NAMES: &str = \"\\\n{names}\";");
        _ = writeln!(text, "\npub(super) static MEMBERS: [Member; {members_count}] = [\n{members}];");
        _ = writeln!(text, "\npub(super) static SLOTS: [u8; {slots_count}] = [\n{slots}];");
        _ = writeln!(text, "\npub(super) static INLINES: [Inline; {}] = [", inlines.len());
        inlines.iter().for_each(|(message, base)| _ = writeln!(text, "    inline({message}, {base}),"));
        _ = writeln!(
            text,
            "];\n\npub(super) static MESSAGES: [Message; {messages}] = [\n{}];",
            self.messages
        );
    }
}

fn members<'a>(message: &'a Message, walked: &'a Walked) -> Result<Vec<Member<'a>>, String> {
    let mut members = Vec::new();
    for field in &message.fields {
        if field.name == "~" {
            members.extend(members_of(&field.of, walked)?);
        } else {
            members.push(Member { field, presence: presence(field, walked)? });
        }
    }
    Ok(members)
}

fn members_of<'a>(message: &str, walked: &'a Walked) -> Result<Vec<Member<'a>>, String> {
    members(walked.messages.get(message).ok_or(format!("no message {message}"))?, walked)
}

/// When JSON has a field. Go's `omitempty` has no effect on structures.
pub(super) fn presence(field: &Field, walked: &Walked) -> Result<&'static str, String> {
    let has = |flag: &str| field.presence.iter().any(|it| it == flag);
    let is_structure = field.many == Many::One
        && walked.messages.get(&field.of).is_some_and(|message| message.form != "list");
    match (has("pointer"), has("omitempty"), has("omitzero")) {
        (true, false, false) => Ok("Nullable"),
        (true, true, false) => Ok("Given"),
        (false, _, true) if is_structure => Ok("NotZero"),
        (false, true, false) if !is_structure => Ok("NotEmpty"),
        (false, _, false) => Ok("Always"),
        _ => Err(format!("{}: {:?}", field.name, field.presence)),
    }
}

fn form(form: &str) -> Result<&'static str, String> {
    Ok(match form {
        "object" => "Object",
        "list" => "List",
        "json" => "Json",
        "extension" => "Extension",
        "quantity" => "Quantity",
        "int-or-string" => "IntOrString",
        "time" => "Time",
        "microtime" => "MicroTime",
        "or-bool" => "OrBool",
        "or-array" => "OrArray",
        _ => return Err(format!("no form {form}")),
    })
}

fn number_of(message: &str, numbers: &BTreeMap<&str, usize>) -> Result<usize, String> {
    numbers.get(message).copied().ok_or(format!("no message {message}"))
}

/// Sorted, for binary search.
fn kinds(text: &mut String, walked: &Walked, numbers: &BTreeMap<&str, usize>) -> Result<(), String> {
    let mut sorted: Vec<_> = walked.kinds.iter().collect();
    sorted.sort_by_key(|it| (&it.api_version, &it.kind));
    let (mut names, mut lines, mut at) = (String::new(), String::new(), 0);
    for (index, Kind { api_version, kind, message, says_it }) in sorted.iter().copied().enumerate() {
        _ = writeln!(names, "{api_version} {kind}\\");
        let number = number_of(message, numbers)?;
        _ = writeln!(lines, "    kind({at}, {}, {}, {number}, {says_it}),", api_version.len(), kind.len());
        at += api_version.len() + 1 + kind.len();
        if (api_version.as_str(), kind.as_str()) == ("meta.k8s.io/v1", "PartialObjectMetadata") {
            _ = writeln!(text, "\npub(crate) const PARTIAL_OBJECT_METADATA: u16 = {index};");
        }
    }
    let metadata = number_of("k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta", numbers)?;
    _ = writeln!(text, "\npub(super) const OBJECT_META: u16 = {metadata};");
    _ = writeln!(text, "\npub(super) static KIND_NAMES: &str = \"\\\n{names}\";");
    _ = writeln!(text, "\npub(super) static KINDS: [Entry; {}] = [\n{lines}];", sorted.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALKED: &str = "\
kind meta.k8s.io/v1 PartialObjectMetadata x.A says-it
message k8s.io.apimachinery.pkg.apis.meta.v1.ListMeta object
message k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta object
message x.A object
 2 a string -
 3 ~ x.B -
 1 c x.B pointer omitempty
message x.B object
 1 b x.C omitempty
 2 d [string] omitempty
message x.C object
";

    #[test]
    fn what_is_inlined_is_in_its_place() {
        let text = table(&Walked::read(WALKED).unwrap(), "versions", (1, 36)).unwrap();
        assert!(text.contains("const KUBERNETES: (u32, u32) = (1, 36);"), "{text}");
        // Field 1 is the fourth member, field 2 the first, and field 3 is inlined as the two between.
        assert!(text.contains("\n    3, 0, 128,\n"), "{text}");
        assert!(text.contains("\n    inline(3, 1),\n"), "{text}");
        // A string without `omitempty`, and a structure in any case.
        assert!(text.contains("message(Form::Object, 0, 4, 0, 3, 0x3), // x.A"), "{text}");
    }
}
