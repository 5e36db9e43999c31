//! Measures the packed layout: bytes per object, and the time to pack and to unpack one.
//!
//!     cargo run --release -p informer-core --example packing [PODS]
#![allow(clippy::print_stdout, reason = "a measurement is printed")]

use std::borrow::Cow;
use std::time::{Duration, Instant};

use fuzzing::workloads::Pods;
use informer_core::{PackedStorage, PlainStorage, Storage, Stored};
use zstd_dictionary::{Dictionary, Error, Form, Packer, Packing, Unpacker, Unpacking, finalize};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args().nth(1).map_or(Ok(10_000), |count| count.parse())?;
    let pods = Pods::new(1);
    let listed: Vec<Vec<u8>> = (0..count).map(|index| pods.json(index, count, 7).into_bytes()).collect();
    let mut mixed = listed.clone();
    fastrand::Rng::with_seed(1).shuffle(&mut mixed);

    storage("as they are", &PlainStorage, &listed)?;
    storage("packed, in list order", &PackedStorage::new(), &listed)?;
    storage("packed, in any order", &PackedStorage::new(), &mixed)?;
    let leases: Vec<Vec<u8>> = (0..count).map(|index| lease(index).into_bytes()).collect();
    storage("leases, packed", &PackedStorage::new(), &leases)?;

    for (name, objects) in [("in list order", &listed), ("in any order", &mixed)] {
        fixed(&format!("without a dictionary, {name}"), None, objects)?;
        let first: Vec<&[u8]> = objects.iter().take(8).map(Vec::as_slice).collect();
        let four = first.get(..4).unwrap_or(&first).concat();
        let raw = Dictionary::new(four.as_slice().into(), Form::Raw)?;
        fixed(&format!("the first 4 as they are, {name}"), Some(&raw), objects)?;
        let finalized = Dictionary::new(finalize(&four, &first)?.into(), Form::Finalized)?;
        fixed(&format!("the first 4 with statistics of 8, {name}"), Some(&finalized), objects)?;
    }
    Ok(())
}

fn storage(name: &str, storage: &dyn Storage, objects: &[Vec<u8>]) -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let kept: Vec<Stored> = objects.iter().map(|bytes| storage.keep(Cow::Borrowed(bytes))).collect();
    let packed = start.elapsed();
    let start = Instant::now();
    for (stored, bytes) in kept.iter().zip(objects) {
        assert_eq!(stored.read()?.len(), bytes.len());
    }
    let unpacked = start.elapsed();
    let bytes = kept.iter().map(Stored::held_bytes).sum::<usize>();
    say(name, objects, bytes, storage.shared_bytes(), packed, unpacked);
    Ok(())
}

/// One dictionary for all.
fn fixed(name: &str, dictionary: Option<&Dictionary>, objects: &[Vec<u8>]) -> Result<(), Error> {
    let packing = dictionary.map(Dictionary::packing).transpose()?;
    let unpacking = dictionary.map(Dictionary::unpacking).transpose()?;
    let (mut packer, mut unpacker, mut buffer) = (Packer::new()?, Unpacker::new()?, Vec::new());
    let start = Instant::now();
    let mut frames = Vec::with_capacity(objects.len());
    for bytes in objects {
        packer.pack(bytes, packing.as_ref(), &mut buffer)?;
        frames.push(buffer.clone());
    }
    let packed = start.elapsed();
    let start = Instant::now();
    for (frame, bytes) in frames.iter().zip(objects) {
        assert_eq!(unpacker.unpack(frame, unpacking.as_ref(), bytes.len())?.len(), bytes.len());
    }
    let unpacked = start.elapsed();
    let shared = packing.as_ref().map_or(0, Packing::held_bytes)
        + unpacking.as_ref().map_or(0, Unpacking::held_bytes)
        + dictionary.map_or(0, |dictionary| dictionary.bytes().len());
    say(name, objects, frames.iter().map(Vec::len).sum(), shared, packed, unpacked);
    Ok(())
}

fn say(name: &str, objects: &[Vec<u8>], bytes: usize, shared: usize, packed: Duration, unpacked: Duration) {
    let count = objects.len().max(1);
    let each = |time: Duration| time.as_secs_f64() * 1e6 / count as f64;
    println!(
        "{name:50} {:6} -> {:5} bytes + {:4} KB shared, pack {:5.1} us, unpack {:4.1} us",
        objects.iter().map(Vec::len).sum::<usize>() / count,
        bytes / count,
        shared >> 10,
        each(packed),
        each(unpacked),
    );
}

fn lease(index: usize) -> String {
    let mut random = fastrand::Rng::with_seed(index as u64);
    let (uid, time) = (random.u128(..), random.u32(..1_000_000));
    format!(
        r#"{{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{{"name":"node-{index:05}","namespace":"kube-node-lease","uid":"{uid:032x}","resourceVersion":"{}","creationTimestamp":"2026-11-02T09:00:00Z","ownerReferences":[{{"apiVersion":"v1","kind":"Node","name":"node-{index:05}","uid":"{:032x}"}}]}},"spec":{{"holderIdentity":"node-{index:05}","leaseDurationSeconds":40,"renewTime":"2026-11-21T10:00:00.{time:06}Z"}}}}"#,
        random.u32(..),
        uid.rotate_left(64),
    )
}
