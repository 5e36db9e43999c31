//! Faults at random, from a seed.

use testapi::faults::{Fired, Kind, Mix};

use crate::client::{Client, MAPS, start_with};

/// The faults that a client meets with the same requests.
async fn met(seed: u64, mix: Mix) -> Vec<Fired> {
    let api = start_with(3).await;
    api.faults().random(seed, mix);
    let mut client = Client::connect(&api).await;
    for request in 0..60 {
        let path = match request % 3 {
            0 => MAPS.to_owned(),
            1 => format!("{MAPS}/a"),
            _ => format!("{MAPS}?watch=true&timeoutSeconds=0&resourceVersion=0&n={request}"),
        };
        let broken = match client.get(&path).await {
            Ok(mut answer) if request % 3 < 2 => answer.bytes().await.is_err(),
            // A watch has no end to wait for.
            Ok(_) => true,
            Err(_) => true,
        };
        if broken {
            client = Client::connect(&api).await;
        }
    }
    api.faults().fired()
}

#[tokio::test]
async fn the_same_seed_gives_the_same_faults() {
    let mix = || Mix::refusals().weight(Kind::Disconnect, 2).share(0.5);
    for seed in 0..3 {
        let first = met(seed, mix()).await;
        let refused = |fired: &[Fired]| -> Vec<Fired> {
            let now = |fired: &&Fired| !fired.fault.is_for_watches();
            fired.iter().filter(now).cloned().collect()
        };
        assert_eq!(refused(&first), refused(&met(seed, mix()).await), "seed {seed}");
        assert!((10..50).contains(&first.len()), "seed {seed}: {}", first.len());
    }
    assert_ne!(met(1, mix()).await, met(2, mix()).await);
}

#[tokio::test]
async fn the_share_is_how_many_requests_meet_one() {
    for (share, expected) in [(0.0, 0), (1.0, 60)] {
        assert_eq!(met(1, Mix::none().weight(Kind::Timeout, 1).share(share)).await.len(), expected);
    }
    assert!(met(1, Mix::none().share(1.0)).await.is_empty(), "no kind, no fault");
}

#[tokio::test]
async fn whatever_goes_wrong_the_server_stands() {
    let everything = Mix::all().share(1.0).weight(Kind::Hang, 0).weight(Kind::Stall, 0).weight(Kind::Slow, 0);
    for seed in 0..4 {
        let api = start_with(3).await;
        let random = api.faults().random(seed, everything.clone());
        for request in 0..60 {
            let mut client = Client::connect(&api).await;
            let path = [MAPS.to_owned(), format!("{MAPS}?watch=true&n={request}")][request % 2].clone();
            if let Ok(mut answer) = client.get(&path).await {
                let _ = answer.chunk().await;
            }
        }
        assert_eq!(random.met(), 60, "seed {seed}");
        api.faults().clear();
        let list = crate::client::get(&api, MAPS).await.json().await;
        assert_eq!(list["items"].as_array().map(Vec::len), Some(3), "seed {seed}");
    }
}
