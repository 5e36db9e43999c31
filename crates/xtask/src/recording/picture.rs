//! Lines of a terminal as an SVG in which they appear at their times, once. Readers who want no motion see all of them.

use std::fmt::Write as _;
use std::time::Duration;

use super::styles::spans;

/// A line of output.
pub(super) struct Line {
    /// After the beginning of the picture.
    pub(super) at: Duration,
    pub(super) text: String,
}

const FONT: f64 = 13.0;
/// Of usual monospaced fonts.
const CHARACTER: f64 = FONT * 0.602;
const HEIGHT: f64 = 18.0;
const MARGIN: f64 = 16.0;

/// A dark terminal, whatever is around it.
const STYLE: &str = "\
text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#e6edf3;white-space:pre}
.b{font-weight:bold}.d{fill:#8b949e}.r{fill:#ff7b72}.g{fill:#7ee787}.y{fill:#f2cc60}.c{fill:#79c0ff}
.l{animation:come 1ms both}@keyframes come{from{visibility:hidden}to{visibility:visible}}
@media (prefers-reduced-motion:reduce){.l{animation:none}}
";

pub(super) fn svg(command: &str, lines: &[Line]) -> String {
    let prompt = Line { at: Duration::ZERO, text: format!("$ {command}") };
    let lines: Vec<&Line> = std::iter::once(&prompt).chain(lines).collect();
    let longest = lines.iter().map(|line| columns(line)).max().unwrap_or_default();
    let width = count(longest) * CHARACTER + 2.0 * MARGIN;
    let height = count(lines.len()) * HEIGHT + 2.0 * MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n<rect x=\"0.5\" y=\"0.5\" width=\"{:.0}\" height=\"{:.0}\" rx=\"8\" fill=\"#0d1117\" stroke=\"#30363d\"/>\n",
        escaped(command),
        width - 1.0,
        height - 1.0,
    );
    let mut classes = String::new();
    for (index, line) in lines.iter().enumerate() {
        let y = MARGIN + HEIGHT * count(index) + FONT;
        put(
            &mut out,
            format_args!(
                "<text class=\"l\" xml:space=\"preserve\" x=\"{MARGIN}\" y=\"{y}\" style=\"animation-delay:{:.2}s\">",
                line.at.as_secs_f64()
            ),
        );
        for span in spans(&line.text, &mut classes) {
            let text = escaped(&span.text);
            match span.classes.is_empty() {
                true => out.push_str(&text),
                false => {
                    put(&mut out, format_args!("<tspan class=\"{}\">{text}</tspan>", letters(&span.classes)))
                }
            }
        }
        out.push_str("</text>\n");
    }
    out + "</svg>\n"
}

fn columns(line: &Line) -> usize {
    spans(&line.text, &mut String::new()).iter().map(|span| span.text.chars().count()).sum()
}

/// Of lines and columns, of which there are few.
fn count(number: usize) -> f64 {
    f64::from(u16::try_from(number).unwrap_or(u16::MAX))
}

/// `by` are the classes `b y`.
fn letters(classes: &str) -> String {
    classes.chars().map(String::from).collect::<Vec<_>>().join(" ")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Writing to a string cannot fail.
fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_comes_at_its_time() {
        let line = Line { at: Duration::from_millis(1_250), text: "\u{1b}[32m<b>\u{1b}[0m & c".to_owned() };
        let svg = svg("kubediff demo", &[line]);
        assert!(svg.contains("style=\"animation-delay:0.00s\">$ kubediff demo</text>"), "{svg}");
        assert!(
            svg.contains("animation-delay:1.25s\"><tspan class=\"g\">&lt;b&gt;</tspan> &amp; c</text>"),
            "{svg}"
        );
    }
}
