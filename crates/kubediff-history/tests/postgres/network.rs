//! Issue 22, networks: a slow one costs a commit one round trip, and a standby has what was acknowledged.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use kubediff_history::*;
use postgres_server::{Durability, Network, Server};

use crate::faults::{address, batch, database, insist, is_whole, settings};
use crate::world::cluster;

#[test]
fn a_commit_over_a_slow_network_takes_one_round_trip() {
    const DELAY: Duration = Duration::from_millis(100);
    let server = Server::start(Durability::None).unwrap();
    let name = database(&server);
    let network = Network::before(server.port()).unwrap();
    let location = address(&format!("postgres://postgres@127.0.0.1:{}/{name}", network.port()));
    let mut history = History::at(&location, &cluster(), &settings("a")).unwrap();
    // What it must know of the objects, and its statements.
    history.commit(&batch(1..=20)).unwrap();
    history.commit(&batch(21..=40)).unwrap();
    history.commit(&batch(41..=60)).unwrap();
    network.slow(DELAY, 125_000);
    // The machine may be busy.
    let commits = (61..=63).map(|number| {
        let begun = Instant::now();
        history.commit(&batch(number..=number)).unwrap();
        begun.elapsed()
    });
    let one = commits.min().unwrap();
    println!("a commit of one change with {} ms each way: {} ms", DELAY.as_millis(), one.as_millis());
    assert!(one >= 2 * DELAY && one < 4 * DELAY, "{one:?}");
    let begun = Instant::now();
    history.commit(&batch(64..=263)).unwrap();
    println!("a commit of 200: {} ms", begun.elapsed().as_millis());
    let mut reader = Reader::at(&address(&server.address(&name)), Some("test")).unwrap();
    is_whole(&mut reader, 263, "over a slow network");
}

#[test]
fn a_standby_that_becomes_the_server_has_what_was_acknowledged() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let mut server = Server::start(Durability::Full).unwrap();
    let name = database(&server);
    let standby = server.standby().unwrap();
    // Whichever of them can be written.
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", server.port(), standby.port());
    let location = address(&format!("postgres://postgres@{hosts}/{name}?target_session_attrs=read-write"));
    let mut history = History::at(&location, &cluster(), &settings("a")).unwrap();
    let (commits, enough) = (AtomicU32::new(0), random.u32(1..60));
    let mut next = 1;
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            loop {
                let last = next + random.u64(0..20);
                match history.commit(&batch(next..=last)) {
                    Ok(_) => next = last + 1,
                    Err(error) => return assert!(error.is_passing(), "{error:?}"),
                }
                commits.fetch_add(1, Ordering::SeqCst);
            }
        });
        while commits.load(Ordering::SeqCst) < enough {
            thread::yield_now();
        }
        server.kill().unwrap();
        writing.join().unwrap();
    });
    let refused = history.commit(&batch(next..=next + 5)).unwrap_err();
    assert!(refused.is_passing(), "a standby is not written: {refused:?}");
    standby.promote().unwrap();
    insist(&mut history, &batch(next..=next + 30));
    is_whole(&mut history.reader().unwrap(), next + 30, &format!("seed {seed}"));
}

#[test]
fn a_server_that_stands_still_is_given_up_and_the_batch_is_stored_once() {
    let server = Server::start(Durability::None).unwrap();
    let name = database(&server);
    let location = address(&server.address(&name));
    let mut history = History::at(&location, &cluster(), &settings("a")).unwrap();
    history.commit(&batch(1..=20)).unwrap();
    let backends = server.sql(&name, "SELECT pid FROM pg_stat_activity").unwrap();
    let processes: Vec<String> =
        backends.lines().map(str::to_owned).chain([server.pid().unwrap().to_string()]).collect();
    // One of them has ended since.
    let signal = |name: &str| drop(Command::new("kill").arg(name).args(&processes).output().unwrap());
    signal("-STOP");
    let begun = Instant::now();
    let refused = history.commit(&batch(21..=30)).unwrap_err();
    println!("given up after {:?}", begun.elapsed());
    signal("-CONT");
    assert!(refused.is_passing(), "{refused:?}");
    insist(&mut history, &batch(21..=40));
    is_whole(&mut history.reader().unwrap(), 40, "after a standstill");
}
