//! Times as people read them.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// `2026-11-23 14:05:00`, in the time zone of the person who asks.
pub(crate) fn date_and_time(at: Timestamp, zone: &TimeZone) -> String {
    local(at, zone, "%Y-%m-%d %H:%M:%S")
}

/// `14:05:00`, in the time zone of the person who asks.
pub(crate) fn time_of_day(at: Timestamp, zone: &TimeZone) -> String {
    local(at, zone, "%H:%M:%S")
}

/// A time in this form. When clocks go back, an hour comes twice: its times say which one they are of.
pub(crate) fn local(at: Timestamp, zone: &TimeZone, form: &str) -> String {
    let at = at.to_zoned(zone.clone());
    let is_twice = form.contains("%H") && zone.to_ambiguous_zoned(at.datetime()).is_ambiguous();
    at.strftime(form).to_string() + &if is_twice { at.strftime("%:z").to_string() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_that_comes_twice_says_which_one_it_is() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let time = |text: &str| time_of_day(text.parse().unwrap(), &zone);
        assert_eq!(time("2026-10-24T23:59:59Z"), "01:59:59");
        assert_eq!(time("2026-10-25T00:30:00Z"), "02:30:00+02:00");
        assert_eq!(time("2026-10-25T01:30:00Z"), "02:30:00+01:00");
        assert_eq!(time("2026-10-25T02:00:00Z"), "03:00:00");
        assert_eq!(time("2026-03-29T01:30:00Z"), "03:30:00");
        assert_eq!(
            date_and_time("2026-10-25T01:30:00Z".parse().unwrap(), &zone),
            "2026-10-25 02:30:00+01:00"
        );
    }
}
