//! Rules for Rust source: module heads, lengths, and what tests must not do.

use super::Finding;
use crate::source::SourceCode;
use crate::tree::File;

const FILE_LINES_MAX: usize = 700;
const FILE_LINES_NOTED: usize = 500;
const FUNCTION_LINES_NOTED: usize = 100;

/// Files that may sleep: they wait for processes that do not report when they are ready.
const MAY_SLEEP: &str = "crates/control-plane/";

/// Crates that run in rehearsals, which must be the same for the same seed.
const REHEARSED: &[&str] = &[
    "crates/informer/src/",
    "crates/informer-controller/src/",
    "crates/informer-controller-test/src/",
    "crates/informer-core/src/",
    "crates/informer-shards/src/",
    "crates/kube-selector/src/",
    "crates/kube-table/src/",
    "crates/serve/src/",
    "crates/testapi/src/",
];

pub(super) fn check(file: &File, source: &SourceCode) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(head(file));
    findings.extend(file_length(file));
    findings.extend(function_lengths(&file.path, source));
    findings.extend(banned(&file.path, source));
    findings.extend(sleeping_tests(&file.path, source));
    findings.extend(random_selects(&file.path, source));
    findings
}

fn head(file: &File) -> Option<Finding> {
    let is_module = file.path.split('/').nth(2) == Some("src");
    (is_module && !file.text.starts_with("//!"))
        .then(|| Finding::refused(&file.path, 1, "the module has no `//!` head that says what it is"))
}

fn file_length(file: &File) -> Option<Finding> {
    let lines = file.text.lines().count();
    match lines {
        _ if lines > FILE_LINES_MAX => {
            let message = format!("{lines} lines are more than {FILE_LINES_MAX}: a file is one idea");
            Some(Finding::refused(&file.path, 0, message))
        }
        _ if lines > FILE_LINES_NOTED => Some(Finding::noted(&file.path, 0, format!("{lines} lines"))),
        _ => None,
    }
}

fn function_lengths(path: &str, source: &SourceCode) -> Vec<Finding> {
    let long = source.functions().into_iter().filter_map(|function| {
        let lines = function.last - function.first + 1;
        let message = format!("function `{}` has {lines} lines", function.name);
        (lines > FUNCTION_LINES_NOTED).then(|| Finding::noted(path, function.first, message))
    });
    long.collect()
}

fn banned(path: &str, source: &SourceCode) -> Vec<Finding> {
    let refused = |at: usize| {
        if source.is_word(at, "ignore") && source.brackets(at.checked_sub(1)?, '[').is_some() {
            Some("an ignored test tests nothing; choose by an environment variable, and say so")
        } else if source.is_word(at, "todo") && source.is_punct(at + 1, '!') {
            Some("`todo!` is for work trees, not for commits")
        } else {
            None
        }
    };
    let tokens = source.tokens.iter().enumerate();
    tokens.filter_map(|(at, token)| Some(Finding::refused(path, token.line, refused(at)?))).collect()
}

fn sleeping_tests(path: &str, source: &SourceCode) -> Vec<Finding> {
    if path.starts_with(MAY_SLEEP) {
        return Vec::new();
    }
    let tests_only = path.split('/').nth(2) == Some("tests") || path.starts_with("crates/conformance/");
    let tests = source.tests();
    let in_test = |at: &usize| tests_only || tests.iter().any(|test| test.contains(at));
    (0..source.tokens.len())
        .filter(in_test)
        .filter(|&at| sleeps(source, at))
        .map(|at| {
            let message = "a test that sleeps is slow or flaky: wait for the event, or pass the time in";
            Finding::refused(path, source.tokens[at].line, message)
        })
        .collect()
}

fn random_selects(path: &str, source: &SourceCode) -> Vec<Finding> {
    if path.ends_with("tests.rs") || !REHEARSED.iter().any(|folder| path.starts_with(folder)) {
        return Vec::new();
    }
    let is_random = |at: &usize| {
        source.is_word(*at, "select")
            && source.is_punct(at + 1, '!')
            && source.brackets(at + 2, '{').is_some()
            && !source.is_word(at + 3, "biased")
    };
    let message = "`select!` without `biased` draws lots: a rehearsal of the same seed would differ";
    let found = (0..source.tokens.len()).filter(is_random);
    found.map(|at| Finding::refused(path, source.tokens[at].line, message)).collect()
}

