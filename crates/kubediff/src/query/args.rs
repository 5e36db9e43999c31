//! The command line of the questions.

mod source;

use std::path::PathBuf;

use jiff::civil::Date;

use clap::{Args, Subcommand, ValueEnum};

use crate::config::Period;
use crate::show::render::Color;

pub use source::{DaemonName, SourceArgs};

const EXIT_CODES: &str = "Exit codes: 0 answered, 1 the history cannot be read or has nothing of that name, 2 the command line, a kind, a \
path or a time cannot be understood, 3 the daemon cannot be asked, or its answer is incomplete.";

const LOG: &str = "Examples:\n  What happened to the deployment cart in the last two hours, difference by difference:\n    \
kubediff log deploy/cart -n shop --since -2h -p\n  Which images were changed yesterday:\n    \
kubediff log --path 'spec.template.spec.containers[*].image' --since yesterday --until today";
const SHOW: &str = "Examples:\n  The change with number 812 of the log, and the object after it:\n    \
kubediff show deploy/cart@#812\n  The deployment as it was at five past two:\n    \
kubediff show deploy/cart@14:05 -o yaml";
const DIFF: &str = "Examples:\n  The differences in the namespace shop since two o'clock:\n    \
kubediff diff -n shop --from 14:00\n  The changes that yesterday's release left in one deployment:\n    \
kubediff diff deploy/cart -n shop --from 'yesterday 14:00' --to 'yesterday 15:00'\n  A deployment in two clusters of a database:\n    \
kubediff diff deploy/cart -n shop --cluster prod --to-cluster staging";
const BLAME: &str = "Example:\n  The managers that set the images and resources of the deployment cart, and the values before:\n    \
kubediff blame deploy/cart -n shop --path spec.template.spec.containers";
const GET: &str = "Example:\n  The pods of the namespace shop as they were at five past two:\n    \
kubediff get pods -n shop --at 14:05";
const CLUSTERS: &str = "Example:\n  The clusters of a database, and what happened in all of them in the last hour:\n    \
kubediff clusters --history postgres://oncall@db.example.com/kubediff\n    \
kubediff log --all-clusters --since -1h --history postgres://oncall@db.example.com/kubediff";
const HISTORY: &str = "Example:\n  Copy a history that is in use, then verify the copy:\n    \
kubediff history backup /backup/history.db\n    kubediff history check --history /backup/history.db";

const ARCHIVE: &str = "Example:\n  Each night, the days that retention is about to remove, and the configuration of one of them:\n    \
kubediff history archive --cluster prod --older-than 29d /archive/\n    \
kubediff get cm -n shop --history /archive/prod-2026-11-23.db --at '2026-11-23 14:05'";

/// The questions to a history.
#[derive(Debug, Subcommand)]
pub enum Query {
    /// Shows what changed, the latest first
    #[command(after_help = help(LOG))]
    Log(Box<LogArgs>),
    /// Shows one change of an object, and the object after it
    #[command(after_help = help(SHOW))]
    Show(ShowRevisionArgs),
    /// Shows what is different between two times; what changed and changed back is not
    #[command(after_help = help(DIFF))]
    Diff(DiffArgs),
    /// Shows each field of an object: its value, since when, by which manager, and the value before
    #[command(after_help = help(BLAME))]
    Blame(BlameArgs),
    /// Lists objects as `kubectl get` would have at a time
    #[command(after_help = help(GET))]
    Get(GetArgs),
    /// Lists the clusters of a database: who records each, until when, and how much
    #[command(after_help = help(CLUSTERS))]
    Clusters(ClustersArgs),
    /// Verifies, copies or measures a history
    #[command(subcommand, after_help = help(HISTORY))]
    History(Maintain),
}

impl Query {
    /// Where the answer is read; `None` for a question that has its file.
    pub(super) fn source(&self) -> Option<&SourceArgs> {
        Some(match self {
            Self::Log(args) => &args.source,
            Self::Show(args) => &args.source,
            Self::Diff(args) => &args.source,
            Self::Blame(args) => &args.source,
            Self::Get(args) => &args.source,
            Self::Clusters(args) => &args.source,
            Self::History(Maintain::Check { source }) => source,
            Self::History(Maintain::Backup { source, .. }) => source,
            Self::History(Maintain::Archive(args)) => &args.source,
            Self::History(Maintain::Stats { source, .. }) => source,
            Self::History(Maintain::Migrate { .. } | Maintain::Scrub(_)) => return None,
        })
    }

