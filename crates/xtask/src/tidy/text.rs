//! Rules for every text file.

use super::Finding;
use crate::tree::File;

pub(super) fn check(file: &File) -> Vec<Finding> {
    let lines = file.text.lines().enumerate();
    let mut findings: Vec<Finding> = lines
        .filter(|(_, line)| line.ends_with([' ', '\t']))
        .map(|(index, _)| Finding::refused(&file.path, index + 1, "trailing white space"))
        .collect();
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        findings.push(Finding::refused(&file.path, 0, "no newline at the end"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_found(text: &str) -> Vec<usize> {
        let file = File { path: "a.md".to_owned(), text: text.to_owned() };
        check(&file).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn trailing_white_space_is_refused() {
        assert_eq!(lines_found("a\nb \n\tc\n\t\n"), [2, 4]);
        assert_eq!(lines_found("a\nb"), [0]);
        assert_eq!(lines_found(""), [0; 0]);
    }
}
