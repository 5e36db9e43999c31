//! A scope becomes rows: kinds, namespaces, objects.

use std::collections::BTreeSet;

use super::conditions::{Conditions, MOST, in_list};
use super::db::{Db, Value, values};
use super::fault::Outcome;
use super::names::{self, Table};
use super::packing::{event_code, verb_code};
use super::sight::is_limited;
use super::times::Span;
use crate::filter::{Filter, KindName, Scope};
use crate::record::Verb;

/// The rows that a scope means.
pub(crate) struct Chosen {
    pub(crate) kinds: Option<Vec<i64>>,
    pub(crate) namespaces: Option<Vec<i64>>,
    pub(crate) objects: Option<Vec<i64>>,
    /// A part of a name that too many objects have to list them.
    part: Option<String>,
    /// The condition for a version `v` of an Event about objects of these kinds.
    events: Option<String>,
}

impl Chosen {
    /// `None` when nothing can match.
    pub(crate) fn find(db: Db<'_>, scope: &Scope) -> Outcome<Option<Self>> {
        let mut chosen = Self { kinds: None, namespaces: None, objects: None, part: None, events: None };
        if !scope.kinds.is_empty() {
            chosen.kinds = Some(kinds(db, &scope.kinds)?);
        }
        if !scope.namespaces.is_empty() {
            let mut found = Vec::new();
            for name in &scope.namespaces {
                let id = match name.as_str() {
                    "" => Some(0),
                    name => names::find(db, Table::Namespaces, name)?,
                };
                found.extend(id);
            }
            chosen.namespaces = Some(found);
        }
        if [&chosen.kinds, &chosen.namespaces].into_iter().flatten().any(Vec::is_empty) {
            return Ok(None);
        }
        if scope.name.is_some() || scope.uid.is_some() || scope.part.is_some() {
            let objects = chosen.objects(db, scope, 0, MOST)?;
            if objects.is_empty() {
                return Ok(None);
            }
            match &scope.part {
                Some(part) if objects.len() == MOST => chosen.part = Some(part.clone()),
                _ => chosen.objects = Some(objects),
            }
        }
        Ok(Some(chosen))
    }