    /// How the answer is shown; `None` where it is printed as it is.
    pub(super) fn screen(&self) -> Option<ScreenArgs> {
        match self {
            Self::Log(args) => Some(args.screen),
            Self::Show(args) => Some(args.screen),
            Self::Diff(args) => Some(args.screen),
            Self::Blame(args) => Some(args.screen),
            Self::Get(_) | Self::Clusters(_) | Self::History(_) => None,
        }
    }
}

/// Examples and exit codes.
fn help(examples: &str) -> String {
    format!("{examples}\n\n{EXIT_CODES}")
}

/// How to show an answer.
#[derive(Debug, Clone, Copy, Args)]
pub struct ScreenArgs {
    /// When to use colours: auto, always, never
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: Color,

    /// Do not show the answer in a pager. The pager is $KUBEDIFF_PAGER, $PAGER or `less -FRX`; $NO_PAGER switches it off, too
    #[arg(long)]
    pub no_pager: bool,

    /// The columns that the answer may take, as `--daemon` sends them; else those of the terminal
    #[arg(long, value_name = "NUMBER", hide = true)]
    pub columns: Option<usize>,
}

/// Which namespaces.
#[derive(Debug, Clone, Args)]
pub struct NamespaceArgs {
    /// Only this namespace; all of them without it
    #[arg(short = 'n', long, value_name = "NAME")]
    pub namespace: Option<String>,

    /// All namespaces, whatever -n says
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
}

impl NamespaceArgs {
    /// The namespace that is meant; `None` for all of them.
    pub(super) fn one(&self) -> Option<&str> {
        self.namespace.as_deref().filter(|_| !self.all_namespaces)
    }
}

/// The part of the log to show.
#[derive(Debug, Args)]
pub struct LogArgs {
    /// Objects, in kubectl's syntax: `deploy`, `deployments.apps`, `deploy,sts`, `deploy/cart`, `deploy cart`; everything without it
    #[arg(value_name = "KIND,...[/NAME]", num_args = 0..=2)]
    pub target: Vec<String>,

    /// Which namespaces.
    #[command(flatten)]
    pub namespaces: NamespaceArgs,

    /// From this time on: `2026-11-23T14:05:00Z`, `2026-11-23`, `14:05`, `yesterday 14:05`, `-2h`, `2h ago`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub since: Option<String>,

    /// Before this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub until: Option<String>,

    /// Only changes by this field manager; `*` stands for any characters
    #[arg(long, value_name = "NAME")]
    pub manager: Option<String>,

    /// Only changes by requests of this user, if the daemon has the audit log; `*` stands for any characters
    #[arg(long, value_name = "NAME")]
    pub by_user: Option<String>,

    /// Only changes at this path or below it: `spec.template`, `spec.template.spec.containers[*].image`; `*` in a name stands
    /// for any characters
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,

    /// Only changes of these sorts; several are separated by commas
    #[arg(long, value_name = "SORT", value_delimiter = ',')]
    pub change: Vec<Sort>,

    /// Also the Events about these objects, and about objects that they control
    #[arg(long)]
    pub events: bool,

    /// Show a rollout, or what else followed from a change, as one story: auto (on a terminal), always, never
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_value = "auto", default_missing_value = "always")]
    pub fold: Fold,

    /// Only the records of the story with this number
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["fold", "target", "since", "until", "manager", "by_user", "path", "change", "namespace", "all_namespaces"])]
    pub story: Option<u64>,

    /// At most this many records
    #[arg(long, value_name = "NUMBER")]
    pub limit: Option<usize>,

    /// The oldest first
    #[arg(long)]
    pub reverse: bool,

    /// Show each difference instead of the summary
    #[arg(short = 'p', long)]
    pub patch: bool,

    /// One line per change, as `-o oneline`
    #[arg(long, conflicts_with = "patch")]
    pub oneline: bool,

    /// How to show changes
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    pub output: Format,

    /// How to show the answer.
    #[command(flatten)]
    pub screen: ScreenArgs,

    /// Where the answer is read.
    #[command(flatten)]
    pub source: SourceArgs,
}

