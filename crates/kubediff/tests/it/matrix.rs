//! The attack's matrix (issue 19): shapes of values, in encodings, at places. Its table is what SECURITY.md says.

use std::collections::BTreeMap;

use expect_test::expect;
use fuzzing::matrix::{encodings, example, is_visible, places, run, shapes, shown};
use fuzzing::seeds;

#[test]
fn k3_no_recognised_value_is_visible_in_any_encoding_at_any_place() {
    let (mut visible, mut tried) = (BTreeMap::<&str, Vec<String>>::new(), 0);
    for (shape, planted, whole) in shapes() {
        let value = whole(planted);
        for (encoding, encode) in encodings() {
            let text = encode(planted);
            for place in places() {
                tried += 1;
                if is_visible(&text, &shown(&value, &text, &place)) {
                    visible.entry(encoding).or_default().push(format!("{shape} in {}", place.0));
                }
            }
        }
    }
    let mut table = String::new();
    for (encoding, cases) in &visible {
        let cases = if encoding.starts_with('*') { String::new() } else { format!(": {}", cases.join(", ")) };
        table += &format!("{encoding}{cases}\n");
    }
    expect![[r#"
        8064 tried
        * backwards
        * base64 three times
        * hex
        HTML: a space and quotes in last applied, a space and quotes in a document
        HTML twice: a space and quotes in last applied, a space and quotes in a document
        JSON three deep: an armoured key in last applied, an armoured key in a document, a space and quotes in last applied, a space and quotes in a document
    "#]].assert_eq(&format!("{tried} tried\n{table}"));
}

/// Other values of the same shapes: what the fuzzer does for hours.
#[test]
fn k3_no_value_of_these_shapes_is_visible() {
    seeds::each(0..1_000, |seed| run(&example(seed)));
}
