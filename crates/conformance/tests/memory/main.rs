//! L9 and C10: what lists and caches take of the allocator, packed and in protobuf, over real connections.
//!
//! The allocator counts for the whole process, so the tests take turns, and the servers are other processes.

#![expect(clippy::unwrap_used, reason = "a test may stop at a surprise, its helpers too")]
#![expect(clippy::print_stderr, reason = "figures that the documentation quotes")]

mod values;

use std::collections::BTreeMap;

use conformance::Rig;
use fastrand::Rng;
use informer::{Encoding, EncodingChoice, Layout, SharedInformerFactory, StreamingListChoice};
use k8s_openapi::api::core::v1::ConfigMap;
use peak_alloc::PeakAlloc;
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The memory that a list may take beside its result.
const WINDOW: usize = 4 << 20;
const OBJECTS: usize = 500;

/// One test at a time.
async fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

fn letters(seed: usize, count: usize) -> String {
    let mut random = Rng::with_seed(seed as u64);
    (0..count).map(|_| random.lowercase()).collect()
}

/// 50 KB, of which 10 are its own.
fn large(number: usize) -> ConfigMap {
    let own = ("own".to_owned(), letters(number + 1_000, 10_000));
    let common = (0..40).map(|part| (format!("part-{part}"), letters((number + part) % 12, 1_000)));
    let data: BTreeMap<_, _> = common.chain([own]).collect();
    serde_json::from_value(json!({ "metadata": { "name": format!("large-{number}") }, "data": data }))
        .unwrap()
}

async fn fill(rig: &Rig) {
    rig.at_once((0..OBJECTS).map(|number| rig.create_with(large(number)))).await;
}

fn packed(rig: &Rig, choice: StreamingListChoice) -> SharedInformerFactory {
    let builder = rig.builder().layout(Layout::Packed).encoding(EncodingChoice::Auto);
    builder
        .reflector(|reflector| reflector.streaming_list = choice)
        .build()
        .unwrap()
        .in_namespace(rig.namespace())
}

/// Does once what is done once per process, and fills what the server keeps.
async fn warm_up(rig: &Rig, choice: StreamingListChoice) {
    let factory = packed(rig, choice);
    rig.synced(&factory).await;
    factory.shutdown().await;
    rig.proxy.idle().await;
}

async fn l9(rig: &Rig) {
    fill(rig).await;
    for choice in [StreamingListChoice::Never, StreamingListChoice::Always] {
        warm_up(rig, choice).await;
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let factory = packed(rig, choice);
        let informer = rig.synced(&factory).await;
        let (peak, result) = (ALLOCATOR.peak_usage() - before, ALLOCATOR.current_usage() - before);
        let came = informer.metrics().received_bytes;
        assert!(peak <= result + WINDOW, "{choice:?}: {peak} bytes at the peak, {result} after");
        // Else this would say nothing.
        assert!(came > 2 * (result + WINDOW) as u64, "{choice:?}: {came} bytes came");
        assert!(
            informer.snapshot().objects().all(|object| matches!(object.encoding(), Encoding::Protobuf(_)))
        );

        // All of it again, without news.
        ALLOCATOR.reset_peak_usage();
        let asked = rig.wire.asked().len();
        rig.wire.expire_next_watch();
        rig.proxy.cut();
        rig.wire.until("a watch and a list", |all| all.len() >= asked + 2).await;
        let version = rig.update("large-0", &format!("{choice:?}")).await;
        informer.at_least(&version, conformance::DEADLINE).await.unwrap();
        let peak = ALLOCATOR.peak_usage() - before;
        let again = informer.metrics().received_bytes - came;
        assert!(again > came * 9 / 10, "{choice:?}: {again} bytes came again");
        assert!(peak <= result + WINDOW, "{choice:?}: {peak} bytes at the peak, {result} before");
        factory.shutdown().await;
    }
}

async fn c10(rig: &Rig) {
    fill(rig).await;
    warm_up(rig, StreamingListChoice::Never).await;
    let before = ALLOCATOR.current_usage();
    let factory = packed(rig, StreamingListChoice::Never);
    let informer = rig.synced(&factory).await;
    let (said, taken) = (informer.held_bytes(), ALLOCATOR.current_usage() - before);
    assert!(said.abs_diff(taken) <= taken / 5, "{said} bytes said, {taken} taken");
}

mod testapi {
    use super::{Rig, alone};

    async fn rig(test: &str) -> Rig {
        Rig::apart(env!("CARGO_BIN_EXE_embedded_server").as_ref(), test).await
    }

    #[tokio::test]
    async fn l9_a_list_in_protobuf_takes_its_packed_result_and_a_window() {
        let _turn = alone().await;
        super::l9(&rig("l9_window").await).await;
    }

    #[tokio::test]
    async fn c10_bytes_held_packed_in_protobuf_agree_with_the_allocator() {
        let _turn = alone().await;
        super::c10(&rig("c10_allocator").await).await;
    }
}

mod real {
    use super::{Rig, alone};
    use conformance::Kind::Real;

    #[tokio::test]
    async fn l9_a_list_in_protobuf_takes_its_packed_result_and_a_window() {
        let _turn = alone().await;
        let Some(rig) = Rig::shared(Real, "l9_window").await else { return };
        super::l9(&rig).await;
    }

    #[tokio::test]
    async fn c10_bytes_held_packed_in_protobuf_agree_with_the_allocator() {
        let _turn = alone().await;
        let Some(rig) = Rig::shared(Real, "c10_allocator").await else { return };
        super::c10(&rig).await;
    }

    #[tokio::test]
    async fn c10_c12_what_is_hot_agrees_with_the_allocator() {
        let _turn = alone().await;
        let Some(rig) = Rig::shared(Real, "c10_values").await else { return };
        super::values::c10(&rig).await;
    }
}
