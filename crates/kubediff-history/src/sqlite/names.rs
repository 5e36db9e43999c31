//! Names that repeat, as numbers.

use rusqlite::{Connection, OptionalExtension, params};

use super::fault::Outcome;
use super::recent::Recent;
use crate::record::ObjectId;

/// This many names of each sort are remembered.
const REMEMBERED: usize = 20_000;

/// A table of names.
#[derive(Debug, Clone, Copy)]
pub(super) enum Table {
    Namespaces,
    Managers,
    Paths,
}

/// A kind, and the family of its versions: the first of the same group and plural.
#[derive(Debug, Clone, Copy)]
pub(super) struct KindId {
    pub(super) id: i64,
    pub(super) family: i64,
}

/// A kind as its row identifies it: group, plural, version, kind.
type KindKey = (String, String, String, String);

pub(super) struct Names {
    kinds: Recent<KindKey, KindId>,
    namespaces: Recent<String, i64>,
    managers: Recent<String, i64>,
    paths: Recent<String, i64>,
}

impl Table {
    fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Managers => "managers",
            Self::Paths => "paths",
        }
    }
}

impl Names {
    pub(super) fn new() -> Self {
        Self {
            kinds: Recent::new(REMEMBERED),
            namespaces: Recent::new(REMEMBERED),
            managers: Recent::new(REMEMBERED),
            paths: Recent::new(REMEMBERED),
        }
    }

    /// The number of a name, which is added if it is new.
    pub(super) fn of(&mut self, connection: &Connection, table: Table, name: &str) -> Outcome<i64> {
        let remembered = match table {
            Table::Namespaces => &mut self.namespaces,
            Table::Managers => &mut self.managers,
            Table::Paths => &mut self.paths,
        };
        if let Some(id) = remembered.get(name) {
            return Ok(*id);
        }
        let id = match find(connection, table, name)? {
            Some(id) => id,
            None => {
                let sql = format!("INSERT INTO {} (name) VALUES (?1)", table.name());
                connection.prepare_cached(&sql)?.execute([name])?;
                connection.last_insert_rowid()
            }
        };
        remembered.insert(name.to_owned(), id, 1);
        Ok(id)
    }

    pub(super) fn forget_path(&mut self, path: &str) {
        self.paths.remove(path);
    }

    /// The number of an object's namespace; 0 without one.
    pub(super) fn namespace(&mut self, connection: &Connection, namespace: Option<&str>) -> Outcome<i64> {
        namespace.map_or(Ok(0), |name| self.of(connection, Table::Namespaces, name))
    }

    pub(super) fn kind(&mut self, connection: &Connection, object: &ObjectId) -> Outcome<KindId> {
        let gvk = &object.gvk;
        let key = (gvk.group.clone(), object.resource.clone(), gvk.version.clone(), gvk.kind.clone());
        if let Some(kind) = self.kinds.get(&key) {
            return Ok(*kind);
        }
        let found = "SELECT id, family FROM kinds WHERE api_group = ?1 AND plural = ?2 AND version = ?3 AND kind = ?4";
        let found = connection
            .query_row(found, params![key.0, key.1, key.2, key.3], |row| {
                Ok(KindId { id: row.get(0)?, family: row.get(1)? })
            })
            .optional()?;
        let kind = match found {
            Some(kind) => kind,
            None => {
                let add = "INSERT INTO kinds (family, api_group, plural, version, kind) VALUES (coalesce(
                     (SELECT family FROM kinds WHERE api_group = ?1 AND plural = ?2),
                     (SELECT coalesce(max(id), 0) + 1 FROM kinds)), ?1, ?2, ?3, ?4) RETURNING id, family";
                connection.query_row(add, params![key.0, key.1, key.2, key.3], |row| {
                    Ok(KindId { id: row.get(0)?, family: row.get(1)? })
                })?
            }
        };
        self.kinds.insert(key, kind, 1);
        Ok(kind)
    }
}

/// The number of a name, if it has one.
pub(super) fn find(connection: &Connection, table: Table, name: &str) -> Outcome<Option<i64>> {
    let sql = format!("SELECT id FROM {} WHERE name = ?1", table.name());
    Ok(connection.prepare_cached(&sql)?.query_row([name], |row| row.get(0)).optional()?)
}
