//! `cargo xtask messages`: writes the table of Kubernetes' protobuf messages for `informer-protobuf`, and the code of
//! `informer-k8s-openapi`.
//!
//! Two sources state the numbers and types of fields: `generated.proto` and the tags of the Go structures. They must
//! agree. Only Go knows the names, order and presence of fields in JSON, so a small Go program walks over all types of
//! all kinds (`messages/walk.go`). `messages/layout.rs` lays out its output as tables of constants, `messages/structs.rs` writes
//! it as code for k8s-openapi's structs.

mod definition;
mod layout;
mod structs;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tooling::{Error, process};

use crate::definitions::{self, MODULES, Many, Messages};
use crate::metadata::Metadata;
use crate::tree::Tree;

/// The file that `informer-protobuf` includes.
pub(crate) const TABLE: &str = "crates/informer-protobuf/src/schema/table.inc";
/// The file that `informer-k8s-openapi` includes.
const CODE: &str = "crates/informer-k8s-openapi/src/generated/messages.inc";
const WALK: &str = include_str!("messages/walk.go");

pub(crate) fn run(tree: &Tree) -> Result<(), Error> {
    let mut packages = Vec::new();
    let mut defined = Messages::new();
    let mut versions = Vec::new();
    for module in MODULES {
        let listed = go(tree, &["list", "-m", "-f", "{{.Dir}} {{.Version}}", module])?;
        let (directory, version) = listed.trim().split_once(' ').unwrap_or((listed.trim(), ""));
        versions.push(format!("{module} {version}"));
        let directory = PathBuf::from(directory);
        for path in definitions::below(&directory)? {
            let text = std::fs::read_to_string(&path).map_err(Error::io(&path))?;
            definitions::read(&text, &mut defined);
            packages.extend(package_of(&path, &directory, module));
        }
    }
    packages.sort();
    let walked = walk(tree, &packages)?;
    let walked = Walked::read(&walked).map_err(Error::Found)?;
    definition::check(&defined, &walked).map_err(Error::Found)?;
    let kubernetes = kubernetes(&versions).ok_or("no release of Kubernetes has these modules".to_owned());
    let kubernetes = kubernetes.map_err(Error::Found)?;
    let table = layout::table(&walked, &versions.join(", "), kubernetes).map_err(Error::Found)?;
    let path = tree.root().join(TABLE);
    std::fs::write(&path, &table).map_err(Error::io(&path))?;
    println!("{TABLE}: {} kinds, {} messages", walked.kinds.len(), walked.messages.len());

    let mut structs = structs::Structs::of(&sources_of_k8s_openapi(tree)?).map_err(Error::Found)?;
    let code = structs::code(&walked, &mut structs, &versions.join(", ")).map_err(Error::Found)?;
    let path = tree.root().join(CODE);
    std::fs::write(&path, &code).map_err(Error::io(&path))?;
    println!("{CODE}: {} lines", code.lines().count());
    Ok(())
}

fn sources_of_k8s_openapi(tree: &Tree) -> Result<PathBuf, Error> {
    let metadata = Metadata::all(tree.root())?;
    let package = metadata.packages.iter().find(|package| package.name == "k8s-openapi");
    let folder = package.and_then(|package| package.manifest_path.parent());
    folder
        .map(|folder| folder.join("src"))
        .ok_or_else(|| Error::Found("k8s-openapi is no dependency".to_owned()))
}

/// The release of Kubernetes whose API this is: 1.36 publishes its as `k8s.io/api v0.36.3`.
fn kubernetes(versions: &[String]) -> Option<(u32, u32)> {
    let version = versions.iter().find_map(|version| version.strip_prefix("k8s.io/api v"))?;
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    match (numbers.next()??, numbers.next()??) {
        (0, minor @ 1..) => Some((1, minor)),
        _ => None,
    }
}

/// The output of the walk.
#[derive(Default)]
struct Walked {
    kinds: Vec<Kind>,
    messages: BTreeMap<String, Message>,
}

struct Kind {
    api_version: String,
    kind: String,
    message: String,
    /// Whether its JSON has `kind` and `apiVersion`.
    says_it: bool,
}

struct Message {
    form: String,
    /// In the order of JSON.
    fields: Vec<Field>,
}

struct Field {
    number: u32,
    /// `~` if JSON has the fields of the field's message in its place.
    name: String,
    many: Many,
    of: String,
    presence: Vec<String>,
}

