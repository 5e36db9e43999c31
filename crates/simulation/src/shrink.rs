//! Shrinks a failing plan to the fewest and mildest steps that break the same invariant.

use crate::invariant::Violation;
use crate::plan::{Plan, Reading, Start, Step, Transform};

/// A shrink makes at most this many runs.
const TRIES: u32 = 20_000;

/// Removes steps and simplifies what is left, as long as `run` returns a violation of the same invariant. Returns the
/// smallest plan with its violation; `None` if the plan does not fail.
pub fn shrink(plan: &Plan, mut run: impl FnMut(&Plan) -> Result<(), Violation>) -> Option<(Plan, Violation)> {
    let violation = run(plan).err()?;
    let mut shrinking = Shrinking { plan: plan.clone(), violation, run: &mut run, tries: 0 };
    loop {
        let before = shrinking.plan.clone();
        shrinking.drop_steps();
        shrinking.soften_steps();
        shrinking.simplify_setup();
        if shrinking.plan == before || shrinking.tries >= TRIES {
            return Some((shrinking.plan, shrinking.violation));
        }
    }
}

struct Shrinking<'a> {
    plan: Plan,
    violation: Violation,
    run: &'a mut dyn FnMut(&Plan) -> Result<(), Violation>,
    tries: u32,
}

impl Shrinking<'_> {
    /// Continues with a smaller plan if it breaks the same invariant.
    fn take(&mut self, plan: Plan) -> bool {
        if plan == self.plan || self.tries >= TRIES {
            return false;
        }
        self.tries += 1;
        match (self.run)(&plan) {
            Err(violation) if violation.invariant == self.violation.invariant => {
                (self.plan, self.violation) = (plan, violation);
                true
            }
            _ => false,
        }
    }

    /// Tries halves first, then quarters, down to single steps.
    fn drop_steps(&mut self) {
        let mut size = self.plan.steps.len().max(1);
        loop {
            let mut at = 0;
            while at < self.plan.steps.len() {
                let mut plan = self.plan.clone();
                plan.steps.drain(at..(at + size).min(plan.steps.len()));
                if !self.take(plan) {
                    at += size;
                }
            }
            if size == 1 {
                return;
            }
            size /= 2;
        }
    }

    fn soften_steps(&mut self) {
        for at in 0..self.plan.steps.len() {
            while let Some(step) = self.plan.steps.get(at).and_then(softer) {
                let mut plan = self.plan.clone();
                if let Some(place) = plan.steps.get_mut(at) {
                    *place = step;
                }
                if !self.take(plan) {
                    break;
                }
            }
        }
    }

    /// Tries the usual value of each setting.
    fn simplify_setup(&mut self) {
        let simpler: [fn(&mut Plan); 25] = [
            |plan| plan.setup.readers.clear(),
            |plan| plan.setup.readers.truncate(1),
            |plan| plan.setup.readers.iter_mut().for_each(|reading| reading.filters = false),
            |plan| plan.setup.by_namespace = false,
            |plan| plan.setup.two = false,
            // Otherwise a server that serves another version is lost for good, which is another failure.
            |plan| plan.setup.follows &= plan.steps.iter().any(|step| matches!(step, Step::Serve)),
            |plan| plan.setup.server.slow = false,
            |plan| plan.setup.first_list_any = false,
            |plan| plan.setup.streaming = false,
            |plan| plan.setup.internal_error_retry = false,
            |plan| plan.setup.by_hand = false,
            |plan| plan.setup.chunk = 4096,
            |plan| plan.setup.packed = false,
            |plan| plan.setup.changes_at_once = 4096,
            |plan| plan.setup.transform = Transform::default(),
            |plan| plan.setup.stops_at_once = false,
            |plan| plan.setup.server.selects = false,
            |plan| plan.setup.server.opaque = false,
            |plan| plan.setup.server.objects = 0,
            |plan| plan.setup.server.lag = 0,
            |plan| plan.setup.server.late_end = false,
            |plan| plan.setup.server.custom = false,
            |plan| plan.setup.server.protobuf = false,
            |plan| plan.setup.server.pages = false,
            |plan| plan.setup.server.first_version = 1,
        ];
        for simplify in simpler {
            let mut plan = self.plan.clone();
            simplify(&mut plan);
            self.take(plan);
        }
    }
}

/// A milder form of the step.
fn softer(step: &Step) -> Option<Step> {
    Some(match *step {
        Step::Fault(fault, times) if times > 1 => Step::Fault(fault, times - 1),
        Step::Pass(millis) if millis > 1 => Step::Pass(millis / 2),
        Step::Elsewhere(versions) if versions > 1 => Step::Elsewhere(versions / 2),
        Step::Recreate(key) => Step::Put(key),
        Step::Join(reading) if reading.filters => Step::Join(Reading { filters: false, ..reading }),
        Step::Restart(Start::Saved) => Step::Restart(Start::Fresh),
        Step::Cut(client) => Step::End(client),
        Step::Deliver(client, bytes) if bytes > 0 => Step::Deliver(client, bytes / 2),
        _ => return None,
    })
}
