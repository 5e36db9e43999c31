//! `cargo xtask chart`: the memory of caches, as a chart for the README. Its figures are those of docs/BENCHMARKS.md.

use std::fmt::Write as _;

use tooling::Error;

use crate::tree::Tree;

const PAGE: &str = "docs/BENCHMARKS.md";
const CHART: &str = "docs/benchmarks/memory.svg";
const COLUMN: &str = "steady memory above base";

pub(crate) fn run(tree: &Tree) -> Result<(), Error> {
    let path = tree.root().join(CHART);
    std::fs::write(&path, svg(&bars(&tree.read(PAGE)?)?)).map_err(Error::io(&path))?;
    println!("{CHART}");
    Ok(())
}

/// A client, how it views objects, and megabytes.
#[derive(Debug, PartialEq)]
struct Bar {
    client: String,
    setup: String,
    megabytes: f64,
}

/// Two views of objects, and the clients from most to least.
fn bars(page: &str) -> Result<Vec<Bar>, Error> {
    let mut bars = Vec::new();
    for setup in ["typed", "dynamic"] {
        for client in ["kube-rs", "client-go", "informer"] {
            let figure = figure(page, client, setup);
            let missing = || Error::format(PAGE, format!("no `{COLUMN}` of {client}, {setup}"));
            bars.push(Bar {
                client: client.to_owned(),
                setup: setup.to_owned(),
                megabytes: figure.ok_or_else(missing)?,
            });
        }
    }
    Ok(bars)
}

/// The first row of that client and setup in a table that has the column.
fn figure(page: &str, client: &str, setup: &str) -> Option<f64> {
    let mut column = None;
    for line in page.lines().filter(|line| !line.starts_with("|---")) {
        let Some(cells) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) else {
            column = None;
            continue;
        };
        let cells: Vec<&str> = cells.split(" | ").map(str::trim).collect();
        if cells.first() == Some(&"client") {
            column = cells.iter().position(|cell| *cell == COLUMN);
        } else if cells.first() == Some(&client) && cells.get(1) == Some(&setup) {
            // Behind the median are the least and the most.
            let number = column.and_then(|column| cells.get(column)?.split_once(" MB"));
            if let Some((number, _)) = number {
                return number.parse().ok();
            }
        }
    }
    None
}

const WIDTH: f64 = 640.0;
const LEFT: f64 = 96.0;
const RIGHT: f64 = 84.0;
const ROW: f64 = 22.0;
/// On light and on dark ground.
const STYLE: &str = "\
text{font:13px sans-serif;fill:#24292f}.t{font-size:15px}.s{fill:#57606a}.p{fill:#a0a8b0}.o{fill:#0072b2}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#8b949e}.p{fill:#6e7681}.o{fill:#58a6ff}}
";

fn svg(bars: &[Bar]) -> String {
    let most = bars.iter().map(|bar| bar.megabytes).fold(1.0, f64::max);
    let mut body = String::new();
    let mut y = 52.0;
    let mut group = "";
    for bar in bars {
        if bar.setup != group {
            group = &bar.setup;
            let of = if group == "typed" { "as Pod" } else { "as objects without a schema" };
            put(&mut body, format_args!("<text class=\"s\" x=\"{LEFT}\" y=\"{y}\">{of}</text>\n"));
            y += 8.0;
        }
        let width = (bar.megabytes / most * (WIDTH - LEFT - RIGHT)).max(1.0);
        let class = if bar.client == "informer" { "o" } else { "p" };
        let (line, end) = (y + 14.0, LEFT + width + 8.0);
        put(
            &mut body,
            format_args!(
                "<text x=\"{}\" y=\"{line}\" text-anchor=\"end\">{}</text>\n<rect class=\"{class}\" x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" height=\"{}\"/>\n<text x=\"{end:.1}\" y=\"{line}\">{} MB</text>\n",
                LEFT - 8.0,
                bar.client,
                ROW - 4.0,
                bar.megabytes
            ),
        );
        y += ROW;
        if bar.client == "informer" {
            y += 24.0;
        }
    }
    let height = y - 12.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n<title>Memory of a cache of 10,000 pods</title>\n<style>\n{STYLE}</style>\n<text class=\"t\" x=\"{LEFT}\" y=\"24\">Memory of a cache of 10,000 pods of 9 KB, above an empty process</text>\n{body}</svg>\n"
    )
}

/// Writing to a string cannot fail.
fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_has_the_figures_of_the_page() {
        let tree = Tree::here();
        let expected = svg(&bars(&tree.read(PAGE).unwrap()).unwrap());
        assert_eq!(tree.read(CHART).unwrap(), expected, "write it by `cargo xtask chart`");
    }

    #[test]
    fn a_figure_is_found_in_a_table_with_its_column() {
        let page = "| client | setup | wall |\n|---|---|---|\n| a | typed | 3 MB |\n\n| client | setup | steady memory above base | x |\n|---|---|---|---|\n| a | dynamic | 2 MB | 1 |\n| a | typed | 11.5 MB (11.1 MB to 12 MB) | 9 MB |\n";
        assert_eq!(figure(page, "a", "typed"), Some(11.5));
        assert_eq!(figure(page, "b", "typed"), None);
    }
}
