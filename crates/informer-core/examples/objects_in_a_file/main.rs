//! Keeps the bytes of a cache's objects in a file, and only what is always needed in memory.
//!
//!     cargo run -p informer-core --example objects_in_a_file
//!
//! With the crate `informer`, `FactoryBuilder::storage` takes such a storage.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

mod storage;

use std::sync::Arc;

use informer_core::{Object, PackedStorage, PlainStorage, ResourceVersion, Scope, Storage, Store};

use storage::FileStorage;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let storages: [(&str, Box<dyn Storage>); 3] = [
        ("as they are", Box::new(PlainStorage)),
        ("packed", Box::new(PackedStorage::new())),
        ("in a file", Box::new(FileStorage::new(tempfile::tempfile()?))),
    ];
    let pods = fuzzing::workloads::Pods::new(1);
    for (name, storage) in storages {
        let mut store = Store::new();
        let source = store.add_source(Scope::All);
        let mut list = store.begin_replace(source);
        for index in 0..5_000 {
            let json = pods.json(index, 5_000, 7);
            list.stage(Arc::new(Object::from_json(json.as_bytes())?.kept_in(&*storage)?));
        }
        store.commit(list, ResourceVersion::new("9"))?;
        let cache = store.cache();
        let held = cache.held_bytes() + storage.shared_bytes();
        println!("{name}: {} objects take {} bytes each", cache.len(), held / cache.len());
        let last =
            cache.snapshot().page(None, 1).next().map(|object| object.bytes().map(|bytes| bytes.len()));
        assert!(matches!(last, Some(Ok(1..))));
    }
    Ok(())
}
