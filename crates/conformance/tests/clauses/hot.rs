//! C12: what one consumer decodes, the others find decoded, within a bound.

use std::sync::atomic::{AtomicUsize, Ordering};

use conformance::{DEADLINE, Rig, status};
use informer::{Change, Informer};
use serde::{Deserialize, Deserializer};

use super::{config_maps, is_live};
use crate::SERVER;

const COUNT: usize = 40;

static DECODES: AtomicUsize = AtomicUsize::new(0);

/// The value of a config map. Counts how often one is decoded.
struct Counted {
    value: String,
}

impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Map {
            data: Data,
        }

        #[derive(Deserialize)]
        struct Data {
            value: String,
        }

        DECODES.fetch_add(1, Ordering::SeqCst);
        Map::deserialize(from).map(|map| Self { value: map.data.value })
    }
}

#[tokio::test]
async fn c12_each_version_is_decoded_once_for_all_consumers_and_none_over_the_bound() {
    let Some(rig) = Rig::shared(SERVER, "c12_hot").await else { return };
    rig.at_once((0..COUNT).map(|number| {
        let map = conformance::config_map(&format!("hot-{number}"), "first");
        rig.create_with(map)
    }))
    .await;
    for bound in [4 << 20, 2_000] {
        DECODES.store(0, Ordering::SeqCst);
        let factory = rig.builder().hot_bytes(bound).build().unwrap().in_namespace(rig.namespace());
        let informer: Informer<Counted> = factory.informer_of(config_maps());
        let is_ours = |name: &str| name.starts_with("hot-");
        let mut changes = [0, 1, 2].map(|_| {
            let all = informer.subscribe().filter(|map| !map.value.is_empty());
            all.changes().unwrap()
        });
        let by_value = informer.add_index(|map| [map.value.clone()]);
        factory.start();
        status(&informer, is_live).await;
        let value = format!("under {bound}");
        let version = rig.at_once((0..COUNT).map(|number| {
            let (rig, value) = (&rig, &value);
            async move { rig.update(&format!("hot-{number}"), value).await }
        }));
        informer.at_least(&version.await, DEADLINE).await.unwrap();
        for changes in &mut changes {
            let mut told = 0;
            while told < COUNT {
                let change = changes.recv().await.expect("a change");
                let new = match &change {
                    Change::Added { new, .. } | Change::Updated { new, .. } => new,
                    _ => continue,
                };
                told += usize::from(is_ours(new.key().name()) && new.value == value);
            }
        }
        assert_eq!(by_value.get(&value).len(), COUNT);
        assert!(informer.lister().list().iter().filter(|map| map.value == value).count() == COUNT);
        let metrics = factory.metrics();
        let [hot] = &metrics.hot[..] else { panic!("{:?}", metrics.hot) };
        assert!(hot.bytes <= bound, "{} of {bound} bytes", hot.bytes);
        let decodes = DECODES.load(Ordering::SeqCst);
        if bound > 1 << 20 {
            // A list's items and an event's versions, each once; some more of the namespace's own objects.
            assert!(decodes <= 2 * COUNT + 5, "{decodes} decodes");
            assert!(hot.hits > 4 * COUNT as u64, "{} hits", hot.hits);
        } else {
            assert!(
                decodes > 3 * COUNT,
                "{decodes} decodes: the bound is too small for this to say anything"
            );
        }
        factory.shutdown().await;
    }
}
