//! `generated.proto`: the numbers and types of fields, which must agree with Go's.

use std::collections::BTreeMap;

use super::{Many, Walked};

/// The fields of messages by their numbers.
#[derive(Default)]
pub(super) struct Definitions {
    messages: BTreeMap<String, BTreeMap<u32, (Many, String)>>,
}

impl Definitions {
    /// Kubernetes writes one definition on one line.
    pub(super) fn read(&mut self, text: &str) {
        let mut package = "";
        let mut message = String::new();
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("package ") {
                package = name.trim_end_matches(';');
            } else if let Some(name) = line.strip_prefix("message ") {
                message = format!("{package}.{}", name.trim_end_matches(" {"));
                self.messages.insert(message.clone(), BTreeMap::new());
            } else if let (Some((number, field)), Some(fields)) =
                (field(line, package), self.messages.get_mut(&message))
            {
                fields.insert(number, field);
            }
        }
    }

    /// Returns the differences from Go.
    pub(super) fn check(&self, walked: &Walked) -> Result<(), String> {
        for (name, message) in &walked.messages {
            let defined = self.messages.get(name).ok_or(format!("{name} is not defined"))?;
            let fields = message.fields.iter().map(|field| (field.number, (field.many, field.of.clone())));
            let said: BTreeMap<_, _> = fields.collect();
            if said.len() != message.fields.len() || said != *defined {
                return Err(format!("{name} is defined as {defined:?}, and in Go as {said:?}"));
            }
        }
        Ok(())
    }
}

fn field(line: &str, package: &str) -> Option<(u32, (Many, String))> {
    let (declared, number) = line.strip_suffix(';')?.split_once(" = ")?;
    let (many, rest) = if let Some(rest) = declared.strip_prefix("optional ") {
        (Many::One, rest)
    } else if let Some(rest) = declared.strip_prefix("repeated ") {
        (Many::List, rest)
    } else {
        (Many::Map, declared.strip_prefix("map<string, ")?)
    };
    let of = rest.split_once(' ')?.0.trim_end_matches('>');
    let of = match of.strip_prefix('.').unwrap_or(of) {
        scalar @ ("string" | "bytes" | "int32" | "int64" | "bool" | "double") => scalar.to_owned(),
        full if full.starts_with("k8s.io.") => full.to_owned(),
        name => format!("{package}.{name}"),
    };
    Some((number.parse().ok()?, (many, of)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "package k8s.io.a;\n// A is.\nmessage A {\n  optional .k8s.io.b.B b = 1;\n  map<string, C> c = 2;\n}\n";

    #[test]
    fn go_must_agree() {
        let mut definitions = Definitions::default();
        definitions.read(TEXT);
        for (said, agrees) in [
            (" 1 b k8s.io.b.B -\n 2 c {k8s.io.a.C} -\n", true),
            (" 1 b k8s.io.b.B -\n", false),
            (" 1 b k8s.io.b.B -\n 2 c k8s.io.a.C -\n", false),
            (" 1 b k8s.io.b.B -\n 3 c {k8s.io.a.C} -\n", false),
        ] {
            let walked = Walked::read(&format!("message k8s.io.a.A object\n{said}")).unwrap();
            assert_eq!(definitions.check(&walked).is_ok(), agrees, "{said}");
        }
    }
}
