//! Compares the numbers and types of fields in `generated.proto` with Go's.

use std::collections::BTreeMap;

use super::Walked;
use crate::definitions::Messages;

/// Returns the first difference.
pub(super) fn check(defined: &Messages, walked: &Walked) -> Result<(), String> {
    for (name, message) in &walked.messages {
        let defined = defined.get(name).ok_or(format!("{name} is not defined"))?;
        let defined: BTreeMap<_, _> =
            defined.iter().map(|field| (field.number, (field.many, &field.of))).collect();
        let fields = message.fields.iter().map(|field| (field.number, (field.many, &field.of)));
        let said: BTreeMap<_, _> = fields.collect();
        if said.len() != message.fields.len() || said != defined {
            return Err(format!("{name} is defined as {defined:?}, and in Go as {said:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions;

    const TEXT: &str = "package k8s.io.a;\n// A is.\nmessage A {\n  optional .k8s.io.b.B b = 1;\n  map<string, C> c = 2;\n}\n";

    #[test]
    fn go_must_agree() {
        let mut defined = Messages::new();
        definitions::read(TEXT, &mut defined);
        for (said, agrees) in [
            (" 1 b k8s.io.b.B -\n 2 c {k8s.io.a.C} -\n", true),
            (" 1 b k8s.io.b.B -\n", false),
            (" 1 b k8s.io.b.B -\n 2 c k8s.io.a.C -\n", false),
            (" 1 b k8s.io.b.B -\n 3 c {k8s.io.a.C} -\n", false),
        ] {
            let walked = Walked::read(&format!("message k8s.io.a.A object\n{said}")).unwrap();
            assert_eq!(check(&defined, &walked).is_ok(), agrees, "{said}");
        }
    }
}
