//! Random operations, compared with the model after each step. Model and operations are in the crate `fuzzing`.

use fuzzing::{Choices, seeds, store};

#[test]
fn c8_random_operations_agree_with_a_naive_model() {
    seeds::each(0..20, |seed| {
        let keys = [12, 20, 28, 36, 44][(seed % 5) as usize];
        store::run_on(Choices::new(&seeds::bytes(seed, 4_000)), keys, 1);
    });
}

#[test]
fn c8_random_operations_on_more_objects_agree_with_a_naive_model() {
    seeds::each(100..102, |seed| store::run_on(Choices::new(&seeds::bytes(seed, 60_000)), 1_500, 1_000));
}
