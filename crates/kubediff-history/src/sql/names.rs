//! Names that repeat, as numbers.

#[cfg(feature = "postgres")]
use std::collections::BTreeSet;

use super::db::{Db, values};
use super::fault::Outcome;
use super::recent::Recent;
use crate::record::ObjectId;

/// This many names of each sort are remembered.
const REMEMBERED: usize = 20_000;

/// A table of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Table {
    Namespaces,
    Managers,
    Paths,
}

/// A kind, and the family of its versions: the first of the same group and plural.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KindId {
    pub(crate) id: i64,
    pub(crate) family: i64,
}

/// A kind as its row identifies it: group, plural, version, kind.
type KindKey = (String, String, String, String);

pub(crate) struct Names {
    kinds: Recent<KindKey, KindId>,
    namespaces: Recent<String, i64>,
    managers: Recent<String, i64>,
    paths: Recent<String, i64>,
}

impl Table {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Managers => "managers",
            Self::Paths => "paths",
        }
    }
}

impl Names {
    pub(crate) fn new() -> Self {
        Self {
            kinds: Recent::new(REMEMBERED),
            namespaces: Recent::new(REMEMBERED),
            managers: Recent::new(REMEMBERED),
            paths: Recent::new(REMEMBERED),
        }
    }

    fn remembered(&mut self, table: Table) -> &mut Recent<String, i64> {
        match table {
            Table::Namespaces => &mut self.namespaces,
            Table::Managers => &mut self.managers,
            Table::Paths => &mut self.paths,
        }
    }

    /// The number of a name, which is added if it is new.
    pub(crate) fn of(&mut self, db: Db<'_>, table: Table, name: &str) -> Outcome<i64> {
        if let Some(id) = self.remembered(table).get(name) {
            return Ok(*id);
        }
        let id = match find(db, table, name)? {
            Some(id) => id,
            None => {
                let sql = format!("INSERT INTO {} (name) VALUES (?1) RETURNING id", table.name());
                db.one(&sql, values![name])?
            }
        };
        self.remembered(table).insert(name.to_owned(), id, 1);
        Ok(id)
    }

    /// Whether the number of a name is remembered.
    #[cfg(feature = "postgres")]
    pub(crate) fn knows(&mut self, table: Table, name: &str) -> bool {
        self.remembered(table).get(name).is_some()
    }

    /// Adds names, and remembers their numbers.
    #[cfg(feature = "postgres")]
    pub(crate) fn learn(&mut self, db: Db<'_>, table: Table, names: BTreeSet<String>) -> Outcome<()> {
        if names.is_empty() {
            return Ok(());
        }
        let names = super::db::Value::Texts(names.into_iter().map(Some).collect());
        let table_name = table.name();
        let add = format!("INSERT INTO {table_name} (name) SELECT unnest(?1) ON CONFLICT DO NOTHING");
        db.run(&add, std::slice::from_ref(&names))?;
        let of = format!("SELECT id, name FROM {table_name} WHERE name = ANY (?1)");
        for (id, name) in db.all(&of, &[names], |row| Ok((row.get(0)?, row.get::<String>(1)?)))? {
            self.remembered(table).insert(name, id, 1);
        }
        Ok(())
    }

    pub(crate) fn forget_path(&mut self, path: &str) {
        self.paths.remove(path);
    }

    /// The number of an object's namespace; 0 without one.
    pub(crate) fn namespace(&mut self, db: Db<'_>, namespace: Option<&str>) -> Outcome<i64> {
        namespace.map_or(Ok(0), |name| self.of(db, Table::Namespaces, name))
    }

    pub(crate) fn kind(&mut self, db: Db<'_>, object: &ObjectId) -> Outcome<KindId> {
        let gvk = &object.gvk;
        let key = (gvk.group.clone(), object.resource.clone(), gvk.version.clone(), gvk.kind.clone());
        if let Some(kind) = self.kinds.get(&key) {
            return Ok(*kind);
        }
        let row = values![&key.0, &key.1, &key.2, &key.3];
        let found = "SELECT id, family FROM kinds WHERE api_group = ?1 AND plural = ?2 AND version = ?3 AND kind = ?4";
        let found = db.first(found, row, |row| Ok(KindId { id: row.get(0)?, family: row.get(1)? }))?;
        let kind = match found {
            Some(kind) => kind,
            None => {
                let add = "INSERT INTO kinds (family, api_group, plural, version, kind) VALUES (coalesce(
                     (SELECT min(family) FROM kinds WHERE api_group = ?1 AND plural = ?2),
                     (SELECT coalesce(max(id), 0) + 1 FROM kinds)), ?1, ?2, ?3, ?4) RETURNING id, family";
                let added = db.first(add, row, |row| Ok(KindId { id: row.get(0)?, family: row.get(1)? }))?;
                added.ok_or_else(|| super::fault::Fault::damaged("a kind is missing"))?
            }
        };
        self.kinds.insert(key, kind, 1);
        Ok(kind)
    }
}

/// The number of a name, if it has one.
pub(crate) fn find(db: Db<'_>, table: Table, name: &str) -> Outcome<Option<i64>> {
    let sql = format!("SELECT id FROM {} WHERE name = ?1", table.name());
    db.first(&sql, values![name], |row| row.get(0))
}

/// Whether a name matches a pattern, in which `*` stands for any characters.
pub(super) fn is_like(name: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}
