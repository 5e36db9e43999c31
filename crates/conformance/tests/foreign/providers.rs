//! A program whose dependencies bring both cryptography providers of rustls.

use std::process::Command;

use conformance::Foreign;

#[test]
fn a_program_with_both_providers_of_rustls_does_not_panic() {
    let Some(program) = Foreign::TwoProviders.build_or_skip("two_providers") else { return };
    let run = Command::new(program).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}
