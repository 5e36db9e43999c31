//! Running a command in the daemon's container: the exec subresource of its pod, over WebSocket.

use futures_util::FutureExt;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube_client::Client;
use kube_client::api::{Api, AttachParams, AttachedProcess};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, Join};

use super::error::{DaemonError, Why};
use super::place::Place;
use super::relay::Relay;
use super::server::{Server, Step};

/// The bytes that are read at once, and wait for a slow reader of our output.
const BUFFER: usize = 64 * 1024;

/// A command that runs: its standard input and output as one stream.
pub(crate) struct Pipe {
    pub(crate) stream: Join<Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>>,
    pub(crate) stderr: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) end: End,
}

/// The end of a command. The connection to it ends when this is dropped.
pub(crate) struct End {
    running: AttachedProcess,
    place: Place,
}

impl End {
    /// Waits for the end; why there is no more of the command's.
    pub(crate) async fn reason(mut self) -> DaemonError {
        let status = match self.running.take_status() {
            Some(status) => status.await,
            None => None,
        };
        let place = || Box::new(self.place.clone());
        let ended = status.map(|status| exit_code(&self.place, &status));
        DaemonError::from(match ended {
            // Another version does not know the command, or takes other arguments.
            Some(Ok(2)) => Why::Version { place: place() },
            Some(Ok(code)) => {
                Why::Lost { place: place(), message: format!("its kubediff ended with exit code {code}") }
            }
            Some(Err(why)) => why,
            None => Why::Lost { place: place(), message: "it was closed".to_owned() },
        })
    }
}

/// Runs the command with a standard input.
pub(super) async fn open(
    client: &Client,
    place: &Place,
    command: Vec<String>,
    server: &Server,
) -> Result<Pipe, Why> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &place.namespace);
    let mut params = AttachParams::default().container(&place.container).stdin(true);
    (params.max_stdout_buf_size, params.max_stderr_buf_size) = (Some(BUFFER), Some(BUFFER));
    params.max_stdin_buf_size = Some(BUFFER);
    let mut running = server.ask(Step::Exec, pods.exec(&place.pod, command, &params)).await?;
    let (stdin, stdout, stderr) = (running.stdin(), running.stdout(), running.stderr());
    let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
        let message = "the connection has no streams".to_owned();
        return Err(Why::NotRun { place: Box::new(place.clone()), message });
    };
    let stream = tokio::io::join(Box::new(stdout) as Box<_>, Box::new(stdin) as Box<_>);
    Ok(Pipe { stream, stderr: Box::new(stderr), end: End { running, place: place.clone() } })
}

/// Runs the command, and passes on what it writes; its exit code.
pub(super) async fn run(
    client: &Client,
    place: &Place,
    command: Vec<String>,
    relay: &mut Relay,
    server: &Server,
) -> Result<u8, Why> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &place.namespace);
    let mut params = AttachParams::default().container(&place.container);
    (params.max_stdout_buf_size, params.max_stderr_buf_size) = (Some(BUFFER), Some(BUFFER));
    let started = server.ask(Step::Exec, pods.exec(&place.pod, command, &params)).await;
    let mut running = started?;
    let (mut stdout, mut stderr) = (running.stdout(), running.stderr());
    let status = running.take_status();
    let mut status = std::pin::pin!(async move {
        match status {
            Some(status) => status.await,
            None => None,
        }
    });
    let (mut from_stdout, mut from_stderr) = (vec![0; BUFFER], vec![0; BUFFER]);
    let status = loop {
        tokio::select! {
            // The output before the end is read before the end.
            biased;
            Some(length) = next(&mut stdout, &mut from_stdout) => {
                relay.stdout(from_stdout.get(..length).unwrap_or_default()).map_err(Why::Output)?;
            }
            Some(length) = next(&mut stderr, &mut from_stderr) => {
                relay.stderr(from_stderr.get(..length).unwrap_or_default());
            }
            status = &mut status => break status,
        }
    };
    // The connection has ended: nothing more comes. Waiting messages are taken without waiting for more: a broken connection does not end
    // the streams. A task that has done much may be told to wait although there is something, unless it has just paused.
    let ended = running.join().await;
    tokio::task::yield_now().await;
    while let Some(Some(length)) = next(&mut stdout, &mut from_stdout).now_or_never() {
        relay.stdout(from_stdout.get(..length).unwrap_or_default()).map_err(Why::Output)?;
    }
    while let Some(Some(length)) = next(&mut stderr, &mut from_stderr).now_or_never() {
        relay.stderr(from_stderr.get(..length).unwrap_or_default());
    }
    match status {
        Some(status) => exit_code(place, &status),
        None => {
            let message = match ended {
                Ok(()) => "it was closed before the end of the answer".to_owned(),
                Err(error) => error.to_string(),
            };
            Err(Why::Lost { place: Box::new(place.clone()), message })
        }
    }
}

