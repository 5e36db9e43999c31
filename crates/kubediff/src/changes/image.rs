//! The difference of two container images.

/// A digest is recognised by this many digits.
const DIGITS: usize = 12;

/// The tags, or the starts of the digests, of two images of one repository: `1.27` and `1.28`; else both in full.
pub(crate) fn versions(old: &str, new: &str) -> (String, String) {
    match (split(old), split(new)) {
        (Some((old_name, old)), Some((new_name, new))) if old_name == new_name && old != new => {
            (short(old), short(new))
        }
        _ => (old.to_owned(), new.to_owned()),
    }
}

/// Name and version. A tag beside a digest says nothing that the digest does not.
fn split(image: &str) -> Option<(&str, &str)> {
    if let Some((name, digest)) = image.split_once('@') {
        return Some((split(name).map_or(name, |(name, _)| name), digest));
    }
    // The registry may have a port.
    let (name, tag) = image.rsplit_once(':')?;
    (!tag.contains('/') && !tag.is_empty()).then_some((name, tag))
}

fn short(version: &str) -> String {
    match version.split_once(':') {
        Some((algorithm, digits)) => {
            format!("{algorithm}:{}", digits.get(..DIGITS).unwrap_or(digits))
        }
        None => version.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::versions;

    #[test]
    fn people_write_what_differs() {
        let digest = |c: char| format!("r.io/web@sha256:{}", c.to_string().repeat(64));
        for (old, new, expected) in [
            ("nginx:1.27", "nginx:1.28", "1.27 -> 1.28"),
            ("r.io:5000/a/web:1", "r.io:5000/a/web:2", "1 -> 2"),
            ("r.io/web:1", "mirror.io/web:1", "r.io/web:1 -> mirror.io/web:1"),
            ("web", "web:2", "web -> web:2"),
            ("r.io:5000/web", "r.io:5001/web", "r.io:5000/web -> r.io:5001/web"),
            (&digest('a'), &digest('b'), "sha256:aaaaaaaaaaaa -> sha256:bbbbbbbbbbbb"),
            ("web:1@sha256:ab", "web:2@sha256:cd", "sha256:ab -> sha256:cd"),
        ] {
            let (old, new) = versions(old, new);
            assert_eq!(format!("{old} -> {new}"), expected);
        }
    }
}
