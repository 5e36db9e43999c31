//! The texts that name the release of Kubernetes that the repository is at.
//!
//! A text that names a release for another reason does not follow: since when a server does something, what a recorded
//! answer comes from, what a figure was measured with. So files are listed, and in them only these phrases follow.

use control_plane::Release;
use tooling::Error;

use crate::tree::Tree;

/// The files with such texts.
pub(super) const FILES: [&str; 12] = [
    "control-plane/README.md",
    "crates/conformance/tests/foreign/kubectl/look.rs",
    "crates/informer/src/options/choices.rs",
    "crates/kube-table/src/builtin.rs",
    "crates/kube-table/src/table.rs",
    "crates/kubediff/src/demo/objects.rs",
    "crates/serve/src/options.rs",
    "crates/serve/src/watch/bookmark.rs",
    "crates/testapi/src/builder.rs",
    "crates/testapi/src/core.rs",
    "docs/COSTS.md",
    "docs/KUBERNETES.md",
];

/// The phrases that follow in a file of the list.
fn phrases(release: Release) -> [String; 7] {
    let Release { minor, patch } = release;
    [
        format!("v1.{minor}.{patch}"),
        format!("Kubernetes 1.{minor}.{patch}"),
        format!("Kubernetes 1.{minor}"),
        format!("kube-apiserver 1.{minor}"),
        format!("Version: v1.{minor}"),
        format!("minor: {minor}"),
        format!("gitMinor={minor}"),
    ]
}

/// Replaces the phrases in the files, and prints the lines that changed: a person judges them.
pub(super) fn replace(tree: &Tree, from: Release, to: Release) -> Result<(), Error> {
    for path in FILES {
        let text = tree.read(path)?;
        let moved = moved(&text, from, to);
        for (number, (old, new)) in text.lines().zip(moved.lines()).enumerate() {
            if old != new {
                println!("{path}:{}: {}", number + 1, new.trim());
            }
        }
        let path = tree.root().join(path);
        std::fs::write(&path, moved).map_err(Error::io(&path))?;
    }
    Ok(())
}

fn moved(text: &str, from: Release, to: Release) -> String {
    phrases(from).iter().zip(phrases(to)).fold(text.to_owned(), |text, (from, to)| whole(&text, from, &to))
}

/// Replaces a phrase where no number goes on after it: `1.3` is not in `1.37`, but in `1.3.`
fn whole(text: &str, from: &str, to: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        let (before, found) = rest.split_at(at);
        let after = &found[from.len()..];
        let mut next = after.bytes();
        let goes_on = match next.next() {
            Some(b'.') => next.next().is_some_and(|byte| byte.is_ascii_digit()),
            byte => byte.is_some_and(|byte| byte.is_ascii_digit()),
        };
        result.push_str(before);
        result.push_str(if goes_on { from } else { to });
        rest = after;
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_file_names_the_release() {
        let (tree, release) = (Tree::here(), control_plane::pinned().unwrap());
        let other = Release { minor: 999, patch: 9 };
        for path in FILES {
            let text = tree.read(path).unwrap();
            assert_ne!(
                moved(&text, release, other),
                text,
                "{path} does not name {release}: take it off the list"
            );
        }
    }

    #[test]
    fn only_what_names_the_release_follows() {
        let (from, to) = (Release { minor: 3, patch: 1 }, Release { minor: 4, patch: 0 });
        let text = "v1.3.1 and v1.3.12; Kubernetes 1.3.1; of Kubernetes 1.3. From 1.3 on; Kubernetes 1.37; minor: 3, gitMinor=3\n";
        let moved = moved(text, from, to);
        let expected = "v1.4.0 and v1.3.12; Kubernetes 1.4.0; of Kubernetes 1.4. From 1.3 on; Kubernetes 1.37; minor: 4, gitMinor=4\n";
        assert_eq!(moved, expected);
    }
}
