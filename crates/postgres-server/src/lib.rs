//! Starts a real PostgreSQL, in a folder and at a port of its own, for tests and benchmarks.
//!
//! ```no_run
//! let server = postgres_server::Server::start(postgres_server::Durability::None)?;
//! let database = server.create_database()?;
//! println!("{}", server.address(&database));
//! # Ok::<(), postgres_server::Error>(())
//! ```

mod network;

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use control_plane::free_port;
use tempfile::TempDir;

pub use network::Network;

/// A start takes no longer than this.
const START: Duration = Duration::from_secs(60);

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The programs of PostgreSQL are not installed.
    #[error("there is no PostgreSQL here; install it (`apt-get install postgresql`)")]
    NotInstalled,
    /// A program failed.
    #[error("{program} failed: {output}")]
    Failed {
        /// The program.
        program: String,
        /// What it printed.
        output: String,
    },
    /// The machine refused something.
    #[error("{doing}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// What survives the end of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: quicker tests.
    None,
    /// All that is committed.
    Full,
}

/// A running server. Dropping it stops it and removes its files; so does any end of the process that holds it.
#[derive(Debug)]
pub struct Server {
    folder: TempDir,
    programs: PathBuf,
    port: u16,
    durability: Durability,
    running: Option<Running>,
    databases: AtomicU32,
}

/// A shell that ends the server when its input ends.
#[derive(Debug)]
struct Running {
    shell: Child,
    input: Option<ChildStdin>,
}

fn io(doing: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { doing, source }
}

impl Server {
    /// Starts a server of the newest version that is installed. Everybody on this machine may log in as any user.
    ///
    /// # Errors
    ///
    /// When PostgreSQL is not installed, or does not start.
    pub fn start(durability: Durability) -> Result<Self, Error> {
        Self::start_in(&std::env::temp_dir(), None, durability)
    }

    /// The same, with its files in this folder, and its write-ahead log in another one.
    ///
    /// # Errors
    ///
    /// When PostgreSQL is not installed, or does not start.
    pub fn start_in(folder: &Path, log: Option<&Path>, durability: Durability) -> Result<Self, Error> {
        let mut server = Self::without_files(folder, durability)?;
        let initdb = ["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync", "-D"];
        let mut make = server.command("initdb");
        make.args(initdb).arg(server.data());
        if let Some(log) = log {
            server.own(log)?;
            make.arg("--waldir").arg(log.join("log"));
        }
        server.run(&mut make)?;
        server.restart()?;
        Ok(server)
    }

    fn without_files(folder: &Path, durability: Durability) -> Result<Self, Error> {
        let programs = programs()?;
        let folder = tempfile::Builder::new().prefix("postgres-").tempdir_in(folder);
        let folder = folder.map_err(io("make a folder"))?;
        let port = free_port();
        let server = Self { folder, programs, port, durability, running: None, databases: AtomicU32::new(0) };
        server.own(server.folder.path())?;
        Ok(server)
    }

    /// A copy of it that follows it, and from now on has what it answers for.
    ///
    /// # Errors
    ///
    /// When the copy fails, or does not start.
    pub fn standby(&self) -> Result<Self, Error> {
        let mut standby = Self::without_files(&std::env::temp_dir(), self.durability)?;
        let of = format!("host=127.0.0.1 port={} user=postgres", self.port);
        let how = ["--checkpoint=fast", "--write-recovery-conf", "--no-sync", "-d", &of, "-D"];
        standby.run(standby.command("pg_basebackup").args(how).arg(standby.data()))?;
        standby.restart()?;
        self.configure("synchronous_standby_names = '*'")?;
        let is_there = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        self.until(|| Ok(self.sql("postgres", is_there)? == "1"))?;
        Ok(standby)
    }

    /// A standby becomes a server of its own.
    ///
    /// # Errors
    ///
    /// When it is none.
    pub fn promote(&self) -> Result<(), Error> {
        self.sql("postgres", "SELECT pg_promote()").map(drop)
    }

