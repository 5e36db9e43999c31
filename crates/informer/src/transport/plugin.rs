//! Credential plugins: programs that print a token or a client certificate (`exec` in a kubeconfig).
//!
//! kube-client runs a plugin on the thread that builds a client, once for each of the layers that might need its output,
//! and without a deadline. This module runs the plugin once, as a child process with a deadline, and blocks no thread.
//! kube-client then gets the credentials, and never sees the plugin.

use std::io::IsTerminal;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube_client::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::timeout;

/// The output of a plugin. It is secret, so it has no `Debug`.
pub(super) struct Credential {
    token: Option<String>,
    /// A certificate chain and its key, both in PEM.
    certificate: Option<(String, String)>,
    pub(super) expires: Option<SystemTime>,
}

/// A credential plugin that returned no credentials. The error has the name of the plugin's command, and nothing of its
/// output.
#[derive(Debug, thiserror::Error)]
#[error("the credential plugin `{command}` {failure}")]
pub struct PluginError {
    command: String,
    #[source]
    failure: Failure,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("has no command in the configuration")]
    NoCommand,
    #[error("asks for a cluster's description, which the configuration does not have")]
    NoCluster,
    #[error("needs a terminal, and there is none")]
    NoTerminal,
    #[error("could not be run{}", hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default())]
    NotRun { source: std::io::Error, hint: Option<String> },
    #[error("failed with {0}")]
    Failed(ExitStatus),
    #[error("was not done within {0:?}")]
    TimedOut(Duration),
    #[error("printed something that is not an ExecCredential")]
    Undecodable,
    #[error("printed an ExecCredential without a token or a certificate")]
    Empty,
}

/// The limit for a plugin's output. A token has a few kilobytes.
const OUTPUT_LIMIT: u64 = 1024 * 1024;

impl PluginError {
    /// The command that was run, without its arguments.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Whether the plugin was killed because it took too long.
    pub fn is_timeout(&self) -> bool {
        matches!(self.failure, Failure::TimedOut(_))
    }
}

/// The plugin of a user, unless kube-client prefers another kind of credentials of that user.
pub(super) fn of(user: &AuthInfo) -> Option<&ExecConfig> {
    let is_preceded = user.auth_provider.is_some()
        || (user.username.is_some() && user.password.is_some())
        || user.token.is_some()
        || user.token_file.is_some();
    user.exec.as_ref().filter(|_| !is_preceded)
}

/// Runs a plugin, and kills it when it is not done within `limit`.
///
/// # Cancel safety
///
/// Safe: the plugin is killed.
pub(super) async fn run(plugin: &ExecConfig, limit: Duration) -> Result<Credential, PluginError> {
    let ran = timeout(limit, output(plugin)).await.unwrap_or(Err(Failure::TimedOut(limit)));
    let credential = ran.and_then(|output| Credential::from_output(&output));
    let command = || plugin.command.clone().unwrap_or_default();
    credential.map_err(|failure| PluginError { command: command(), failure })
}

async fn output(plugin: &ExecConfig) -> Result<Vec<u8>, Failure> {
    let not_run = |source: std::io::Error| {
        let is_missing = source.kind() == std::io::ErrorKind::NotFound;
        Failure::NotRun { source, hint: plugin.install_hint.clone().filter(|_| is_missing) }
    };
    let mut child = command(plugin)?.spawn().map_err(not_run)?;
    let mut output = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(OUTPUT_LIMIT).read_to_end(&mut output).await.map_err(not_run)?;
    }
    let status = child.wait().await.map_err(not_run)?;
    if status.success() { Ok(output) } else { Err(Failure::Failed(status)) }
}

/// The plugin as a child process, called as the protocol defines (`client.authentication.k8s.io`; see the documentation of
/// client-go's credential plugins).
fn command(plugin: &ExecConfig) -> Result<Command, Failure> {
    let mut command = Command::new(plugin.command.as_ref().ok_or(Failure::NoCommand)?);
    command.args(plugin.args.iter().flatten());
    for variable in plugin.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            command.env(name, value);
        }
    }
    command.env("KUBERNETES_EXEC_INFO", exec_info(plugin)?);
    for name in plugin.drop_env.iter().flatten() {
        command.env_remove(name);
    }
    // Stderr is for the person at the terminal, who may have to open a page.
    let stdin = if is_interactive(plugin)? { Stdio::inherit() } else { Stdio::null() };
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
    Ok(command)
}