/// Calls of functions `sleep` or `sleep_until`. A method of that name belongs to a clock of the project and may be
/// called.
fn sleeps(source: &SourceCode, at: usize) -> bool {
    let is_call =
        matches!(source.word(at), Some("sleep" | "sleep_until")) && source.brackets(at + 1, '(').is_some();
    let before = at.checked_sub(1);
    is_call && !before.is_some_and(|before| source.is_punct(before, '.') || source.is_word(before, "fn"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines and first words of the findings in `text`.
    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        let findings = check(&file, &SourceCode::read(text).unwrap()).into_iter();
        let words = |message: &str| message.split(' ').take(3).collect::<Vec<_>>().join(" ");
        findings.map(|finding| (finding.line, words(&finding.message))).collect()
    }

    #[test]
    fn a_module_needs_a_head() {
        assert_eq!(found("crates/a/src/b.rs", "use x;\n"), [(1, "the module has".to_owned())]);
        assert_eq!(found("crates/a/src/b.rs", "//! B.\nuse x;\n"), []);
        assert_eq!(found("crates/a/tests/b.rs", "use x;\n"), []);
    }

    #[test]
    fn a_long_file_is_noted_then_refused() {
        let file = |lines: usize| "//!\n".repeat(lines);
        assert_eq!(found("crates/a/src/b.rs", &file(500)), []);
        assert_eq!(found("crates/a/src/b.rs", &file(501)), [(0, "501 lines".to_owned())]);
        assert_eq!(found("crates/a/src/b.rs", &file(701)), [(0, "701 lines are".to_owned())]);
    }

    #[test]
    fn a_long_function_is_noted() {
        let function = |lines: usize| format!("//!\nfn f() {{\n{}}}\n", "    x;\n".repeat(lines - 2));
        assert_eq!(found("crates/a/src/b.rs", &function(100)), []);
        assert_eq!(found("crates/a/src/b.rs", &function(101)), [(2, "function `f` has".to_owned())]);
    }

    #[test]
    fn unfinished_work_is_refused() {
        let text = "//!\n#[test]\n#[ignore = \"later\"]\nfn a() {\n    todo!()\n}\n// todo!()\n";
        assert_eq!(
            found("crates/a/src/b.rs", text),
            [(3, "an ignored test".to_owned()), (5, "`todo!` is for".to_owned())]
        );
    }

    #[test]
    fn a_test_does_not_sleep() {
        let text = "//!\nfn a() {\n    sleep(x);\n}\n#[cfg(test)]\nmod tests {\n    fn b() {\n        std::thread::sleep(x);\n        clock.sleep(x);\n    }\n}\n";
        assert_eq!(found("crates/a/src/b.rs", text), [(8, "a test that".to_owned())]);
        assert_eq!(found("crates/a/tests/b.rs", text).len(), 2);
        assert_eq!(found("crates/conformance/src/b.rs", text).len(), 2);
        assert_eq!(found("crates/control-plane/src/b.rs", text), []);
    }

    #[test]
    fn what_is_rehearsed_draws_no_lots() {
        let text = "//!\nfn a() {\n    select! {\n        biased;\n    }\n    tokio::select! {\n        x => {}\n    }\n}\n";
        assert_eq!(found("crates/informer/src/b.rs", text), [(6, "`select!` without `biased`".to_owned())]);
        assert_eq!(found("crates/informer/src/tests.rs", text), []);
        assert_eq!(found("crates/kubediff/src/b.rs", text), []);
    }

    #[test]
    fn only_calls_of_functions_sleep() {
        let sleeps = |line: &str| {
            let source = SourceCode::read(line).unwrap();
            (0..source.tokens.len()).any(|at| sleeps(&source, at))
        };
        for line in [
            "tokio::time::sleep(a).await;",
            "sleep(a)",
            "(sleep_until(a), b)",
            "select! { _ = sleep(a) => b }",
        ] {
            assert!(sleeps(line), "{line}");
        }
        for line in
            ["fn sleep(a: u8) {}", "self.sleep(a)", "oversleep(a)", "sleeper(a)", "\"sleep(a)\" // sleep(a)"]
        {
            assert!(!sleeps(line), "{line}");
        }
    }
}
