//! The history of a cluster as the daemon would have it: its records, then its stories.

use std::path::Path;

use kubediff::story::Fold;
use kubediff::{Change as Compared, Gvk, Noise, Origin, Profile, Schemas, Secrets, Sighting, States, Tally};
use kubediff_history::{
    Batch, Body, ChangeRecord, Cluster as Identity, Error, History, ObjectId, Observation, Settings, What,
};
use serde_json::Value;

use crate::cluster::{self, Change, Cluster, Verb};

/// Observations of a batch.
const BATCH: usize = 1_000;
/// Stories are stored after so many pages of the log.
const PAGES: usize = 20;

/// Writes the history of so many changes.
pub(crate) fn write(path: &Path, objects: usize, changes: usize, seed: u64) -> Result<(), Error> {
    let identity = Identity { uid: "bench".to_owned(), name: Some("bench".to_owned()) };
    let mut history = History::open(path, &identity, &Settings::default())?;
    let profile =
        Profile { noise: Noise::default(), secrets: Secrets::with_key([7; 32]), schemas: Schemas::default() };
    let kinds = cluster::kinds();
    let (mut batch, mut result, mut told) = (Batch::default(), Ok(()), 0_usize);
    Cluster::play(objects, changes, seed, |change| {
        if result.is_err() {
            return;
        }
        batch.observe(observation(change, &kinds, &profile));
        told += 1;
        if batch.len() == BATCH {
            result = history.commit(&std::mem::take(&mut batch)).map(drop);
        }
        if told.is_multiple_of(1_000_000) {
            eprintln!("  {told} written");
        }
    });
    result?;
    history.commit(&batch)?;
    let mut reader = history.reader()?;
    let mut fold = Fold::of_history(&mut reader)?;
    let mut pages = 0;
    while fold.advance(&mut reader)? {
        pages += 1;
        if pages % PAGES == 0 {
            history.fold(&fold.changes())?;
        }
    }
    history.fold(&fold.changes())
}

fn observation(change: &Change<'_>, kinds: &[String], profile: &Profile) -> Observation {
    let [old, new] = (change.states)();
    let last = new.clone().or(old.clone()).unwrap_or_default();
    let text = |name: &str| last[name].as_str().unwrap_or_default();
    let gvk = Gvk::new(text("apiVersion"), text("kind"));
    let resource = kinds[usize::from(change.row.kind)].split('.').next().unwrap_or_default().to_owned();
    let sighting = Sighting {
        cluster: Some("bench"),
        gvk: &gvk,
        resource: &resource,
        observed_at: change.at,
        origin: Origin::Watch,
    };
    let (what, record) = if change.row.verb == Verb::Known {
        let of = |name: &str| last["metadata"][name].as_str().unwrap_or_default().to_owned();
        let object = ObjectId {
            gvk: gvk.clone(),
            resource,
            namespace: Some(of("namespace")),
            name: of("name"),
            uid: of("uid"),
        };
        let rv = Some(of("resourceVersion"));
        (What::Known, ChangeRecord { object, rv, observed_at: change.at, ..ChangeRecord::default() })
    } else {
        let bytes = |state: Option<Value>| state.map(|state| state.to_string().into_bytes());
        let (old, new) = (bytes(old), bytes(new));
        let states = States::read(old.as_deref(), new.as_deref()).expect("both are JSON");
        let compared = Compared::between(&sighting, states, 1, profile, &mut Tally::default());
        let compared = compared.change().expect("they differ");
        (What::Change, compared.to_record().expect("JSON"))
    };
    let body = profile.secrets.redact(&gvk, last).into_inner();
    Observation { record, body: Body::redacted(body.to_string()), what, replaces: None }
}