fn exec_info(plugin: &ExecConfig) -> Result<String, Failure> {
    let mut spec = json!({ "interactive": is_interactive(plugin)? });
    if plugin.provide_cluster_info {
        let cluster = plugin.cluster.as_ref().and_then(|cluster| serde_json::to_value(cluster).ok());
        spec["cluster"] = cluster.ok_or(Failure::NoCluster)?;
    }
    Ok(json!({ "apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec }).to_string())
}

/// Whether the plugin may ask the user something.
fn is_interactive(plugin: &ExecConfig) -> Result<bool, Failure> {
    let is_terminal = std::io::stdin().is_terminal();
    match plugin.interactive_mode {
        Some(ExecInteractiveMode::Never) => Ok(false),
        Some(ExecInteractiveMode::Always) if !is_terminal => Err(Failure::NoTerminal),
        _ => Ok(is_terminal),
    }
}

impl Credential {
    /// Decodes an ExecCredential. Some plugins print YAML, and client-go accepts it.
    fn from_output(output: &[u8]) -> Result<Self, Failure> {
        #[derive(Deserialize)]
        struct ExecCredential {
            status: Option<Status>,
        }

        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Status {
            expiration_timestamp: Option<jiff::Timestamp>,
            token: Option<String>,
            client_certificate_data: Option<String>,
            client_key_data: Option<String>,
        }

        // The decode error is dropped because it would quote the output.
        let printed: ExecCredential = serde_saphyr::from_slice(output).map_err(|_| Failure::Undecodable)?;
        let status = printed.status.ok_or(Failure::Empty)?;
        let certificate = status.client_certificate_data.zip(status.client_key_data);
        let token = status.token.filter(|token| !token.is_empty());
        if token.is_none() && certificate.is_none() {
            return Err(Failure::Empty);
        }
        Ok(Self { token, certificate, expires: status.expiration_timestamp.map(SystemTime::from) })
    }

    /// Makes this the credentials of a user, in place of the plugin.
    pub(super) fn replace_plugin(self, user: &mut AuthInfo) {
        user.exec = None;
        user.token = self.token.map(Into::into);
        if let Some((certificate, key)) = self.certificate {
            user.client_certificate_data = Some(STANDARD.encode(certificate));
            user.client_key_data = Some(STANDARD.encode(key).into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_yaml_are_read_and_errors_quote_nothing() {
        let credential = |output: &str| Credential::from_output(output.as_bytes());
        let json = credential(
            r#"{"kind":"ExecCredential","status":{"token":"t","expirationTimestamp":"2030-01-01T00:00:00Z"}}"#,
        );
        let json = json.ok().unwrap();
        assert_eq!(json.token.as_deref(), Some("t"));
        assert_eq!(json.expires, Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_893_456_000)));

        let yaml = "status:\n  clientCertificateData: |\n    cert\n  clientKeyData: key\n";
        let mut user = AuthInfo { exec: Some(ExecConfig::default()), ..AuthInfo::default() };
        credential(yaml).ok().unwrap().replace_plugin(&mut user);
        assert_eq!(user.client_certificate_data, Some(STANDARD.encode("cert\n")));
        assert!(user.client_key_data.is_some() && user.exec.is_none() && user.token.is_none());

        for wrong in
            ["", "hunter2: [", "status: {}", "{}", "status: {token: ''}", "status: {token: {x: hunter2}}"]
        {
            let failure = credential(wrong).err().unwrap();
            assert!(!format!("{failure:?} {failure}").contains("hunter2"), "{failure:?}");
        }
    }

    #[tokio::test]
    async fn an_error_names_the_command_and_none_of_its_output() {
        let plugin = |script: &str| ExecConfig {
            command: Some("sh".to_owned()),
            args: Some(vec!["-c".to_owned(), script.to_owned()]),
            ..ExecConfig::default()
        };
        let error = run(&plugin("echo hunter2; exit 3"), Duration::from_secs(60)).await.err().unwrap();
        assert_eq!(error.command(), "sh");
        let text = format!("{error:?} {}", crate::error_chain(&error));
        assert!(text.contains("exit status: 3") && !text.contains("hunter2"), "{text}");

        let error = run(&plugin("exec sleep 600"), Duration::from_millis(1)).await.err().unwrap();
        assert!(error.is_timeout(), "{error}");

        let missing = ExecConfig {
            command: Some("/there/is/no/such/plugin".to_owned()),
            install_hint: Some("install it".to_owned()),
            ..ExecConfig::default()
        };
        let error = run(&missing, Duration::from_secs(60)).await.err().unwrap();
        assert!(
            error.to_string().contains("/there/is/no/such/plugin` could not be run (install it)"),
            "{error}"
        );
    }
}
