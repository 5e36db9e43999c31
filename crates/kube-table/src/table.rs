//! Objects as rows of a table, as servers print them for `kubectl get`.
//!
//! The columns are data (`table/columns.json`, the answer of kube-apiserver 1.37); the cells of each kind are code, one
//! file per family of kinds.

mod access;
mod cluster;
mod columns;
mod custom;
mod network;
mod node;
mod pod;
mod row;
mod scaling;
mod storage;
mod text;
mod time;
mod workloads;

use std::time::SystemTime;

use serde_json::{Value, json};

use crate::{Columns, Resource};

pub use self::row::selector_text;
pub use self::text::Table;

use self::custom::CustomColumn;
use self::row::Row;

/// The columns and cells of the objects of one resource, as an API server sends them in a `Table`.
///
/// ```
/// use std::time::SystemTime;
///
/// let resources = kube_table::builtin::resources();
/// let config_maps = resources.iter().find(|resource| &*resource.plural == "configmaps").unwrap();
/// let printer = kube_table::Printer::of(config_maps);
/// assert_eq!(printer.columns()[1]["name"], "Data");
/// let object = serde_json::json!({"metadata": {"name": "cart"}, "data": {"color": "red"}});
/// assert_eq!(printer.cells(&object, SystemTime::now())[..2], [serde_json::json!("cart"), serde_json::json!(1)]);
/// ```
#[derive(Debug)]
pub struct Printer {
    columns: Vec<Value>,
    cells: Cells,
}

#[derive(Debug)]
enum Cells {
    /// A built-in kind.
    BuiltIn(fn(&Row<'_>) -> Vec<Value>),
    /// A kind without columns: name and creation time.
    Plain,
    /// A custom resource: the name and the columns that its definition declares.
    Declared(Vec<CustomColumn>),
}

impl Printer {
    /// The printer of a resource.
    pub fn of(resource: &Resource) -> Self {
        let name = resource.qualified_name();
        match &resource.columns {
            Columns::Declared(declared) => {
                let mut columns = vec![columns::common("Name")];
                columns.extend(declared.iter().map(custom::definition));
                let cells = declared.iter().map(CustomColumn::new).collect();
                Self { columns, cells: Cells::Declared(cells) }
            }
            Columns::BuiltIn if resource.typed_items => {
                let columns = vec![columns::common("Name"), columns::common("Age (custom)")];
                Self { columns, cells: Cells::Declared(vec![CustomColumn::age()]) }
            }
            Columns::BuiltIn => match (columns::of(&name), cells(&name)) {
                (Some(columns), Some(cells)) => Self { columns, cells: Cells::BuiltIn(cells) },
                _ => {
                    let columns = vec![columns::common("Name"), columns::common("Created At")];
                    Self { columns, cells: Cells::Plain }
                }
            },
        }
    }

    /// Whether a table without rows has `null` for them.
    pub fn is_plain(&self) -> bool {
        matches!(self.cells, Cells::Plain)
    }

    /// `columnDefinitions` of the table.
    pub fn columns(&self) -> Vec<Value> {
        self.columns.clone()
    }

    /// The cells of an object's row, one for each column.
    pub fn cells(&self, object: &Value, now: SystemTime) -> Vec<Value> {
        let row = Row::new(object, now);
        match &self.cells {
            Cells::BuiltIn(cells) => cells(&row),
            Cells::Plain => {
                vec![row.text("/metadata/name").into(), row.text("/metadata/creationTimestamp").into()]
            }
            Cells::Declared(columns) => {
                let mut cells = vec![row.text("/metadata/name").into()];
                cells.extend(columns.iter().map(|column| column.cell(&row)));
                cells
            }
        }
    }

    /// The `conditions` of an object's row: a pod that has ended has one, and `kubectl get` may omit its row.
    pub fn conditions(&self, object: &Value) -> Vec<Value> {
        if !matches!(self.cells, Cells::BuiltIn(cells) if std::ptr::fn_addr_eq(cells, pod::cells as fn(&Row<'_>) -> _))
        {
            return Vec::new();
        }
        let (reason, message) = match object.pointer("/status/phase").and_then(Value::as_str) {
            Some("Succeeded") => ("Succeeded", "The pod has completed successfully."),
            Some("Failed") => ("Failed", "The pod failed."),
            _ => return Vec::new(),
        };
        vec![json!({"type": "Completed", "status": "True", "reason": reason, "message": message})]
    }
}

/// The function for the cells of a built-in resource.
fn cells(resource: &str) -> Option<fn(&Row<'_>) -> Vec<Value>> {
    if resource == "pods" {
        return Some(pod::cells);
    }
    workloads::cells(resource)
        .or_else(|| scaling::cells(resource))
        .or_else(|| network::cells(resource))
        .or_else(|| node::cells(resource))
        .or_else(|| storage::cells(resource))
        .or_else(|| access::cells(resource))
        .or_else(|| cluster::cells(resource))
}

#[cfg(test)]
mod tests;
