//! Durations for people: `5m30s`, `3d4h`.

use std::time::{Duration, SystemTime};

/// Parses RFC 3339.
pub(super) fn parse(text: &str) -> Option<SystemTime> {
    let timestamp: jiff::Timestamp = text.parse().ok()?;
    Some(timestamp.into())
}

/// The time from one moment to another, in the precision that people need.
pub(super) fn between(from: SystemTime, to: SystemTime) -> String {
    match to.duration_since(from) {
        Ok(duration) => human(duration),
        // Clocks differ a little: that counts as now.
        Err(error) if error.duration() < Duration::from_secs(2) => "0s".to_string(),
        Err(_) => "<invalid>".to_string(),
    }
}

/// The longer, the coarser.
pub(super) fn human(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => two(days, "d", hours % 24, "h"),
        () if days < 365 * 2 => format!("{days}d"),
        () if days < 365 * 8 => two(days / 365, "y", days % 365, "d"),
        () => format!("{}y", days / 365),
    }
}

fn two(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit}{small}{small_unit}")
    }
}
