//! The objects of a resource at a moment, and the events after it.

use std::ops::Range as Places;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use kubediff_history::{Keys, KindName, Moment, Number, Reader, Scope};
use serve::{Collection, CollectionError, Events, Listing, Object, Objects, Range, Resource, Status};

use super::access::kind_name;
use super::content::Form;
use super::events::Following;
use super::keys::Of;
use super::view::{VERSIONS, View, complete_from, failed};

/// Objects of a batch, and its bytes: each batch is a short transaction of its own.
const BATCH: usize = 250;
const BYTES: usize = 4 << 20;
/// Objects of the first batch, before their size is known.
const FIRST: usize = 16;

/// The objects of a resource.
pub(super) struct Recorded {
    view: Arc<View>,
    kind: KindName,
    form: Form,
}

impl Recorded {
    pub(super) fn new(view: Arc<View>, resource: &Resource) -> Self {
        let form = view.known.bytes(resource).map_or_else(|| Form::of(resource), Form::WithBytes);
        Self { view, kind: kind_name(resource), form }
    }

    /// The moment of a version; that of the request without one.
    async fn moment(&self, at: Option<u64>) -> Result<Moment, CollectionError> {
        let own = self.view.at;
        let Some(revision) = at.filter(|at| *at != self.view.revision()) else { return Ok(own) };
        if revision > self.view.revision() {
            return Err(CollectionError::Failed(Status::too_large(revision, self.view.revision())));
        }
        let number = Number(revision / VERSIONS);
        self.view
            .ask(move |reader| {
                let oldest = complete_from(reader)?;
                let moment = reader.moment_after(number).map_err(failed)?.filter(|_| number >= oldest);
                moment.ok_or(CollectionError::Expired { oldest: oldest.0 * VERSIONS })
            })
            .await
    }

    async fn keys(&self, at: Moment) -> Result<Arc<Keys>, CollectionError> {
        let of = Of { kind: self.kind.clone(), at, sight: self.view.seen.sight.clone() };
        if let Some(known) = self.view.keys.get(&of) {
            return Ok(known);
        }
        let scope = Scope { kinds: vec![self.kind.clone()], ..Scope::default() };
        let keys = self.view.ask(move |reader| reader.keys(&scope, at).map_err(failed)).await?;
        let keys = Arc::new(keys);
        self.view.keys.put(of, keys.clone());
        Ok(keys)
    }
}

impl Collection for Recorded {
    fn revision(&self) -> u64 {
        self.view.revision()
    }

    fn now(&self) -> SystemTime {
        self.view.now()
    }

    fn get<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        at: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<Arc<Object>>, CollectionError>> {
        async move {
            let at = self.moment(at).await?;
            let scope = Scope {
                kinds: vec![self.kind.clone()],
                namespaces: vec![namespace.to_owned()],
                name: Some(name.to_owned()),
                ..Scope::default()
            };
            let form = self.form.clone();
            self.view
                .ask(move |reader| {
                    let keys = reader.keys(&scope, at).map_err(failed)?;
                    let found = reader.states(keys.present(), keys.within(None)).map_err(failed)?;
                    Ok(found.last().and_then(|it| form.object(it)))
                })
                .await
        }
        .boxed()
    }

    fn list<'a>(
        &'a self,
        range: &'a Range,
        at: Option<u64>,
    ) -> BoxFuture<'a, Result<Listing, CollectionError>> {
        async move {
            let at = self.moment(at).await?;
            let keys = self.keys(at).await?;
            let mut places = keys.within(range.namespace.as_deref());
            if let Some((namespace, name)) = &range.after {
                places.start = places.start.max(keys.after(namespace, name));
            }
            let count = places.len();
            let objects = Box::new(Reading {
                view: self.view.clone(),
                form: self.form.clone(),
                at,
                keys,
                places,
                batch: FIRST,
            });
            Ok(Listing { revision: at.number.0 * VERSIONS, count, objects })
        }
        .boxed()
    }

    fn events(&self, after: u64) -> Result<Box<dyn Events>, CollectionError> {
        Ok(Box::new(Following::new(self.view.clone(), self.kind.clone(), self.form.clone(), after)))
    }
}

/// Objects that are read batch by batch.
struct Reading {
    view: Arc<View>,
    form: Form,
    at: Moment,
    keys: Arc<Keys>,
    /// Those that are not read yet.
    places: Places<usize>,
    batch: usize,
}

impl Objects for Reading {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Arc<Object>>, CollectionError>> {
        async move {
            while !self.places.is_empty() {
                let end = self.places.end.min(self.places.start + self.batch);
                let (keys, form) = (self.keys.clone(), self.form.clone());
                let (some, at) = (self.places.start..end, self.at);
                let found = self.view.ask(move |reader| batch(reader, &keys, &form, some, at)).await?;
                self.places.start = end;
                let bytes: usize = found.iter().map(|object| object.body.len()).sum();
                let size = bytes / found.len().max(1) + 1;
                self.batch = (BYTES / size).clamp(1, BATCH);
                // Objects of which the content cannot be read are missing.
                if !found.is_empty() {
                    return Ok(found);
                }
            }
            Ok(Vec::new())
        }
        .boxed()
    }
}

fn batch(
    reader: &mut Reader,
    keys: &Keys,
    form: &Form,
    some: Places<usize>,
    at: Moment,
) -> Result<Vec<Arc<Object>>, CollectionError> {
    let wanted = some.len();
    let found = reader.states(keys.present(), some).map_err(failed)?;
    // Retention may have passed meanwhile.
    if found.len() < wanted && complete_from(reader)? > at.number {
        return Err(CollectionError::Expired { oldest: complete_from(reader)?.0 * VERSIONS });
    }
    Ok(found.iter().filter_map(|it| form.object(it)).collect())
}
