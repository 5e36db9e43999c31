//! Line charts as SVG, with logarithmic axes: what grows as fast as the objects is a line of 45 degrees or less.

use std::fmt::Write as _;

use super::figures::show;

pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    pub(crate) unit: &'a str,
    /// By name: points from left to right, greater than zero.
    pub(crate) lines: Vec<(String, Vec<(f64, f64)>)>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 110.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 40.0;
/// Told apart by those who do not see all colours, on light and on dark ground.
const COLOURS: [&str; 3] = ["#0072b2", "#d55e00", "#009e73"];

/// From decades to pixels.
struct Axis {
    first: f64,
    last: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// Whole decades around all values.
    fn around(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (least, most) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        let (least, most) = if least <= most { (least, most) } else { (1.0, 10.0) };
        let first = least.log10().floor();
        Self { first, last: most.log10().ceil().max(first + 1.0), from, to }
    }

    fn at(&self, value: f64) -> f64 {
        self.from + (value.log10() - self.first) / (self.last - self.first) * (self.to - self.from)
    }

    fn decades(&self) -> impl Iterator<Item = f64> {
        let mut exponent = self.first;
        let last = self.last;
        std::iter::from_fn(move || {
            let decade = (exponent <= last).then(|| 10_f64.powf(exponent));
            exponent += 1.0;
            decade
        })
    }
}

pub(crate) fn svg(chart: &Chart<'_>) -> String {
    let points = || chart.lines.iter().flat_map(|(_, points)| points);
    let across = Axis::around(points().map(|(x, _)| *x), LEFT, WIDTH - RIGHT);
    let up = Axis::around(points().map(|(_, y)| *y), HEIGHT - BOTTOM, TOP);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n<text x=\"{LEFT}\" y=\"24\" font-size=\"15\">{}</text>\n",
        chart.title
    );
    for decade in across.decades() {
        let x = across.at(decade);
        put(&mut out, format_args!("<path d=\"M{x:.1} {TOP}V{}\" stroke=\"#dddddd\"/>\n", HEIGHT - BOTTOM));
        let y = HEIGHT - BOTTOM + 18.0;
        put(&mut out, format_args!("<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{decade}</text>\n"));
    }
    for decade in up.decades() {
        let y = up.at(decade);
        put(&mut out, format_args!("<path d=\"M{LEFT} {y:.1}H{}\" stroke=\"#dddddd\"/>\n", WIDTH - RIGHT));
        let label = show(decade, chart.unit);
        let (x, y) = (LEFT - 8.0, y + 4.0);
        put(&mut out, format_args!("<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{label}</text>\n"));
    }
    for ((name, points), colour) in chart.lines.iter().zip(COLOURS) {
        let path: Vec<String> =
            points.iter().map(|(x, y)| format!("{:.1} {:.1}", across.at(*x), up.at(*y))).collect();
        let Some((x, y)) = points.last().map(|(x, y)| (across.at(*x), up.at(*y))) else { continue };
        put(
            &mut out,
            format_args!(
                "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n",
                path.join("L")
            ),
        );
        for (x, y) in points.iter().map(|(x, y)| (across.at(*x), up.at(*y))) {
            put(&mut out, format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>\n"));
        }
        let (x, y) = (x + 8.0, y + 4.0);
        put(&mut out, format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\">{name}</text>\n"));
    }
    out + "</svg>\n"
}

/// Writing to a string cannot fail.
fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_each_point_within_its_axes() {
        let lines = vec![("ours".to_owned(), vec![(10_000.0, 0.2), (100_000.0, 2.5)])];
        let svg = svg(&Chart { title: "t", unit: "s", lines });
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains(">200 ms<") || svg.contains(">100 ms<"), "{svg}");
        for circle in svg.split("<circle cx=\"").skip(1) {
            let x: f64 = circle.split('"').next().unwrap().parse().unwrap();
            assert!((LEFT..=WIDTH - RIGHT).contains(&x), "{x}");
        }
    }
}
