//! The files that a move may write, as they were before it.

use std::fs;
use std::path::PathBuf;

use tooling::Error;

use crate::tree::Tree;

pub(super) struct Files {
    /// The path below the root, the path, and the content.
    before: Vec<(String, PathBuf, Vec<u8>)>,
}

impl Files {
    pub(super) fn read(tree: &Tree, paths: impl IntoIterator<Item = String>) -> Result<Self, Error> {
        let read = |name: String| {
            let path = tree.root().join(&name);
            let content = fs::read(&path).map_err(Error::io(&path))?;
            Ok((name, path, content))
        };
        Ok(Self { before: paths.into_iter().map(read).collect::<Result<_, Error>>()? })
    }

    /// Writes all of them as they were.
    pub(super) fn restore(&self) -> Result<(), Error> {
        self.before
            .iter()
            .try_for_each(|(_, path, content)| fs::write(path, content).map_err(Error::io(path)))
    }

    /// The files that differ from before.
    pub(super) fn changed(&self) -> Result<Vec<&str>, Error> {
        let mut changed = Vec::new();
        for (name, path, content) in &self.before {
            if fs::read(path).map_err(Error::io(path))? != *content {
                changed.push(name.as_str());
            }
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_undone() {
        let root = std::env::temp_dir().join(format!("xtask-files-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        ["a", "b"].into_iter().for_each(|name| fs::write(root.join(name), name).unwrap());
        let tree = Tree::at(root.clone());
        let files = Files::read(&tree, ["a", "b"].map(str::to_owned)).unwrap();
        assert!(files.changed().unwrap().is_empty());
        fs::write(root.join("b"), "other").unwrap();
        assert_eq!(files.changed().unwrap(), ["b"]);
        files.restore().unwrap();
        assert!(files.changed().unwrap().is_empty());
        assert!(Files::read(&tree, ["c".to_owned()]).is_err());
        fs::remove_dir_all(&root).unwrap();
    }
}
