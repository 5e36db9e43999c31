//! Makes a failing plan smaller.

use crate::plan::{DATE, Plan};

/// A shrink makes at most this many runs.
const TRIES: usize = 200;

/// Leaves out disturbances and steps as long as `fails` says that the same failure remains.
pub(crate) fn shrink(plan: &Plan, steps: usize, mut fails: impl FnMut(&Plan) -> bool) -> Plan {
    let mut smallest = plan.clone();
    let mut tries = 0;
    let mut is_smaller = |candidate: Plan, smallest: &mut Plan| {
        tries += 1;
        let fails = tries <= TRIES && fails(&candidate);
        if fails {
            *smallest = candidate;
        }
        fails
    };
    loop {
        let before = smallest.clone();
        for at in (0..smallest.disturbances.len()).rev() {
            let mut candidate = smallest.clone();
            candidate.disturbances.remove(at);
            is_smaller(candidate, &mut smallest);
        }
        for step in (0..steps).rev() {
            if !smallest.left_out.contains(&step) {
                let mut candidate = smallest.clone();
                candidate.left_out.push(step);
                is_smaller(candidate, &mut smallest);
            }
        }
        if smallest.date != DATE {
            is_smaller(Plan { date: DATE, ..smallest.clone() }, &mut smallest);
        }
        for at in 0..smallest.disturbances.len() {
            while let Some(planned) = smallest.disturbances.get(at)
                && planned.lasting.as_secs() >= 1
            {
                let mut candidate = smallest.clone();
                if let Some(planned) = candidate.disturbances.get_mut(at) {
                    planned.lasting /= 2;
                }
                if !is_smaller(candidate, &mut smallest) {
                    break;
                }
            }
        }
        if smallest == before {
            return smallest;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::plan::{Disturbance, Planned, When};

    #[test]
    fn what_a_failure_does_not_need_is_left_out() {
        let planned = |kind, write| Planned {
            kind,
            when: When::Write(write),
            lasting: Duration::from_secs(8),
            behind: 0,
        };
        let plan = Plan {
            seed: 1,
            date: 0,
            disturbances: vec![planned(Disturbance::Crash, 1), planned(Disturbance::Conflict, 2)],
            left_out: Vec::new(),
        };
        // It needs the crash, for at least 2 s, and step 1.
        let shrunk = shrink(&plan, 3, |plan| {
            let crash = plan.disturbances.iter().find(|planned| planned.kind == Disturbance::Crash);
            crash.is_some_and(|crash| crash.lasting >= Duration::from_secs(2)) && !plan.left_out.contains(&1)
        });
        assert_eq!(shrunk.disturbances.len(), 1);
        assert_eq!(shrunk.disturbances[0].lasting, Duration::from_secs(2));
        assert_eq!((shrunk.left_out, shrunk.date), (vec![2, 0], DATE));
    }
}
