//! A running `kubediff at`, and requests to it.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

use crate::page::browser::{Answer, send};

/// The time of the clock, where the history is the shop's.
pub(crate) const NOW: &str = "2026-03-01T15:00:00+00:00[UTC]";

/// A running `kubediff at`. It ends with this.
pub(crate) struct Past {
    child: Child,
    pub(crate) kubeconfig: PathBuf,
    host: String,
    token: String,
    tls: Arc<ClientConfig>,
}

/// The program with a time, on a history.
pub(crate) fn program(history: &Path, time: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
    command.args(["at", time, "--now", NOW, "--history"]).arg(history).env("TZ", "UTC");
    command
}

impl Past {
    pub(crate) fn open(history: &Path, time: &str) -> Self {
        Self::of(program(history, time))
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let kubeconfig = PathBuf::from(line.trim().strip_prefix("export KUBECONFIG=").unwrap());
        let content: Value = serde_json::from_slice(&std::fs::read(&kubeconfig).unwrap()).unwrap();
        let cluster = &content["clusters"][0]["cluster"];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let pem = BASE64_STANDARD.decode(text(&cluster["certificate-authority-data"])).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let tls = Arc::new(tls.with_root_certificates(roots).with_no_client_auth());
        let host = text(&cluster["server"]).strip_prefix("https://").unwrap().to_owned();
        Self { child, kubeconfig, host, token: text(&content["users"][0]["user"]["token"]), tls }
    }

    fn connect(&self) -> StreamOwned<ClientConnection, TcpStream> {
        let stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let name = self.host.split(':').next().unwrap().to_owned().try_into().unwrap();
        StreamOwned::new(ClientConnection::new(self.tls.clone(), name).unwrap(), stream)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", "")
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        self.ask_with(&self.token, method, path, headers, body)
    }

    pub(crate) fn ask_with(
        &self,
        token: &str,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Answer {
        let headers = format!("{}{headers}", self.head(token));
        Answer::read(send(self.connect(), method, path, &headers, body), path)
    }

    /// The lines of an answer that does not end.
    pub(crate) fn follow(&self, path: &str) -> impl Iterator<Item = String> + use<> {
        let stream = send(self.connect(), "GET", path, &self.head(&self.token), "");
        let lines = BufReader::new(stream).lines().map(Result::unwrap);
        lines.skip_while(|line| !line.is_empty()).skip(1)
    }

    fn head(&self, token: &str) -> String {
        format!("Host: {}\r\nAuthorization: Bearer {token}\r\n", self.host)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Past {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The program had no time to remove it.
        if let Some(folder) = self.kubeconfig.parent() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}
