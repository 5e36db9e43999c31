//! The users whose requests made changes.

use super::db::{Db, Row, values};
use super::fault::{Fault, Outcome};
use super::values::id;
use crate::record::{Number, User};

/// The bytes of a user: PostgreSQL has an index of them, which takes 2,700. The last groups go first.
const LONGEST: usize = 2_400;

/// Stores the users of changes, in place of those that were stored.
pub(crate) fn attribute(db: Db<'_>, users: &[(Number, User)]) -> Outcome<()> {
    db.writing(|db| {
        for (number, user) in users {
            let mut known = User { probable: false, ..user.clone() };
            let json = loop {
                let json = serde_json::to_string(&known).map_err(|_| Fault::Invalid("a user is no JSON"))?;
                if json.len() <= LONGEST || (known.groups.pop().is_none() && known.agent.take().is_none()) {
                    break json;
                }
            };
            let known = db.first("SELECT id FROM users WHERE name = ?1", values![&json], |row| row.get(0))?;
            let of: i64 = match known {
                Some(of) => of,
                None => db.one("INSERT INTO users (name) VALUES (?1) RETURNING id", values![json])?,
            };
            db.run("DELETE FROM authors WHERE number = ?1", values![id(*number)])?;
            // Retention may have removed the change meanwhile.
            let sql = "INSERT INTO authors (number, author, probable) SELECT number, ?2, ?3 FROM versions WHERE number = ?1";
            db.run(sql, values![id(*number), of, i64::from(user.probable)])?;
        }
        Ok(())
    })
}

/// The user in these columns: as JSON, and whether it is only probable.
pub(crate) fn read(row: &Row<'_>, at: usize) -> Outcome<Option<User>> {
    let Some(json) = row.get::<Option<String>>(at)? else { return Ok(None) };
    let user: User =
        serde_json::from_str(&json).map_err(|_| Fault::damaged("the user of a change is undecodable"))?;
    let probable = row.get::<Option<i64>>(at + 1)?;
    Ok(Some(User { probable: probable.is_some_and(|probable| probable != 0), ..user }))
}

/// The users whose names match a pattern, in which `*` stands for any characters.
pub(crate) fn like(db: Db<'_>, pattern: &str) -> Outcome<Vec<i64>> {
    let all = db.all("SELECT id, name FROM users", &[], |row| Ok((row.get(0)?, row.get::<String>(1)?)))?;
    let is_wanted = |json: &String| {
        let user: Option<User> = serde_json::from_str(json).ok();
        user.is_some_and(|user| super::names::is_like(&user.name, pattern))
    };
    Ok(all.into_iter().filter(|(_, json)| is_wanted(json)).map(|(id, _)| id).collect())
}
