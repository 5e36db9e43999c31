//! Outages by script, and with random operations.

use super::*;

fn at(millis: u64) -> Time {
    Time::from_start(Duration::from_millis(millis))
}

/// Polls up to a time, as a caller that does nothing else; with the time of each output.
fn run(outage: &mut Outage, until: Time) -> Vec<(Time, Output)> {
    let mut outputs = Vec::new();
    while let Some(now) = outage.deadline().filter(|now| *now <= until) {
        while let Some(output) = outage.poll(now) {
            outputs.push((now, output));
        }
    }
    outputs
}

fn probes(outputs: &[(Time, Output)]) -> usize {
    outputs.iter().filter(|(_, output)| *output == Output::Probe).count()
}

#[test]
fn w14_an_outage_of_58_costs_one_probe_a_second_and_all_go_on_within_a_second_after_it() {
    let mut outage = Outage::new(1);
    let members: Vec<_> = (0..58).map(|_| outage.join()).collect();
    for member in &members {
        outage.failed(at(0), *member);
    }
    let during = run(&mut outage, at(60_000));
    assert_eq!(during.len(), probes(&during), "nobody is woken");
    assert!((50..=70).contains(&during.len()), "{}", during.len());
    assert!(outage.lasts() && members.iter().all(|member| outage.holds(*member)));

    outage.answered(at(60_000), None);
    let after = run(&mut outage, at(90_000));
    let woken: Vec<_> = after.iter().map(|(_, output)| *output).collect();
    assert_eq!(woken, members.iter().map(|member| Output::Wake(*member)).collect::<Vec<_>>());
    assert!(after.iter().all(|(now, _)| *now <= at(61_000)), "{after:?}");
    assert!(!outage.lasts() && members.iter().all(|member| !outage.holds(*member)));
}

#[test]
fn w14_the_answer_to_a_member_ends_the_outage_for_all() {
    let mut outage = Outage::new(1);
    let (one, two) = (outage.join(), outage.join());
    outage.failed(at(0), one);
    outage.answered(at(10), Some(two));
    assert_eq!(run(&mut outage, at(5_000)), [(at(10), Output::Wake(one))]);
}

#[test]
fn w14_who_fails_alone_is_woken_less_and_less_often() {
    let mut outage = Outage::new(1);
    let (one, two) = (outage.join(), outage.join());
    let mut now = at(0);
    let mut waits = Vec::new();
    for _ in 0..8 {
        outage.failed(now, one);
        // The other members' requests are answered all the time.
        outage.answered(now, Some(two));
        let woken = run(&mut outage, now + Duration::from_secs(600));
        assert_eq!(woken.len(), 1);
        waits.push(woken[0].0.since(now).as_secs());
        now = woken[0].0;
    }
    assert_eq!(waits, [0, 1, 2, 4, 8, 16, 30, 30]);
    // After one answer the waits start over.
    outage.answered(now, Some(one));
    outage.failed(now, one);
    outage.answered(now, None);
    assert_eq!(run(&mut outage, now), [(now, Output::Wake(one))]);
}

#[test]
fn w14_a_server_that_goes_again_gets_no_crowd() {
    let mut outage = Outage::new(1);
    let members: Vec<_> = (0..58).map(|_| outage.join()).collect();
    for member in &members {
        outage.failed(at(0), *member);
    }
    outage.answered(at(1_000), None);
    let woken = run(&mut outage, at(1_025));
    assert_eq!(woken.len(), 3);
    outage.failed(at(1_026), members[0]);
    let during = run(&mut outage, at(9_000));
    assert_eq!(during.len(), probes(&during), "{during:?}");
    assert!(outage.holds(members[57]) && !outage.holds(members[1]));
}

#[test]
fn w14_a_server_that_is_too_slow_for_the_probe_is_tried_by_one_at_a_time() {
    let mut outage = Outage::new(1);
    let (one, two) = (outage.join(), outage.join());
    outage.failed(at(0), two);
    outage.failed(at(5), one);
    outage.probe_timed_out(at(10));
    assert_eq!(outage.poll(at(10)), Some(Output::Wake(two)));
    assert!(outage.holds(one) && outage.lasts());
    outage.answered(at(20), Some(two));
    assert_eq!(outage.poll(at(20)), Some(Output::Wake(one)));
}

#[test]
fn f4_nobody_probes_for_those_who_have_left() {
    let mut outage = Outage::new(1);
    let (one, two) = (outage.join(), outage.join());
    outage.failed(at(0), one);
    outage.failed(at(0), two);
    outage.leave(one);
    assert!(outage.lasts());
    outage.leave(two);
    assert_eq!((outage.deadline(), outage.poll(at(9_000))), (None, None));
}

/// Random events, and what must hold after each of them.
#[test]
fn w14_random_outages_keep_their_promises() {
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut outage = Outage::new(seed);
        let mut members: Vec<_> = (0..random.usize(1..20)).map(|_| outage.join()).collect();
        let mut now = Time::ZERO;
        let mut last_probe = None;
        for _ in 0..400 {
            now = now + Duration::from_millis(random.u64(0..300));
            let member = members[random.usize(..members.len())];
            match random.u8(..12) {
                0..5 if !outage.holds(member) => outage.failed(now, member),
                5 => outage.answered(now, None),
                6 => outage.answered(now, Some(member)),
                7 => outage.probe_timed_out(now),
                8 => members.push(outage.join()),
                9 if members.len() > 1 => {
                    outage.leave(member);
                    members.retain(|other| *other != member);
                }
                _ => {}
            }
            let held = |outage: &Outage| members.iter().filter(|member| outage.holds(**member)).count();
            let mut before = held(&outage);
            while let Some(output) = outage.poll(now) {
                match output {
                    Output::Wake(member) => {
                        assert!(members.contains(&member), "seed {seed}: it has left");
                        assert!(!outage.holds(member), "seed {seed}");
                        // A member whose request was answered in the meantime is also woken, although it is no longer held.
                        assert!(held(&outage) <= before, "seed {seed}: a wake holds somebody");
                        before = held(&outage);
                    }
                    Output::Probe => {
                        assert!(before > 0 && outage.lasts(), "seed {seed}: a probe for nobody");
                        let pause = last_probe.map(|last| now.since(last));
                        assert!(pause.is_none_or(|pause| pause >= FIRST_PROBE.mul_f64(0.75)), "seed {seed}");
                        last_probe = Some(now);
                    }
                }
            }
            assert!(held(&outage) == 0 || outage.deadline().is_some(), "seed {seed}: held, and for what?");
        }
        // Earlier events do not matter: once the server answers and no request fails, all members are released.
        outage.answered(now, None);
        run(&mut outage, now + LONGEST_DELAY + RELEASE_TIME);
        assert!(members.iter().all(|member| !outage.holds(*member)), "seed {seed}");
        assert_eq!(outage.deadline(), None, "seed {seed}");
    }
}