/// How changes are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For programs: one JSON object per line
    Json,
    /// One line per change
    Oneline,
}

/// When changes are folded to stories.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Fold {
    /// On a terminal, unless single changes are asked for
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// A sort of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// The object was created
    Added,
    /// It has another state
    Updated,
    /// It was deleted
    Deleted,
    /// It is another object of the same name
    Recreated,
}

/// Which recording, and how to show it.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The recording; `-` for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// One line per change, as `-o oneline`
    #[arg(long)]
    pub oneline: bool,

    /// How to show changes
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    pub output: Format,

    /// In JSON: also the objects as they were and are, as `old` and `new`; the output is the recording, byte for byte
    #[arg(long)]
    pub objects: bool,

    /// How to show the answer.
    #[command(flatten)]
    pub screen: ScreenArgs,
}

/// Which version to show.
#[derive(Debug, Args)]
pub struct ShowRevisionArgs {
    /// The object and the version: a number of the log (`deploy/cart@#812`), a resourceVersion (`deploy/cart@55213`), or a time
    /// (`deploy/cart@14:05`); the newest without one. Or a number of the log alone: `812`
    #[arg(value_name = "KIND/NAME[@REV]")]
    pub object: String,

    /// The object's namespace
    #[arg(short = 'n', long, value_name = "NAME")]
    pub namespace: Option<String>,

    /// How to show it
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    pub output: VersionFormat,

    /// Also show the object's managedFields
    #[arg(long)]
    pub show_managed_fields: bool,

    /// How to show the answer.
    #[command(flatten)]
    pub screen: ScreenArgs,

    /// Where the answer is read.
    #[command(flatten)]
    pub source: SourceArgs,
}

/// How a version is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum VersionFormat {
    /// The change for people, then the object as YAML
    #[default]
    Text,
    /// The object alone
    Yaml,
    /// Change and object on one line
    Json,
}

/// The states to compare.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Objects, in kubectl's syntax: `deploy`, `deployments.apps`, `deploy,sts`, `deploy/cart`, `deploy cart`; everything without it
    #[arg(value_name = "KIND,...[/NAME]", num_args = 0..=2)]
    pub target: Vec<String>,

    /// Which namespaces.
    #[command(flatten)]
    pub namespaces: NamespaceArgs,

    /// The earlier time: `2026-11-23T14:05:00Z`, `2026-11-23`, `14:05`, `yesterday 14:05`, `-2h`, `2h ago`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, required_unless_present = "to_cluster")]
    pub from: Option<String>,

    /// The later time; now without it
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "now")]
    pub to: String,

    /// Compare an object with that of the same name in this cluster of the same database, instead of two times
    #[arg(long, value_name = "NAME", conflicts_with_all = ["from", "to", "all_clusters", "all_namespaces"])]
    pub to_cluster: Option<String>,

    /// When to compare clusters; now without it
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, requires = "to_cluster")]
    pub at: Option<String>,

    /// Show what a noise rule leaves out; names separated by commas, or `all`. The rules: `kubediff watch --list-noise`
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    pub show: Vec<String>,

    /// Leave out what a noise rule finds, such as `status`
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    pub hide: Vec<String>,

    /// How to show differences
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    pub output: DiffFormat,

    /// How to show the answer.
    #[command(flatten)]
    pub screen: ScreenArgs,

    /// Where the answer is read.
    #[command(flatten)]
    pub source: SourceArgs,
}

/// How differences are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    /// For people
    #[default]
    Text,
    /// For programs: one JSON object per line, with the objects as `old` and `new`, and all of the difference as `patch`, a
    /// JSON Patch
    Json,
    /// One line per object
    Oneline,
}

/// Which object to look at.
#[derive(Debug, Args)]
pub struct BlameArgs {
    /// The object: `deploy/cart` or `deploy cart`
    #[arg(value_name = "KIND/NAME", num_args = 1..=2, required = true)]
    pub target: Vec<String>,

    /// The object's namespace
    #[arg(short = 'n', long, value_name = "NAME")]
    pub namespace: Option<String>,

    /// Only fields at this path or below it, such as `spec.template` or `metadata.labels`
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,

    /// How to show fields
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    pub output: BlameFormat,

    /// How to show the answer.
    #[command(flatten)]
    pub screen: ScreenArgs,

