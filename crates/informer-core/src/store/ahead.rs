//! Objects whose kept values are looked at one after the other.
//!
//! Whoever takes a kept value counts a reference to it. The processor does one such step after the other, and each waits
//! for memory: a hundred thousand take ten milliseconds. So some are looked at first, without counting: those waits overlap.

use std::sync::Arc;

use super::objects::Objects;
use crate::Object;

/// The same objects as [`Objects`], for who looks at each as a type.
pub struct Ahead<'a> {
    objects: Objects<'a>,
    /// Those that were looked at: the next one last.
    next: Vec<&'a Arc<Object>>,
}

/// As many waits overlap as the processor can keep in mind; and so many more objects than needed are looked at.
const AHEAD: usize = 32;

impl<'a> Objects<'a> {
    /// The same, a few of them looked at ahead: quicker where each is kept as a type, and to be read as that.
    pub fn ahead(self) -> Ahead<'a> {
        Ahead { objects: self, next: Vec::new() }
    }
}

impl<'a> Iterator for Ahead<'a> {
    type Item = &'a Arc<Object>;

    fn next(&mut self) -> Option<&'a Arc<Object>> {
        if self.next.is_empty() {
            self.next.extend(self.objects.by_ref().take(AHEAD));
            self.next.iter().for_each(|object| object.prefetch());
            self.next.reverse();
        }
        self.next.pop()
    }
}

impl std::fmt::Debug for Ahead<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ahead")
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::AHEAD;
    use crate::{Object, Scope, Store};

    #[test]
    fn all_come_in_the_same_order() {
        let mut store = Store::new();
        let source = store.add_source(Scope::All);
        for count in 0..=3 * AHEAD {
            let snapshot = store.cache().snapshot();
            let keys = |objects: Vec<&Arc<Object>>| -> Vec<_> {
                objects.iter().map(|object| object.key().to_string()).collect()
            };
            assert_eq!(keys(snapshot.iter().ahead().collect()), keys(snapshot.iter().collect()));
            assert_eq!(snapshot.iter().ahead().count(), count);
            let json = format!(r#"{{"metadata":{{"name":"{count}","resourceVersion":"{}"}}}}"#, count + 1);
            store.upsert(source, Arc::new(Object::from_json(json.as_bytes()).unwrap()));
        }
    }
}
