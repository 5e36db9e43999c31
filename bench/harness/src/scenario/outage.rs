//! The server is away for a time and comes back. Measures how long the caches take to become current, and how many
//! requests the server gets.
//!
//! Clients reach the server through a relay, which breaks their connections and refuses new ones. The server itself
//! keeps running behind the relay. So the moment at which it is reachable again is known, and the start of a server,
//! which takes about as long as the outage, is not measured with the clients. One object of each kind changes during
//! the outage.

use std::time::{Duration, Instant};

use tooling::Error;

use crate::Bench;
use crate::figures::Unit;
use crate::library::{Library, Setup};
use crate::relay::{self, Relay};
use crate::server::Server;

use super::kinds;

pub(crate) const NAME: &str = "outage";
pub(crate) const TIME: &str = "until current";
const REQUESTS: &str = "attempts and requests";
pub(crate) const RATE: &str = "attempts and requests per second";

/// How long the server is away.
pub(crate) const AWAY: [Duration; 2] = [Duration::from_secs(6), Duration::from_secs(60)];
/// With `--debug`, which only checks the results.
const AWAY_DEBUG: [Duration; 1] = [Duration::from_secs(1)];
/// Requests are counted for this time after all caches are current, because some clients still send a few.
const AFTERWARDS: Duration = Duration::from_secs(2);

pub(super) fn away(debug: bool) -> &'static [Duration] {
    if debug { &AWAY_DEBUG } else { &AWAY }
}

/// The number of informers.
#[derive(Clone, Copy)]
pub(crate) enum Informers {
    One,
    OfAllKinds,
}

impl Informers {
    pub(crate) const ALL: [Self; 2] = [Self::One, Self::OfAllKinds];

    /// The names of the setups in figures.
    pub(crate) fn setup_name(self, away: Duration) -> String {
        let informers = match self {
            Self::One => "1 informer",
            Self::OfAllKinds => "all kinds",
        };
        format!("{informers}, away {} s", away.as_secs())
    }

    fn setup(self, client: Library, away: Duration, resources: &[String]) -> Setup {
        let arguments: Vec<&str> = resources.iter().flat_map(|resource| ["--resource", resource]).collect();
        let view = match self {
            Self::One => "typed",
            Self::OfAllKinds => "dynamic",
        };
        Setup { name: self.setup_name(away), ..client.view(view).with(&arguments) }
    }
}

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let mut server = kinds::server(bench)?;
    let all = server.resources()?;
    for informers in Informers::ALL {
        let resources = match informers {
            Informers::One => vec![kinds::PODS_RESOURCE.to_owned()],
            Informers::OfAllKinds => all.clone(),
        };
        for away in away(bench.options.debug) {
            for client in [Library::Informer, Library::ClientGo] {
                let setup = informers.setup(client, *away, &resources);
                one(bench, &mut server, &setup, &resources, *away)?;
            }
        }
    }
    Ok(())
}

fn one(
    bench: &mut Bench<'_>,
    server: &mut Server,
    setup: &Setup,
    resources: &[String],
    away: Duration,
) -> Result<(), Error> {
    let mut relay = Relay::start(server.kubeconfig())?;
    let kubeconfig = bench.scratch.join("relayed.kubeconfig");
    relay.write_kubeconfig(&kubeconfig)?;
    let Some(run) = bench.start_at(setup, Some(&kubeconfig))? else { return Ok(()) };
    let mut run = run.of(resources);
    run.sync(server)?;

    let (cut, refused_before) = (Instant::now(), relay::refused_connections()?);
    relay.cut();
    let versions = server.touch(resources)?;
    // The count includes this program's lists. It includes none of the client's, which cannot reach the server now.
    let requests_before = server.requests()?;
    run.idle(away.saturating_sub(cut.elapsed()))?;
    let refused = relay::refused_connections()? - refused_before;

    relay.restore()?;
    let back = Instant::now();
    run.current(&versions)?;
    let until_current = back.elapsed();
    let total = cut.elapsed();
    run.idle(AFTERWARDS)?;
    let requests = server.requests()? - requests_before;
    run.check(server)?;
    let all = refused as f64 + requests;
    bench.figures.record(
        NAME,
        setup,
        &[
            (TIME, Unit::Seconds, until_current.as_secs_f64()),
            ("refused connections", Unit::Count, refused as f64),
            ("lists and watches afterwards", Unit::Count, requests),
            (REQUESTS, Unit::Count, all),
            (RATE, Unit::Count, all / (total + AFTERWARDS).as_secs_f64()),
        ],
    );
    Ok(())
}
