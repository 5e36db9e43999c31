use super::*;
use crate::figures::Unit;
use crate::library::Setup;

#[test]
fn a_ratio_is_of_one_round_and_its_value_the_median_of_the_rounds() {
    let mut figures = Figures::default();
    for (ours, theirs) in [(1.0, 10.0), (2.0, 10.0), (6.0, 20.0)] {
        for (client, value) in [(Library::Informer, ours), (Library::ClientGo, theirs)] {
            figures.record(sync::NAME, &client.view("typed"), &[(sync::CPU, Unit::Seconds, value)]);
        }
    }
    let ratios = ratios(&Results { figures: &figures, server: Kind::Real });
    let [ratio] = &ratios[..] else { panic!("{ratios:?}") };
    assert_eq!(ratio.name, "sync CPU / client-go typed");
    assert_eq!((ratio.value, ratio.verdict()), (0.2, "must"));
    assert_eq!(ratio.spread(), (0.1, 0.3));
    assert_eq!(ratio.server(), "real");
}

#[test]
fn a_controller_is_compared_with_the_better_of_the_others_in_each_round() {
    let mut figures = Figures::default();
    let rounds = [(1.0, 4.0, 8.0), (3.0, 6.0, 4.0)];
    for (ours, runtime, kube) in rounds {
        let setup = |client: Library| client.controller("children", 8);
        let record = |figures: &mut Figures, client, value| {
            figures.record(controller::NAME, &setup(client), &[(controller::CPU, Unit::Seconds, value)]);
        };
        record(&mut figures, Library::Informer, ours);
        record(&mut figures, Library::ControllerRuntime, runtime);
        record(&mut figures, Library::KubeRs, kube);
    }
    let of = |figures: &Figures| ratios(&Results { figures, server: Kind::Real });
    let [ratio] = &of(&figures)[..] else { panic!("one target is about it") };
    assert_eq!((&ratio.runs[..], ratio.verdict()), (&[0.25, 0.75][..], "goal"));

    let mut alone = Figures::default();
    for client in [Library::Informer, Library::KubeRs] {
        let setup = client.controller("children", 8);
        alone.record(controller::NAME, &setup, &[(controller::CPU, Unit::Seconds, 1.0)]);
    }
    assert!(of(&alone).is_empty(), "nobody knows whether it is the better one");
}

#[test]
fn a_ratio_says_with_what_server_it_was_measured() {
    let mut figures = Figures::default();
    for client in [Library::Informer, Library::ClientGo] {
        figures.record(sync::NAME, &client.view("typed"), &[(sync::CPU, Unit::Seconds, 1.0)]);
        let reads = Setup { client, name: reads::SETUP.to_owned(), arguments: Vec::new() };
        figures.record(reads::NAME, &reads, &[(reads::GET, Unit::Nanoseconds, 1.0)]);
    }
    figures.record(stuck::NAME, &Library::Informer.view("typed"), &[(stuck::MEMORY, Unit::Times, 1.0)]);
    let servers = |server| {
        let ratios = ratios(&Results { figures: &figures, server });
        ratios
            .iter()
            .map(|ratio| (ratio.name.split(' ').next().unwrap().to_owned(), ratio.server()))
            .collect::<Vec<_>>()
    };
    let of = |sync| {
        [("sync", sync), ("get", "none"), ("memory", "testapi")]
            .map(|(name, server)| (name.to_owned(), server))
    };
    assert_eq!(servers(Kind::Real), of("real"));
    assert_eq!(servers(Kind::Testapi), of("testapi"));
}