impl Walked {
    fn read(text: &str) -> Result<Self, String> {
        let mut walked = Self::default();
        let mut current = String::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match (line.starts_with(' '), words.as_slice()) {
                (false, ["kind", api_version, kind, message, says]) => walked.kinds.push(Kind {
                    api_version: (*api_version).to_owned(),
                    kind: (*kind).to_owned(),
                    message: (*message).to_owned(),
                    says_it: *says == "says-it",
                }),
                (false, ["message", name, form]) => {
                    current = (*name).to_owned();
                    let message = Message { form: (*form).to_owned(), fields: Vec::new() };
                    walked.messages.insert(current.clone(), message);
                }
                (true, [number, name, of, presence @ ..]) => {
                    let (many, of) = many(of);
                    let field = Field {
                        number: number.parse().map_err(|_| format!("no number: {line}"))?,
                        name: (*name).to_owned(),
                        many,
                        of: of.to_owned(),
                        presence: presence.iter().map(|&flag| flag.to_owned()).collect(),
                    };
                    walked.messages.entry(current.clone()).and_modify(|message| message.fields.push(field));
                }
                _ => return Err(format!("malformed line: {line}")),
            }
        }
        Ok(walked)
    }
}

fn many(of: &str) -> (Many, &str) {
    let inside = |open, close| of.strip_prefix(open)?.strip_suffix(close);
    if let Some(of) = inside('[', ']') {
        (Many::List, of)
    } else if let Some(of) = inside('{', '}') {
        (Many::Map, of)
    } else {
        (Many::One, of)
    }
}

fn go(tree: &Tree, arguments: &[&str]) -> Result<String, Error> {
    process::output(Command::new("go").current_dir(tree.root().join("control-plane")).args(arguments))
}

/// The Go package of these definitions, if it has kinds.
fn package_of(definitions: &Path, directory: &Path, module: &str) -> Option<String> {
    let folder = definitions.parent()?;
    let registers = std::fs::read_to_string(folder.join("register.go")).ok()?.contains("AddToScheme");
    let path = folder.strip_prefix(directory).ok()?.to_str()?.replace('\\', "/");
    // A group of apimachinery's own tests.
    (registers && !path.contains("testapigroup")).then(|| format!("{module}/{path}"))
}

fn walk(tree: &Tree, packages: &[String]) -> Result<String, Error> {
    let mut list = "package main\n\nimport (\n\t\"k8s.io/apimachinery/pkg/runtime\"\n".to_owned();
    for (index, package) in packages.iter().enumerate() {
        _ = writeln!(list, "\tp{index} \"{package}\"");
    }
    list += ")\n\nvar packages = []func(*runtime.Scheme) error{\n";
    (0..packages.len()).for_each(|index| _ = writeln!(list, "\tp{index}.AddToScheme,"));
    list += "}\n";

    let folder = std::env::temp_dir().join(format!("xtask-messages-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
    let files = [("walk.go", WALK), ("packages.go", &list)].map(|(name, text)| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(Error::io(&path)).map(|()| path.display().to_string())
    });
    let [program, list] = files;
    let walked = go(tree, &["run", &program?, &list?]);
    // A failure leaves a file in the system's temporary directory, which the system clears.
    let _ = std::fs::remove_dir_all(&folder);
    walked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_walk_says_is_read() {
        let walked =
            Walked::read("kind v1 A x.A says-it\nmessage x.A object\n 1 b [string] pointer omitempty\n")
                .unwrap();
        assert_eq!((walked.kinds[0].message.as_str(), walked.kinds[0].says_it), ("x.A", true));
        let field = &walked.messages["x.A"].fields[0];
        assert_eq!((field.number, field.many, field.of.as_str()), (1, Many::List, "string"));
        assert_eq!(field.presence, ["pointer", "omitempty"]);
        assert!(Walked::read("what").is_err());
    }

    #[test]
    fn the_release_is_that_of_the_api() {
        let of =
            |version: &str| kubernetes(&["k8s.io/kube-aggregator v0.0.0".to_owned(), version.to_owned()]);
        assert_eq!(of("k8s.io/api v0.36.3"), Some((1, 36)));
        assert_eq!(of("k8s.io/api v0.37.0-alpha.1"), Some((1, 37)));
        assert_eq!(of("k8s.io/api v0.0.0"), None);
        assert_eq!(of("k8s.io/api v2.1.0"), None);
        assert_eq!(of("k8s.io/apimachinery v0.36.3"), None);
    }
}