    /// The Events about what is chosen, too, and about what that controls.
    pub(crate) fn add_events(&mut self, db: Db<'_>) -> Outcome<()> {
        if let Some(objects) = &mut self.objects {
            // kubelets write the name of a node where its uid belongs. Across namespaces, anybody can write any uid: that names nothing.
            let sql = format!(
                "WITH RECURSIVE those (uid, namespace) AS (SELECT uid, namespace FROM objects WHERE id{0}
                     UNION SELECT name, 0 FROM objects WHERE id{0} AND namespace = 0
                     UNION SELECT o.uid, o.namespace FROM those JOIN objects o ON o.owner = those.uid
                         WHERE those.namespace IN (0, o.namespace))
                 SELECT e.id FROM those JOIN objects e ON e.about = those.uid
                     WHERE those.namespace IN (0, e.namespace) LIMIT {MOST}",
                in_list(objects)
            );
            objects.extend(db.all(&sql, &[], |row| row.get::<i64>(0))?);
            // The list says it all: Events about a node are in a namespace.
            (self.kinds, self.namespaces) = (None, None);
        } else if let Some(asked) = &mut self.kinds {
            let event = KindName { group: Some(String::new()), resource: "events".to_owned() };
            let events = kinds(db, &[event])?;
            let families = format!("SELECT family FROM kinds WHERE id{}", in_list(asked));
            // From what an Event is about upwards to its controllers.
            self.events = Some(format!(
                "(v.kind{} OR EXISTS (
                     WITH RECURSIVE those (family, namespace, owner) AS (
                         SELECT o.family, o.namespace, o.owner FROM objects e JOIN objects o ON o.uid = e.about
                             WHERE e.id = v.object AND o.namespace IN (0, e.namespace)
                         UNION SELECT o.family, o.namespace, o.owner FROM objects e JOIN objects o ON o.name = e.about
                             WHERE e.id = v.object AND o.namespace = 0
                         UNION SELECT o.family, o.namespace, o.owner FROM those JOIN objects o ON o.uid = those.owner
                             WHERE o.namespace IN (0, those.namespace))
                     SELECT 1 FROM those WHERE family IN ({families})))",
                in_list(asked)
            ));
            asked.extend(events.into_iter().filter(|id| !asked.contains(id)).collect::<Vec<_>>());
        }
        Ok(())
    }

    /// Objects after this one, in order.
    pub(crate) fn objects(&self, db: Db<'_>, scope: &Scope, after: i64, limit: usize) -> Outcome<Vec<i64>> {
        let mut conditions = self.on_objects(scope);
        conditions.compare("o.id > ", after);
        let sql = format!("SELECT o.id FROM objects o{} ORDER BY o.id LIMIT {limit}", conditions.text);
        db.all(&sql, &conditions.parameters, |row| row.get(0))
    }

    /// The objects that were there when this record was the last one, or are there now, by namespace and name.
    pub(crate) fn present(&self, db: Db<'_>, last: Option<i64>) -> Outcome<Vec<i64>> {
        let sql = format!(
            "SELECT o.id FROM ({}) o LEFT JOIN namespaces n ON n.id = o.namespace
             ORDER BY coalesce(n.name, ''), o.name, o.id",
            self.alive(db, last)?
        );
        db.all(&sql, &self.part(), |row| row.get(0))
    }

    /// Those that were there when this record was the last one, as `namespace/name`, in any order.
    pub(crate) fn keys(&self, db: Db<'_>, last: i64) -> Outcome<Vec<(String, i64)>> {
        let sql = format!(
            "SELECT o.id, coalesce(n.name, ''), o.name FROM ({}) o LEFT JOIN namespaces n ON n.id = o.namespace",
            self.alive(db, Some(last))?
        );
        db.all(&sql, &self.part(), |row| {
            let (namespace, name): (String, String) = (row.get(1)?, row.get(2)?);
            Ok((format!("{namespace}/{name}"), row.get(0)?))
        })
    }

    fn part(&self) -> Vec<Value> {
        self.part.as_deref().map(Value::from).into_iter().collect()
    }

    /// A query of the objects `o` that were there then. It reads the index `lives` alone, and of that nothing about objects that were gone by
    /// then.
    fn alive(&self, db: Db<'_>, last: Option<i64>) -> Outcome<String> {
        let (led, wanted) = match (&self.objects, &self.kinds) {
            (Some(objects), _) => ("", format!("o.id{}", in_list(objects))),
            (None, kinds) => {
                let kinds = kinds.as_ref().map(|kinds| format!(" WHERE id{}", in_list(kinds)));
                let families = format!("SELECT family FROM kinds{}", kinds.unwrap_or_default());
                // A view has no index of its own.
                let index = if is_limited(db)? { "" } else { " INDEXED BY lives" };
                (index, format!("o.family IN ({families})"))
            }
        };
        let within = self.namespaces.as_ref().map(|ids| format!(" AND +o.namespace{}", in_list(ids)));
        let mut within = within.unwrap_or_default();
        if self.part.is_some() {
            within.push_str(" AND instr(lower(o.name), lower(?1)) > 0");
        }
        let those = format!("SELECT o.id, o.namespace, o.name FROM objects o{led} WHERE {wanted}{within}");
        Ok(match last {
            None => format!("{those} AND o.ended IS NULL"),
            Some(last) => {
                let begun = format!(
                    "o.first <= {last} AND (o.returned = 0 OR (SELECT v.verb FROM versions v WHERE v.object = o.id
                     AND v.number <= {last} ORDER BY v.number DESC LIMIT 1) NOT IN ({}, {}))",
                    verb_code(Verb::Deleted),
                    event_code(Verb::Deleted)
                );
                format!(
                    "{those} AND o.ended IS NULL AND {begun} UNION ALL {those} AND o.ended > {last} AND {begun}"
                )
            }
        })
    }

    /// The conditions of a filter for a version `v`, but for path and manager. Where something else leads, a sign hides the indexes from
    /// the planner.
    pub(crate) fn on_versions(&self, filter: &Filter, span: &Span, is_led: bool) -> Conditions {
        let mut conditions = Conditions::default();
        let mut sign = if is_led { "+" } else { "" };
        if let Some(objects) = &self.objects {
            conditions.one_of(&format!("{sign}v.object"), objects);
            sign = "+";
        }
        // One index has both.
        if let Some(kinds) = &self.kinds {
            conditions.one_of(&format!("{sign}v.kind"), kinds);
        }
        if let Some(namespaces) = &self.namespaces {
            conditions.one_of(&format!("{sign}v.namespace"), namespaces);
        }
        if !is_led {
            conditions.compare("v.number >= ", span.from);
            conditions.compare("v.number < ", span.to);
        }
        if let Some(from) = filter.from {
            conditions.compare("+v.observed_at >= ", from.as_microsecond());
        }
        if let Some(to) = filter.to {
            conditions.compare("+v.observed_at < ", to.as_microsecond());
        }
        let verbs: Vec<i64> = filter.verbs.iter().map(|verb| verb_code(*verb)).collect();
        match verbs.is_empty() {
            // An Event that goes says nothing: the server forgets each after an hour.
            true if filter.takes_events() => conditions.and("v.verb BETWEEN 1 AND 6"),
            true => conditions.and("v.verb BETWEEN 1 AND 4"),
            false => conditions.and(&format!("v.verb{}", in_list(&verbs))),
        };
        if let Some(events) = &self.events {
            conditions.and(events);
        }
        if let Some(part) = &self.part {
            conditions.and("EXISTS (SELECT 1 FROM objects p WHERE p.id = v.object AND instr(lower(p.name), lower(?)) > 0)");
            conditions.parameters.push(part.clone().into());
        }
        conditions
    }

    /// The conditions for an object `o`.
    fn on_objects(&self, scope: &Scope) -> Conditions {
        let mut conditions = Conditions::default();
        if let Some(kinds) = &self.kinds {
            let families = format!("SELECT family FROM kinds WHERE id{}", in_list(kinds));
            conditions.and(&format!("o.family IN ({families})"));
        }
        if let Some(namespaces) = &self.namespaces {
            conditions.one_of("o.namespace", namespaces);
        }
        if let Some(name) = &scope.name {
            conditions.compare("o.name = ", name.clone());
        }
        if let Some(uid) = &scope.uid {
            conditions.compare("o.uid = ", uid.clone());
        }
        if let Some(part) = &scope.part {
            conditions.and("instr(lower(o.name), lower(?)) > 0");
            conditions.parameters.push(part.clone().into());
        }
        conditions
    }
}

/// The kinds that have one of these names.
pub(crate) fn kinds(db: Db<'_>, names: &[KindName]) -> Outcome<Vec<i64>> {
    let sql = "SELECT id FROM kinds WHERE (lower(plural) = lower(?1) OR lower(kind) = lower(?1))
               AND api_group = coalesce(?2, api_group)";
    // One kind may have two of the names.
    let mut found = BTreeSet::new();
    for KindName { group, resource } in names {
        found.extend(db.all(sql, values![resource, group.as_deref()], |row| row.get::<i64>(0))?);
    }
    Ok(found.into_iter().collect())
}
