//! Figures: named measurements of each scenario, client and setup, with one value per round.

use serde::{Deserialize, Serialize};

use super::library::{Library, Setup};

/// All figures of a run.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    rows: Vec<Figure>,
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) scenario: String,
    pub(crate) client: String,
    pub(crate) setup: String,
    pub(crate) figure: String,
    pub(crate) unit: String,
    pub(crate) median: f64,
    pub(crate) runs: Vec<f64>,
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Nanoseconds,
    Bytes,
    Times,
    Count,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Nanoseconds => "ns",
            Self::Bytes => "B",
            Self::Times => "x",
            Self::Count => "",
        }
    }
}

impl Figures {
    /// Records the figures of one run of a client, and prints them in one line.
    pub(crate) fn record(&mut self, scenario: &str, setup: &Setup, values: &[(&str, Unit, f64)]) {
        let shown: Vec<String> = values
            .iter()
            .map(|(figure, unit, value)| format!("{figure} {}", show(*value, unit.name())))
            .collect();
        println!("  {:<9} {}: {}", setup.client.name(), setup.name, shown.join(", "));
        for (figure, unit, value) in values {
            let row = self.row(scenario, setup, figure, *unit);
            row.runs.push(*value);
            row.median = median(&row.runs);
        }
    }

    fn row(&mut self, scenario: &str, setup: &Setup, figure: &str, unit: Unit) -> &mut Figure {
        let client = setup.client.name();
        let at = self.rows.iter().position(|row| row.is(scenario, client, &setup.name, figure));
        let at = at.unwrap_or_else(|| {
            let [scenario, client, setup, figure, unit] =
                [scenario, client, &setup.name, figure, unit.name()].map(str::to_owned);
            self.rows.push(Figure { scenario, client, setup, figure, unit, median: 0.0, runs: Vec::new() });
            self.rows.len() - 1
        });
        &mut self.rows[at]
    }

    /// The values of a figure: one per round.
    pub(crate) fn runs(&self, scenario: &str, client: Library, setup: &str, figure: &str) -> Option<&[f64]> {
        let row = self.rows.iter().find(|row| row.is(scenario, client.name(), setup, figure))?;
        Some(&row.runs)
    }

    pub(crate) fn rows(&self) -> &[Figure] {
        &self.rows
    }
}

impl Figure {
    pub(crate) fn is(&self, scenario: &str, client: &str, setup: &str, figure: &str) -> bool {
        self.scenario == scenario && self.client == client && self.setup == setup && self.figure == figure
    }

    /// Whether both are the same figure of the same scenario, client and setup.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.is(&other.scenario, &other.client, &other.setup, &other.figure)
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.len() % 2, sorted.get(middle)) {
        (1, Some(value)) => *value,
        (_, Some(upper)) => {
            middle.checked_sub(1).and_then(|at| sorted.get(at)).map_or(*upper, |lower| (lower + upper) / 2.0)
        }
        (_, None) => f64::NAN,
    }
}

/// A value with its unit, for people.
pub(crate) fn show(value: f64, unit: &str) -> String {
    let (value, unit) = match unit {
        "s" if value < 0.001 => (value * 1e6, "us"),
        "s" if value < 1.0 => (value * 1e3, "ms"),
        "ns" if value >= 1e9 => (value / 1e9, "s"),
        "ns" if value >= 1e6 => (value / 1e6, "ms"),
        "ns" if value >= 1e3 => (value / 1e3, "us"),
        "B" if value >= 1e6 => (value / 1e6, "MB"),
        "B" if value >= 1e3 => (value / 1e3, "KB"),
        unit => (value, unit),
    };
    let digits = match value.abs() {
        large if large >= 100.0 || large.fract() == 0.0 => 0,
        medium if medium >= 10.0 => 1,
        small if small >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$} {unit}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_middles() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn values_are_shown_in_units_that_fit() {
        assert_eq!(show(0.0123, "s"), "12.3 ms");
        assert_eq!(show(184_000_000.0, "B"), "184 MB");
        assert_eq!(show(161.0, "ns"), "161 ns");
        assert_eq!(show(2_960_000_000.0, "ns"), "2.96 s");
        assert_eq!(show(0.0621, "x"), "0.062 x");
    }
}
