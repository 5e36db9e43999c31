//! Suggests a name for one that does not exist.

/// The name that is most alike, else all of them.
pub(crate) fn instead(name: &str, known: &[&str]) -> String {
    let likeness = |known: &str| strsim::jaro_winkler(&name.to_lowercase(), &known.to_lowercase());
    let alike = known.iter().map(|known| (likeness(known), known));
    match alike.max_by(|(one, _), (other, _)| one.total_cmp(other)) {
        Some((likeness, known)) if likeness > 0.85 => format!("; did you mean `{known}`?"),
        Some(_) if known.len() == 1 => format!("; there is {}", listed(known)),
        Some(_) => format!("; there are {}", listed(known)),
        None => String::new(),
    }
}

pub(crate) fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
