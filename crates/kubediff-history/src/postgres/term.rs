//! The term of a log: its row decides who writes.

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
