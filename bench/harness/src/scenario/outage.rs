//! The server is away for a time and comes back: how long until the caches have what has changed meanwhile, and how often
//! the server was asked.
//!
//! Clients reach the server through a relay, which breaks their connections and then refuses new ones, as the machine of a
//! server that has ended does. The server itself goes on behind it: so the moment from which on it answers is known, and its start,
//! which takes more or less as long as the outage, is not measured along with the clients. One object of each kind changes while
//! it is away.

use std::time::{Duration, Instant};

use crate::Bench;
use crate::error::Error;
use crate::figures::Unit;
use crate::library::{Library, Setup};
use crate::relay::{self, Relay};
use crate::server::Server;

use super::kinds;

pub(crate) const NAME: &str = "outage";
pub(crate) const TIME: &str = "until current";
pub(crate) const REQUESTS: &str = "attempts and requests";

/// How long the server is away.
pub(crate) const AWAY: [Duration; 2] = [Duration::from_secs(6), Duration::from_secs(60)];
/// For answers only.
const AWAY_DEBUG: [Duration; 1] = [Duration::from_secs(1)];
/// Requests are counted for so long after everything is current: what is not looked at may still be on its way.
const AFTERWARDS: Duration = Duration::from_secs(2);

/// How many informers there are.
#[derive(Clone, Copy)]
pub(crate) enum Informers {
    One,
    OfAllKinds,
}

impl Informers {
    pub(crate) const ALL: [Self; 2] = [Self::One, Self::OfAllKinds];

    /// How the setups are called in figures.
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
    let away: &[Duration] = if bench.options.debug { &AWAY_DEBUG } else { &AWAY };
    for informers in Informers::ALL {
        let resources = match informers {
            Informers::One => vec![kinds::PODS_RESOURCE.to_owned()],
            Informers::OfAllKinds => all.clone(),
        };
        for away in away {
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
    // This program's lists are among those, the client's are not: it cannot reach the server.
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
            ("attempts and requests per second", Unit::Count, all / (total + AFTERWARDS).as_secs_f64()),
        ],
    );
    Ok(())
}
