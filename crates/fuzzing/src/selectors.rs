//! Label selectors: parsing inverts writing, and they match as their requirements say.

use informer_core::{InvalidSelector, Labels, Operator, Requirement, Selector};

use crate::{Choices, seeds};

const OPERATORS: [Operator; 6] = [
    Operator::In,
    Operator::NotIn,
    Operator::Exists,
    Operator::DoesNotExist,
    Operator::GreaterThan,
    Operator::LessThan,
];
const WORDS: [&str; 14] = [
    "a",
    "b",
    "in",
    "notin",
    "1",
    "-2",
    "+3",
    "007",
    "",
    "x.io/y",
    "A_b.c-d",
    "9223372036854775808",
    "é",
    "=",
];

/// The first byte selects whether the others are a text or decisions on what to build.
pub fn run(input: &[u8]) {
    let Some((how, rest)) = input.split_first() else { return };
    if how.is_multiple_of(2) {
        let Ok(text) = std::str::from_utf8(rest) else { return };
        match text.parse::<Selector>() {
            Ok(selector) => check(&selector, &mut Choices::new(rest)),
            Err(error) => assert!(error.position() <= text.chars().count(), "{error}"),
        }
    } else {
        let mut choices = Choices::new(rest);
        let count = choices.below(4);
        let built: Result<Selector, InvalidSelector> =
            (0..count).map(|_| requirement(&mut choices)).collect();
        if let Ok(selector) = built {
            check(&selector, &mut choices);
        }
    }
}

fn requirement(choices: &mut Choices<'_>) -> Result<Requirement, InvalidSelector> {
    let mut word = || choices.pick(&WORDS).copied().unwrap_or_default();
    let (key, values) = (word(), [word(), word(), word()]);
    let operator = choices.pick(&OPERATORS).copied().unwrap_or(Operator::Exists);
    Requirement::new(key, operator, values.into_iter().take(choices.below(4)))
}

/// Whether it survives being written and read, and matches some labels as it should.
fn check(selector: &Selector, choices: &mut Choices<'_>) {
    let text = selector.to_string();
    assert_eq!(text.parse::<Selector>().as_ref(), Ok(selector), "{text}");
    let requirements = selector.requirements();
    assert_eq!(selector.is_everything(), requirements.is_empty());
    for _ in 0..4 {
        // Labels that the selector speaks of, mostly.
        let mut pairs = Vec::new();
        for requirement in requirements {
            let values: Vec<&str> = requirement.values().chain(WORDS).collect();
            if choices.coin() {
                pairs.push((requirement.key(), choices.pick(&values).copied().unwrap_or_default()));
            }
        }
        pairs.sort_unstable();
        pairs.dedup_by_key(|(key, _)| *key);
        let labels = Labels::new(pairs.iter().copied());
        let expected = requirements.iter().all(|requirement| holds(requirement, &pairs));
        assert_eq!(selector.matches(&labels), expected, "{text} of {pairs:?}");
    }
}

/// The meaning of a requirement, as Kubernetes documents it.
fn holds(requirement: &Requirement, labels: &[(&str, &str)]) -> bool {
    let label = labels.iter().find(|(key, _)| *key == requirement.key()).map(|(_, value)| *value);
    let mut values = requirement.values();
    let number = |text: &str| text.parse::<i64>().ok();
    match requirement.operator() {
        Operator::Exists => label.is_some(),
        Operator::DoesNotExist => label.is_none(),
        Operator::In => values.any(|value| label == Some(value)),
        Operator::NotIn => values.all(|value| label != Some(value)),
        Operator::GreaterThan => label.and_then(number) > values.next().and_then(number),
        Operator::LessThan => {
            label.and_then(number).is_some_and(|label| Some(label) < values.next().and_then(number))
        }
    }
}

/// A selector's text, or decisions.
pub fn example(seed: u64) -> Vec<u8> {
    let texts = [
        "a",
        "!a",
        "a=1",
        "a!=1",
        "a in (1,2),b",
        "b notin (1,3),!c",
        "c>1",
        "c<3,a notin (2)",
        " in in (in,)",
    ];
    match usize::try_from(seed).map(|seed| texts.get(seed % (2 * texts.len()))) {
        Ok(Some(text)) => [&[0], text.as_bytes()].concat(),
        _ => seeds::bytes(seed | 1, 40),
    }
}
