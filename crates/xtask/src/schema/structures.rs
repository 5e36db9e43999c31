//! The facts that the Go structures behind the schemas have and OpenAPI lacks: which fields are pointers, whose zero value
//! differs from a missing one, and which fields are written even without a value. The declarations come from the Go
//! modules of the control plane for tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tooling::{Error, process};

use crate::tree::Tree;

/// The Go modules, with the prefixes of their schemas' names.
const MODULES: [(&str, &str); 4] = [
    ("io.k8s.api.", "k8s.io/api"),
    ("io.k8s.apimachinery.", "k8s.io/apimachinery"),
    ("io.k8s.apiextensions-apiserver.", "k8s.io/apiextensions-apiserver"),
    ("io.k8s.kube-aggregator.", "k8s.io/kube-aggregator"),
];

/// The structures of all packages that were looked up.
pub(super) struct Structures {
    modules: Vec<(&'static str, PathBuf)>,
    packages: BTreeMap<PathBuf, Package>,
}

/// The fields of the structures of a package, by structure and name in JSON.
type Package = BTreeMap<(String, String), Field>;

/// The declaration of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) pointer: bool,
    /// It is written even without a value.
    pub(super) kept: bool,
}

impl Structures {
    pub(super) fn of(tree: &Tree) -> Result<Self, Error> {
        let directory = |module: &str| {
            let mut go = Command::new("go");
            go.current_dir(tree.root().join("control-plane")).args(["list", "-m", "-f", "{{.Dir}}", module]);
            process::output(&mut go).map(|path| PathBuf::from(path.trim()))
        };
        let modules = MODULES.iter().map(|(start, module)| Ok((*start, directory(module)?)));
        Ok(Self { modules: modules.collect::<Result<_, Error>>()?, packages: BTreeMap::new() })
    }

    /// The declaration of a schema's field, if the schema belongs to a structure.
    pub(super) fn field(&mut self, schema: &str, name: &str) -> Result<Option<Field>, Error> {
        let Some((package, structure)) = schema.rsplit_once('.') else { return Ok(None) };
        let found = self
            .modules
            .iter()
            .find_map(|(start, module)| Some(module.join(package.strip_prefix(*start)?.replace('.', "/"))));
        let Some(directory) = found.filter(|directory| directory.is_dir()) else { return Ok(None) };
        if !self.packages.contains_key(&directory) {
            self.packages.insert(directory.clone(), package_in(&directory)?);
        }
        let key = (structure.to_owned(), name.to_owned());
        Ok(self.packages.get(&directory).and_then(|package| package.get(&key)).copied())
    }
}

fn package_in(directory: &Path) -> Result<Package, Error> {
    let mut package = Package::new();
    for entry in std::fs::read_dir(directory).map_err(Error::io(directory))? {
        let path = entry.map_err(Error::io(directory))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".go") && !name.ends_with("_test.go") && !name.contains("generated") {
            declarations(&std::fs::read_to_string(&path).map_err(Error::io(&path))?, &mut package);
        }
    }
    Ok(package)
}

fn declarations(source: &str, package: &mut Package) {
    let mut structure = None;
    for line in source.lines() {
        let declared = line.strip_prefix("type ").and_then(|rest| rest.strip_suffix(" struct {"));
        if let Some(name) = declared {
            structure = Some(name.to_owned());
        } else if line.starts_with('}') {
            structure = None;
        } else if let (Some(structure), Some((declaration, tag))) = (&structure, line.split_once("`json:\""))
        {
            let tag = tag.split('"').next().unwrap_or_default();
            let mut options = tag.split(',');
            let name = options.next().unwrap_or_default();
            let kept = !options.any(|option| matches!(option, "omitempty" | "omitzero" | "inline"));
            let pointer = declaration.split_whitespace().nth(1).is_some_and(|of| of.starts_with('*'));
            package.insert((structure.clone(), name.to_owned()), Field { pointer, kept });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_of_fields_are_read() {
        let source = "type Lease struct {\n\tmetav1.ObjectMeta `json:\"metadata,omitempty\"`\n\t// Holder.\n\tHolder *string \
                      `json:\"holder,omitempty\" protobuf:\"x\"`\n\tRules []Rule `json:\"rules\"`\n}\nfunc f() {\n}\n";
        let mut package = Package::new();
        declarations(source, &mut package);
        let field = |name: &str| package.get(&("Lease".to_owned(), name.to_owned())).copied();
        assert_eq!(field("holder"), Some(Field { pointer: true, kept: false }));
        assert_eq!(field("rules"), Some(Field { pointer: false, kept: true }));
        assert_eq!(field("metadata"), Some(Field { pointer: false, kept: false }));
        assert_eq!(field("nothing"), None);
    }
}