    /// Where the answer is read.
    #[command(flatten)]
    pub source: SourceArgs,
}

/// How fields are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum BlameFormat {
    /// For people
    #[default]
    Text,
    /// For programs: one JSON object
    Json,
}

/// Which objects to list.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// The kinds, or objects of one name, in kubectl's syntax: `deploy`, `deployments.apps`, `deploy,sts`, `deploy/cart`, `deploy cart`
    #[arg(value_name = "KIND,...[/NAME]", num_args = 1..=2, required = true)]
    pub target: Vec<String>,

    /// Which namespaces.
    #[command(flatten)]
    pub namespaces: NamespaceArgs,

    /// When: `2026-11-23T14:05:00Z`, `2026-11-23`, `14:05`, `yesterday 14:05`, `-2h`, `2h ago`; the newest state without it
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub at: Option<String>,

    /// How to show objects
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "table")]
    pub output: ObjectFormat,

    /// Also show the objects' managedFields
    #[arg(long)]
    pub show_managed_fields: bool,

    /// Do not print the heads of columns
    #[arg(long)]
    pub no_headers: bool,

    /// Where the answer is read.
    #[command(flatten)]
    pub source: SourceArgs,
}

/// How objects are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ObjectFormat {
    /// As `kubectl get` does
    #[default]
    Table,
    /// With more columns
    Wide,
    /// KIND/NAME
    Name,
    /// The objects
    Yaml,
    /// The objects
    Json,
}

/// How to list clusters.
#[derive(Debug, Args)]
pub struct ClustersArgs {
    /// How to show them
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
    pub output: BlameFormat,

    /// Where the answer is read.
    #[command(flatten)]
    pub source: SourceArgs,
}

/// A command on the file itself.
#[derive(Debug, Subcommand)]
pub enum Maintain {
    /// Reads everything, and compares it with its checksums and indexes
    Check {
        /// Where the answer is read.
        #[command(flatten)]
        source: SourceArgs,
    },
    /// Copies the history into a new file, while others read and write it
    Backup {
        /// The new file
        #[arg(value_name = "TO")]
        to: PathBuf,
        /// Where the answer is read.
        #[command(flatten)]
        source: SourceArgs,
    },
    /// Copies days of a history in a database into files, each of which is a history by itself
    #[command(after_help = help(ARCHIVE))]
    Archive(ArchiveArgs),
    /// Migrates a history of an older format, after a backup beside it; or makes the tables of histories in a database
    Migrate {
        /// The file, or the address of a database: postgres://USER@HOST/DATABASE
        #[arg(value_name = "FILE")]
        history: String,
    },
    /// Masks a value, or what is at a path, in everything that the file has; beside a daemon, by the daemon
    Scrub(ScrubArgs),
    /// Shows size, times, and how far each sink is behind
    Stats {
        /// How to show it
        #[arg(short = 'o', long, value_name = "FORMAT", default_value = "text")]
        output: BlameFormat,
        /// Where the answer is read.
        #[command(flatten)]
        source: SourceArgs,
    },
}

/// The days to copy, and where to.
#[derive(Debug, Args)]
pub struct ArchiveArgs {
    /// The folder of the files, which are called CLUSTER-DAY.db
    #[arg(value_name = "TO")]
    pub to: PathBuf,

    /// This day (UTC): 2026-11-23
    #[arg(long, value_name = "DAY", required_unless_present = "older_than")]
    pub day: Option<Date>,

    /// All days that are older, but those whose files are there: 30d
    #[arg(long, value_name = "TIME", conflicts_with = "day")]
    pub older_than: Option<Period>,

    /// Where the days are read.
    #[command(flatten)]
    pub source: SourceArgs,
}

/// The value or the path to mask, and the objects.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true).args(["value", "path"])))]
pub struct ScrubArgs {
    /// The file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The file that has the value, `-` for standard input: in all forms in which values of Secrets are found
    #[arg(long, value_name = "FILE")]
    pub value: Option<PathBuf>,

    /// The path, as `hide` in the configuration has it: `spec.token`
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,

    /// Only in objects of this resource
    #[arg(long, value_name = "KIND")]
    pub resource: Option<String>,

    /// Only in objects of this namespace
    #[arg(short = 'n', long, value_name = "NAME")]
    pub namespace: Option<String>,

    /// Only in objects of this name
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}
