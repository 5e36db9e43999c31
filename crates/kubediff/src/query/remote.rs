//! A question to the daemon in a cluster: the same question, run in its pod.

mod error;
mod exec;
mod find;
mod place;
mod question;
mod relay;
mod server;
mod workload;

use jiff::Zoned;
use kube_client::Client;

use super::args::{DaemonName, Maintain, Query, SourceArgs};
use crate::cluster;
use crate::exit::Exit;

pub use error::DaemonError;
use error::Why;
pub(crate) use exec::{End, Pipe};
use place::Place;
use relay::Relay;
use server::Server;

/// Asks the daemon, and passes on what its pod says; how the program ends then.
pub(super) async fn ask(
    name: &DaemonName,
    source: &SourceArgs,
    query: &Query,
    now: &Zoned,
) -> Result<Exit, DaemonError> {
    match query {
        Query::History(Maintain::Backup { .. }) => return Err(Why::Backup(name.clone()).into()),
        Query::History(Maintain::Archive(_)) => return Err(Why::Archive.into()),
        _ => {}
    }
    let (client, server, place) = find(name, source).await?;
    question::remark_on(now);
    let mut relay = Relay::start(query.screen());
    let words = question::words(std::env::args_os(), now, relay.shown()).unwrap_or_else(|error| error.exit());
    let ran = exec::run(&client, &place, words, &mut relay, &server).await;
    // The output is shown in any case, and before the words about it.
    let is_of_another_version = relay.finish().map_err(Why::Output)?;
    match ran? {
        0 => Ok(Exit::Success),
        _ if is_of_another_version => Err(Why::Version { place: Box::new(place) }.into()),
        code => Ok(Exit::As(code)),
    }
}

/// Runs a command of this program in the daemon's pod, with a standard input and output.
pub(crate) async fn open(
    name: &DaemonName,
    source: &SourceArgs,
    words: Vec<String>,
) -> Result<Pipe, DaemonError> {
    let (client, server, place) = find(name, source).await?;
    Ok(exec::open(&client, &place, words, &server).await?)
}

/// The way to the server, and where the daemon runs.
async fn find(name: &DaemonName, source: &SourceArgs) -> Result<(Client, Server, Place), Why> {
    let cluster = cluster::find(&source.cluster).await?;
    let (address, limit) = (cluster.address(), cluster.request_timeout);
    let server = Server { address: address.clone(), namespace: name.namespace.clone(), limit };
    let client = Client::try_from(cluster.config);
    let client = client.map_err(|source| Why::Unreachable { address, source: Box::new(source) })?;
    let place = find::place(&client, name, source.container.as_deref(), &server).await?;
    Ok((client, server, place))
}
