//! Tables as text, without a server.

use std::fmt;
use std::time::SystemTime;

use serde_json::Value;

use super::Printer;
use crate::Resource;

/// The rows that `kubectl get` shows for objects of one resource.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// let resources = kube_table::builtin::resources();
/// let config_maps = resources.iter().find(|resource| &*resource.plural == "configmaps").unwrap();
/// let table = kube_table::Table::of(config_maps, false);
/// assert_eq!(table.heads(), ["NAME", "DATA", "AGE"]);
/// let object = serde_json::json!({
///     "metadata": {"name": "cart", "creationTimestamp": "1970-01-01T00:00:00Z"},
///     "data": {"color": "red"},
/// });
/// assert_eq!(table.row(&object, SystemTime::UNIX_EPOCH + Duration::from_secs(300)), ["cart", "1", "5m"]);
/// ```
pub struct Table {
    printer: Printer,
    /// The places of the columns that are shown.
    shown: Vec<usize>,
    heads: Vec<String>,
}

impl Table {
    /// The table of a resource; `wide` has the columns of `-o wide`, too.
    pub fn of(resource: &Resource, wide: bool) -> Self {
        let printer = Printer::of(resource);
        let columns = printer.columns();
        let is_shown = |column: &Value| wide || column["priority"].as_i64().unwrap_or(0) == 0;
        let shown: Vec<usize> = (0..columns.len()).filter(|at| is_shown(&columns[*at])).collect();
        let head = |at: &usize| columns[*at]["name"].as_str().unwrap_or_default().to_uppercase();
        let heads = shown.iter().map(head).collect();
        Self { printer, shown, heads }
    }

    /// The heads of the columns: `NAME`, `READY`, `AGE`.
    pub fn heads(&self) -> &[String] {
        &self.heads
    }

    /// The cells of an object's row, one for each head. Ages are those at `now`. Texts are those of the object: a program
    /// that shows them on a terminal has to escape them.
    pub fn row(&self, object: &Value, now: SystemTime) -> Vec<String> {
        let mut cells = self.printer.cells(object, now);
        let text = |cell: Value| match cell {
            Value::Null => String::new(),
            Value::String(text) => text,
            other => other.to_string(),
        };
        let cell = |at: &usize| cells.get_mut(*at).map(Value::take).map(text).unwrap_or_default();
        self.shown.iter().map(cell).collect()
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({})", self.heads.join(", "))
    }
}