    /// The address of a database.
    pub fn address(&self, database: &str) -> String {
        self.address_as("postgres", database)
    }

    /// The address of a database for a login.
    pub fn address_as(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The number of its first process, of which all others are children.
    ///
    /// # Errors
    ///
    /// When it does not run.
    pub fn pid(&self) -> Result<u32, Error> {
        let text = std::fs::read_to_string(self.data().join("postmaster.pid"));
        let text = text.map_err(io("read the number of the server's process"))?;
        let pid = text.lines().next().and_then(|line| line.trim().parse().ok());
        pid.ok_or(Error::Io {
            doing: "read the number of the server's process",
            source: io::ErrorKind::InvalidData.into(),
        })
    }

    /// Makes a database, and returns its name.
    ///
    /// # Errors
    ///
    /// When the server refuses.
    pub fn create_database(&self) -> Result<String, Error> {
        self.copy_database("template1")
    }

    /// Makes a database with everything that another one has, to which nobody is connected.
    ///
    /// # Errors
    ///
    /// When the server refuses.
    pub fn copy_database(&self, from: &str) -> Result<String, Error> {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name} TEMPLATE {from}"))?;
        Ok(name)
    }

    /// Runs statements, and returns what `psql` prints: rows alone, with `|` between columns.
    ///
    /// # Errors
    ///
    /// When a statement fails.
    pub fn sql(&self, database: &str, sql: &str) -> Result<String, Error> {
        let port = self.port.to_string();
        let of = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "postgres", "-p"];
        let output = self.run(
            Command::new(self.programs.join("psql")).args(of).args([&port, "-d", database, "-c", sql]),
        )?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// All rows of a database as SQL; bytes are hexadecimal.
    ///
    /// # Errors
    ///
    /// When `pg_dump` fails.
    pub fn dump(&self, database: &str) -> Result<String, Error> {
        let output = self.run(Command::new(self.programs.join("pg_dump")).arg(self.address(database)))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// From now on, everybody but `postgres` needs a password.
    ///
    /// # Errors
    ///
    /// When the server refuses.
    pub fn require_passwords(&self) -> Result<(), Error> {
        let rules = "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
        std::fs::write(self.data().join("pg_hba.conf"), rules).map_err(io("write the rules for logins"))?;
        self.sql("postgres", "SELECT pg_reload_conf()").map(drop)
    }

    /// From now on, it also speaks TLS, with this certificate and key in PEM.
    ///
    /// # Errors
    ///
    /// When the server refuses.
    pub fn speak_tls(&self, certificate: &str, key: &str) -> Result<(), Error> {
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            let file = self.data().join(name);
            std::fs::write(&file, text).map_err(io("write a certificate"))?;
            self.own(&file)?;
            self.run(Command::new("chmod").arg("600").arg(file))?;
        }
        self.configure("ssl = on")
    }

    /// From now on, these settings hold, a line each; those that need it from the next start on.
    ///
    /// # Errors
    ///
    /// When the server refuses.
    pub fn configure(&self, settings: &str) -> Result<(), Error> {
        let file = self.data().join("postgresql.conf");
        let mut file = File::options().append(true).open(file).map_err(io("open the settings"))?;
        writeln!(file, "{settings}").map_err(io("write the settings"))?;
        self.sql("postgres", "SELECT pg_reload_conf()").map(drop)
    }

    /// Ends the server as a failure of the machine does: nothing is written any more.
    ///
    /// # Errors
    ///
    /// When it does not end.
    pub fn kill(&mut self) -> Result<(), Error> {
        let running = self.running.take();
        running.map_or(Ok(()), |running| running.end("k"))
    }

