//! The term of a log: its row decides who writes.

use std::ops::Range;
use std::time::Duration;

use super::session::{Session, TTL};
use crate::sql::db::values;
use crate::sql::fault::Outcome;

/// A term is renewed as often as this.
const RENEWAL: Duration = Duration::from_secs(3);

/// The token of the term, if a process may have it.
pub(super) fn claim(session: &Session, holder: &str, returns: bool) -> Outcome<Option<String>> {
    let claim = format!("SELECT claim_term($1, '{} seconds', $2::int <> 0)::text", TTL.as_secs());
    let claimed = session.ask(&claim, values![holder, i64::from(returns)])?;
    Ok(claimed.rows.first().map(|row| row.try_get(0)).transpose()?.flatten())
}

/// Renews the term from now on.
pub(super) fn renew(session: &Session) {
    expires(session, &format!("+ interval '{} seconds'", TTL.as_secs()));
}

/// From now on, another process may have the term at once.
pub(super) fn lend(session: &Session) {
    expires(session, "");
}

fn expires(session: &Session, after: &str) {
    if let Some(token) = &session.token {
        let sql = format!("UPDATE terms SET expires_at = clock_timestamp() {after} WHERE token = '{token}'");
        session.link.repeat(RENEWAL, sql);
    }
}

/// Asks whether another process stands by.
pub(super) fn is_awaited() -> String {
    format!(
        "SELECT coalesce(standby_at > clock_timestamp() - interval '{} seconds' / 2, false) FROM terms",
        TTL.as_secs()
    )
}

/// An id for a batch, which the row has once the batch is stored.
pub(super) fn batch_id() -> String {
    // The version and the variant of RFC 9562.
    let bits = (u128::from(fastrand::u64(..)) << 64) | u128::from(fastrand::u64(..));
    let bits = bits & !(0xf000 << 64) & !(0xc0 << 56) | (0x4000 << 64) | (0x80 << 56);
    let hex = format!("{bits:032x}");
    let part = |range: Range<usize>| hex.get(range).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0..8), part(8..12), part(12..16), part(16..20), part(20..32))
}
