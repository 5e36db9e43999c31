//! Informers that share a server.

use super::*;

const PACE: Duration = Duration::from_secs(30);

fn commands(upstream: &mut Upstream) -> Vec<Command> {
    std::iter::from_fn(|| upstream.poll_command()).collect()
}

/// The requests of one namespace wait for the end of the outage when that of another one is answered. Seed 2 found this.
#[test]
fn w14_an_answer_to_one_source_releases_the_other_sources_of_its_informer() {
    let mut upstream = Upstream::new(1, PACE);
    let member = upstream.join(Time::ZERO, "v1".to_owned(), false);
    commands(&mut upstream);
    upstream.handle(Time::ZERO, Input::Unanswered(member));
    assert!(upstream.holds(member));
    upstream.handle(Time::ZERO, Input::Answered(member));
    assert_eq!(commands(&mut upstream), [Command::Release(member)]);
    upstream.handle(Time::ZERO + Duration::from_secs(5), Input::Tick);
    assert!(!commands(&mut upstream).contains(&Command::Release(member)), "once");
}

#[test]
fn l14_all_informers_wait_a_second_for_the_schemas_and_all_get_them() {
    let mut upstream = Upstream::new(1, PACE);
    let [pods, nodes] = [(); 2].map(|()| upstream.join(Time::ZERO, "v1".to_owned(), true));
    assert_eq!(commands(&mut upstream), [Command::ReadSchemas]);
    let later = Time::ZERO + Duration::from_secs(1);
    assert_eq!(upstream.deadline(), Some(later));
    upstream.handle(later, Input::Tick);
    assert_eq!(commands(&mut upstream), [Command::Begin(pods), Command::Begin(nodes)]);
    let schemas = HashMap::from([("api/v1".to_owned(), "A".to_owned())]);
    upstream.handle(later, Input::Schemas(Some(schemas)));
    let schema = |member| Command::Schema(member, "v1 A A".to_owned());
    assert_eq!(commands(&mut upstream), [schema(pods), schema(nodes)]);
}