    /// Starts the server again, with the same files and port.
    ///
    /// # Errors
    ///
    /// When it does not start.
    pub fn restart(&mut self) -> Result<(), Error> {
        if let Some(running) = self.running.take() {
            running.end("q")?;
        }
        // What a killed server leaves behind ends by itself, and until then no other one starts.
        self.until(|| Ok(!self.is_used()))?;
        let port = self.port.to_string();
        let mut settings = vec![
            format!("unix_socket_directories={}", self.folder.path().display()),
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={port}"),
            "max_connections=300".to_owned(),
            "shared_buffers=256MB".to_owned(),
        ];
        if self.durability == Durability::None {
            settings
                .extend(["fsync=off", "full_page_writes=off", "synchronous_commit=off"].map(str::to_owned));
        }
        let mut command = Command::new("sh");
        // The input ends with this process, however that ends. A line of it says how the server ends.
        let script = r#"folder=$1; shift; "$@" >>"$folder/log" 2>&1 & pid=$!; read how
            case "$how" in k) kill -KILL $pid;; *) kill -QUIT $pid;; esac; wait $pid; [ -n "$how" ] || rm -rf "$folder""#;
        command.args(["-c", script, "sh"]).arg(self.folder.path());
        let server = self.command("postgres");
        command.arg(server.get_program()).args(server.get_args()).arg("-D").arg(self.data());
        settings.iter().for_each(|setting| {
            command.args(["-c", setting]);
        });
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut shell = command.spawn().map_err(io("start the server"))?;
        let input = shell.stdin.take();
        self.running = Some(Running { shell, input });
        self.until(|| self.sql("postgres", "SELECT 1").map(|_| true))
    }

    /// Waits until something is so.
    fn until(&self, is_it: impl Fn() -> Result<bool, Error>) -> Result<(), Error> {
        let since = Instant::now();
        loop {
            match is_it() {
                Ok(true) => return Ok(()),
                Err(error) if since.elapsed() > START => return Err(error),
                Ok(false) if since.elapsed() > START => {
                    let source = io::ErrorKind::TimedOut.into();
                    return Err(Error::Io { doing: "wait for the server", source });
                }
                _ => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Whether a process of the server is left (Linux): they work in its folder.
    fn is_used(&self) -> bool {
        let data = self.data();
        let processes = Path::new("/proc").read_dir().into_iter().flatten().flatten();
        processes
            .map(|process| process.path().join("cwd"))
            .any(|folder| folder.read_link().is_ok_and(|it| it == data))
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Gives a file to the user that the server acts as.
    fn own(&self, file: &Path) -> Result<(), Error> {
        if is_root() {
            self.run(Command::new("chown").arg("postgres").arg(file))?;
        }
        Ok(())
    }

    /// A program of PostgreSQL, which refuses to act as root.
    fn command(&self, program: &str) -> Command {
        let program = self.programs.join(program);
        if !is_root() {
            return Command::new(program);
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]).arg(program);
        command
    }

    fn run(&self, command: &mut Command) -> Result<Output, Error> {
        let output = command.current_dir("/").output().map_err(io("run a program of PostgreSQL"))?;
        if output.status.success() {
            return Ok(output);
        }
        let program = command.get_program().to_string_lossy().into_owned();
        Err(Error::Failed { program, output: String::from_utf8_lossy(&output.stderr).trim().to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            // The shell ends the server in any case.
            let _ = running.end("q");
        }
    }
}

impl Running {
    fn end(mut self, how: &str) -> Result<(), Error> {
        if let Some(mut input) = self.input.take() {
            writeln!(input, "{how}").map_err(io("end the server"))?;
        }
        self.shell.wait().map(drop).map_err(io("end the server"))
    }
}

/// The folder with the programs of the newest version that is installed.
fn programs() -> Result<PathBuf, Error> {
    let versions = Path::new("/usr/lib/postgresql").read_dir();
    let mut found: Vec<(u32, PathBuf)> = versions
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .filter(|(_, folder)| folder.join("postgres").exists())
        .collect();
    found.sort();
    if let Some((_, folder)) = found.pop() {
        return Ok(folder);
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).find(|folder| folder.join("initdb").exists()).ok_or(Error::NotInstalled)
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
