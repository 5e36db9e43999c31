//! Rules for Rust source: module heads, lengths, and what tests must not do.

use super::Finding;
use crate::source::{functions, test_lines};
use crate::tree::File;

const FILE_LINES_MAX: usize = 700;
const FILE_LINES_NOTED: usize = 500;
const FUNCTION_LINES_NOTED: usize = 100;

/// Waits for processes that tell nobody when they are ready.
const MAY_SLEEP: &str = "crates/control-plane/";

/// `code` is `file` without comments and literals.
pub(super) fn check(file: &File, code: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(head(file));
    findings.extend(file_length(file));
    findings.extend(function_lengths(&file.path, code));
    findings.extend(banned(&file.path, code));
    findings.extend(sleeping_tests(&file.path, code));
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

fn function_lengths(path: &str, code: &str) -> Vec<Finding> {
    let long = functions(code).into_iter().filter_map(|function| {
        let lines = function.last - function.first + 1;
        let message = format!("function `{}` has {lines} lines", function.name);
        (lines > FUNCTION_LINES_NOTED).then(|| Finding::noted(path, function.first, message))
    });
    long.collect()
}

fn banned(path: &str, code: &str) -> Vec<Finding> {
    let refused = |line: &str| {
        if line.contains("#[ignore") {
            Some("an ignored test tests nothing; choose by an environment variable, and say so")
        } else if line.contains("todo!(") {
            Some("`todo!` is for work trees, not for commits")
        } else {
            None
        }
    };
    let lines = code.lines().enumerate();
    lines.filter_map(|(index, line)| Some(Finding::refused(path, index + 1, refused(line)?))).collect()
}

fn sleeping_tests(path: &str, code: &str) -> Vec<Finding> {
    if path.starts_with(MAY_SLEEP) {
        return Vec::new();
    }
    let tests_only = path.split('/').nth(2) == Some("tests") || path.starts_with("crates/conformance/");
    let test_lines = test_lines(code);
    let lines = code.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines
        .filter(|(number, line)| (tests_only || test_lines.contains(number)) && sleeps(line))
        .map(|(number, _)| {
            let message = "a test that sleeps is slow or flaky: wait for the event, or pass the time in";
            Finding::refused(path, number, message)
        })
        .collect()
}

/// A call of a function `sleep` or `sleep_until`; a method of that name is somebody's own clock.
fn sleeps(line: &str) -> bool {
    ["sleep(", "sleep_until("].iter().any(|call| {
        line.match_indices(call).any(|(at, _)| {
            let before = &line[..at];
            let other_name = before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
            !other_name && !before.ends_with("fn ")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::code_only;

    /// The lines and first words of what is found in `text`.
    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        let findings = check(&file, &code_only(text)).into_iter();
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
    fn only_calls_of_functions_sleep() {
        for line in ["tokio::time::sleep(a).await;", "sleep(a)", "(sleep_until(a), b)"] {
            assert!(sleeps(line), "{line}");
        }
        for line in ["fn sleep(a: u8) {", "self.sleep(a)", "oversleep(a)", "sleeper(a)"] {
            assert!(!sleeps(line), "{line}");
        }
    }
}