/// How many bytes came; nothing after the end of the stream.
async fn next(stream: &mut Option<impl AsyncRead + Unpin>, bytes: &mut [u8]) -> Option<usize> {
    let read = match stream {
        Some(stream) => stream.read(bytes).await,
        None => return None,
    };
    match read {
        Ok(length) if length > 0 => Some(length),
        _ => {
            *stream = None;
            None
        }
    }
}

/// How the command ended, by what the server says at the end.
fn exit_code(place: &Place, status: &Status) -> Result<u8, Why> {
    /// Messages of shells and runtimes about programs that cannot be run, or do not exist.
    const NOT_RUNNABLE: [u8; 2] = [126, 127];
    if status.status.as_deref() == Some("Success") {
        return Ok(0);
    }
    let place = || Box::new(place.clone());
    let message = status.message.clone().unwrap_or_else(|| "the server does not say why".to_owned());
    let causes = status.details.as_ref().and_then(|details| details.causes.as_deref()).unwrap_or_default();
    let code = causes.iter().find(|cause| cause.reason.as_deref() == Some("ExitCode"));
    let code = code.and_then(|cause| cause.message.as_deref()?.parse::<i64>().ok());
    match code {
        Some(0) => Ok(0),
        // Signals and other systems have codes that no program can end with here.
        Some(code) => match u8::try_from(code).unwrap_or(1) {
            code if NOT_RUNNABLE.contains(&code) => Err(Why::NoProgram { place: place(), message }),
            code => Ok(code),
        },
        None if is_missing(&message) => Err(Why::NoProgram { place: place(), message }),
        None => Err(Why::NotRun { place: place(), message }),
    }
}

/// Whether container runtimes say so of a program that does not exist.
fn is_missing(message: &str) -> bool {
    ["executable file not found", "no such file or directory"].iter().any(|text| message.contains(text))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{StatusCause, StatusDetails};

    use super::*;

    fn place() -> Place {
        let [namespace, pod, container, image] = ["a", "b", "c", "d"].map(str::to_owned);
        Place { namespace, pod, container, image }
    }

    fn failure(message: &str, code: Option<&str>) -> Status {
        let cause = |code: &str| StatusCause {
            reason: Some("ExitCode".to_owned()),
            message: Some(code.to_owned()),
            ..StatusCause::default()
        };
        Status {
            status: Some("Failure".to_owned()),
            message: Some(message.to_owned()),
            details: Some(StatusDetails {
                causes: code.map(|code| vec![cause(code)]),
                ..StatusDetails::default()
            }),
            ..Status::default()
        }
    }

    #[test]
    fn the_end_of_a_command_is_told_from_one_that_did_not_run() {
        let success = Status { status: Some("Success".to_owned()), ..Status::default() };
        assert!(matches!(exit_code(&place(), &success), Ok(0)));
        for (message, code, expected) in [
            ("command terminated with non-zero exit code", Some("2"), Ok(2)),
            ("command terminated with non-zero exit code", Some("137"), Ok(137)),
            ("", Some("-1"), Ok(1)),
            ("", Some("127"), Err("has no program kubediff")),
            (
                "exec: \"kubediff\": executable file not found in $PATH: unknown",
                None,
                Err("has no program kubediff"),
            ),
            ("container is in CONTAINER_EXITED state", None, Err("could not be asked: container is in")),
        ] {
            let told = exit_code(&place(), &failure(message, code)).map_err(|why| why.to_string());
            match (told, expected) {
                (Ok(told), Ok(expected)) => assert_eq!(told, expected),
                (Err(told), Err(expected)) => assert!(told.contains(expected), "{told}"),
                (told, _) => panic!("{message}: {told:?}"),
            }
        }
    }
}
