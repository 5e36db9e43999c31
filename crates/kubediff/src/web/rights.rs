//! The rights of users to see the past: the API server decides about each resource and namespace, by a SubjectAccessReview
//! (authorization.k8s.io/v1) for `list` and one for `get`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, TryStreamExt as _};
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use kube_client::Client;
use kubediff_history::{KindName, Right, Sight};
use serde_json::json;

use super::problem::Problem;
use super::review::{namespaces, review};
use super::sessions::{User, UserKey};
use super::store::{Seen, Store};
use super::wanted::Wanted;

/// Reviews that are under way at once, for one request.
const AT_ONCE: usize = 20;
/// How long an answer holds, as API servers hold those of their authorizers.
const ALLOWED: Duration = Duration::from_secs(300);
const DENIED: Duration = Duration::from_secs(30);
/// How long a sight holds that was made of them.
const SIGHT: Duration = Duration::from_secs(15);
/// Resources in namespaces that are asked for one by one.
const MOST_PAIRS: usize = 2_000;
/// Answers that are remembered.
const MOST_ANSWERS: usize = 200_000;

/// A sight, and the time at which it was found.
type Known = (Option<Arc<Sight>>, Instant);

type Places = BTreeMap<KindName, BTreeSet<Option<String>>>;
/// The namespaces of the cluster by their names.
type Namespaces = HashMap<String, Tenancy>;

/// A namespace of the cluster.
#[derive(Debug, Clone)]
struct Tenancy {
    uid: String,
    /// When the server made it.
    made: Timestamp,
    /// When it was listed first.
    listed_at: Instant,
}

/// The rights of users, from the API server.
pub(super) struct Rights {
    client: Client,
    store: Arc<Store>,
    answers: Mutex<HashMap<(UserKey, Asking), (bool, Instant)>>,
    sights: Mutex<HashMap<(UserKey, Wanted), Known>>,
    places: Mutex<Option<(Arc<Places>, Instant)>>,
    namespaces: Mutex<Option<(Arc<Namespaces>, Instant)>>,
    /// When the API server last said that somebody may do something.
    allowed_at: Mutex<Instant>,
}

/// One question about a right.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Asking {
    verb: &'static str,
    resource: KindName,
    namespace: Option<String>,
    name: Option<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Rights {
    pub(super) fn new(client: Client, store: Arc<Store>) -> Self {
        Self {
            client,
            store,
            answers: Mutex::default(),
            sights: Mutex::default(),
            places: Mutex::default(),
            namespaces: Mutex::default(),
            allowed_at: Mutex::new(Instant::now()),
        }
    }

    /// The part of the history that a user may see; `None` for all of it.
    pub(super) async fn sight(
        &self,
        user: &Arc<User>,
        wanted: &Wanted,
    ) -> Result<Option<Arc<Sight>>, Problem> {
        let key = (user.key, wanted.clone());
        if let Some((sight, at)) = lock(&self.sights).get(&key)
            && at.elapsed() < SIGHT
        {
            return Ok(sight.clone());
        }
        let sight = self.found(user, wanted).await?.map(Arc::new);
        if wanted.is_inside() && sight.as_ref().is_some_and(|sight| sight.rights.is_empty()) {
            let place = wanted.namespace.as_ref().map(|name| format!(" of the namespace {name}"));
            let title = format!("You may see nothing{} here", place.unwrap_or_default());
            let hint = "A Role with the verbs get and list on a resource shows its objects, also those of the past. `kubectl auth can-i --list` says \
                        what you may do.";
            return Err(Problem::new(StatusCode::FORBIDDEN, title).hint(hint));
        }
        let mut sights = lock(&self.sights);
        sights.retain(|_, (_, at)| at.elapsed() < SIGHT);
        sights.insert(key, (sight.clone(), Instant::now()));
        Ok(sight)
    }

    async fn found(&self, user: &Arc<User>, wanted: &Wanted) -> Result<Option<Sight>, Problem> {
        let all = KindName { group: Some("*".to_owned()), resource: "*".to_owned() };
        if self.may_see(user, &all, None, None).await? {
            return Ok(None);
        }
        let places = self.places().await?;
        // A resource that is asked for by its name has perhaps no objects.
        let asked: Vec<&KindName> = match &wanted.resource {
            Some(resource) => vec![resource],
            None => places.keys().collect(),
        };
        let whole = self.those(user, asked.iter().map(|resource| ((*resource).clone(), None))).await?;
        let mut pairs = Vec::new();
        for resource in asked.into_iter().filter(|resource| !whole.iter().any(|it| it.resource == **resource))
        {
            let named: Vec<&String> = match &wanted.resource {
                Some(_) => wanted.namespace.iter().collect(),
                None => places.get(resource).into_iter().flatten().flatten().collect(),
            };
            let named = named.into_iter().filter(|name| wanted.has(name));
            pairs.extend(named.map(|name| (resource.clone(), Some(name.clone()))));
        }
        if pairs.len() > MOST_PAIRS {
            let detail = format!(
                "Your rights are not those of the whole cluster, and the history has more than {MOST_PAIRS} resources in namespaces: \
                 too many to ask the API server for each of them."
            );
            let problem = Problem { detail, ..Problem::new(StatusCode::FORBIDDEN, "Choose a namespace") };
            return Err(problem.hint("Add ?ns=NAME to the address, or ns:NAME to the search."));
        }
        let mut rights = whole;
        rights.extend(self.those(user, pairs).await?);
        if let Some((resource, namespace, name)) = &wanted.object {
            let is_there = |right: &Right| {
                right.resource == *resource && (right.namespace.is_none() || right.namespace == *namespace)
            };
            if !rights.iter().any(is_there)
                && places.contains_key(resource)
                && self.may(user, "get", resource, namespace.as_deref(), Some(name)).await?
            {
                let (namespace, name) = (namespace.clone(), Some(name.clone()));
                rights.push(Right { resource: resource.clone(), namespace, name, since: None });
            }
        }
        if rights.iter().any(|right| right.namespace.is_some()) {
            let namespaces = self.namespaces().await?;
            rights = rights.into_iter().filter_map(|right| at_present(right, &namespaces)).collect();
        }
        Ok(Some(Sight { rights }))
    }

    /// The resources and namespaces that a user may see.
    async fn those(
        &self,
        user: &Arc<User>,
        all: impl IntoIterator<Item = (KindName, Option<String>)>,
    ) -> Result<Vec<Right>, Problem> {
        let reviews = all.into_iter().map(|(resource, namespace)| async move {
            let is_seen = self.may_see(user, &resource, namespace.as_deref(), None).await?;
            Ok(is_seen.then_some(Right { resource, namespace, name: None, since: None }))
        });
        let reviews: Vec<_> = reviews.collect();
        futures_util::stream::iter(reviews)
            .buffered(AT_ONCE)
            .try_filter_map(|right| async { Ok(right) })
            .try_collect()
            .await
    }

    async fn may_see(
        &self,
        user: &Arc<User>,
        resource: &KindName,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> Result<bool, Problem> {
        Ok(self.may(user, "list", resource, namespace, name).await?
            && self.may(user, "get", resource, namespace, name).await?)
    }

    /// Whether a user has a right.
    async fn may(
        &self,
        user: &Arc<User>,
        verb: &'static str,
        resource: &KindName,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> Result<bool, Problem> {
        let asking = Asking {
            verb,
            resource: resource.clone(),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
        };
        let key = (user.key, asking);
        if let Some((is_allowed, at)) = lock(&self.answers).get(&key)
            && at.elapsed() < if *is_allowed { ALLOWED } else { DENIED }
        {
            return Ok(*is_allowed);
        }
        let mut spec = user.subject.clone();
        spec["resourceAttributes"] = json!({
            "verb": verb, "group": resource.group, "resource": resource.resource, "namespace": namespace, "name": name,
        });
        let status = review(&self.client, "authorization.k8s.io", "SubjectAccessReview", &spec).await?;
        let is_allowed = status["allowed"] == true;
        if is_allowed {
            *lock(&self.allowed_at) = Instant::now();
        }
        let mut answers = lock(&self.answers);
        if answers.len() >= MOST_ANSWERS {
            answers.clear();
        }
        answers.insert(key, (is_allowed, Instant::now()));
        Ok(is_allowed)
    }

    /// The namespaces of the cluster. A right in one of them was found before they were listed: so it is one in that namespace, and not in
    /// another one of that name before it.
    async fn namespaces(&self) -> Result<Arc<Namespaces>, Problem> {
        let allowed_at = *lock(&self.allowed_at);
        if let Some((namespaces, at)) = &*lock(&self.namespaces)
            && at.elapsed() < SIGHT
            && *at > allowed_at
        {
            return Ok(namespaces.clone());
        }
        let at = Instant::now();
        let found = namespaces(&self.client).await?;
        let mut former = lock(&self.namespaces);
        let listed_at = |name: &str, uid: &str| {
            let known = former.as_ref().and_then(|(known, _)| known.get(name));
            known.filter(|known| known.uid == uid).map_or(at, |known| known.listed_at)
        };
        let found = found.into_iter().map(|(name, (uid, made))| {
            let tenancy = Tenancy { listed_at: listed_at(&name, &uid), uid, made };
            (name, tenancy)
        });
        let found: Arc<Namespaces> = Arc::new(found.collect());
        *former = Some((found.clone(), at));
        Ok(found)
    }

    /// The resources and namespaces of the history.
    async fn places(&self) -> Result<Arc<Places>, Problem> {
        if let Some((places, at)) = &*lock(&self.places)
            && at.elapsed() < SIGHT
        {
            return Ok(places.clone());
        }
        let found = self.store.ask(Seen::default(), |asked| Ok(asked.reader.places()?)).await?;
        let found = Arc::new(found);
        *lock(&self.places) = Some((found.clone(), Instant::now()));
        Ok(found)
    }
}

/// A right in a namespace is one to objects of the present one. Without one it is none.
fn at_present(right: Right, namespaces: &Namespaces) -> Option<Right> {
    let Some(name) = &right.namespace else { return Some(right) };
    let since = namespaces.get(name)?.since(Timestamp::now());
    Some(Right { since: Some(since), ..right })
}

impl Tenancy {
    /// How long a history may lag behind the cluster.
    const LAG: Duration = Duration::from_secs(60);
    /// The deletions before a namespace that is so old are in the history, unless kubediff did not run. Clocks may be 15 minutes apart.
    const OLD: SignedDuration = SignedDuration::from_mins(16);

    /// Since when an object was made that was made in this namespace. Times of the server have seconds, so one that was made in the same second may
    /// have been in a former namespace, and the history may not have its deletion yet.
    fn since(&self, now: Timestamp) -> Timestamp {
        let is_young = self.listed_at.elapsed() < Self::LAG && now.duration_since(self.made) < Self::OLD;
        let second = SignedDuration::from_secs(i64::from(is_young));
        self.made.checked_add(second).unwrap_or(self.made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_the_second_of_their_namespace_are_its_own_when_the_history_has_deletions_before_it() {
        let made: Timestamp = "2026-03-01T14:00:00Z".parse().unwrap();
        let after = |seconds| made.checked_add(SignedDuration::from_secs(seconds)).unwrap();
        let listed = |ago| Instant::now().checked_sub(Duration::from_secs(ago)).unwrap();
        let tenancy = |ago| Tenancy { uid: "1".to_owned(), made, listed_at: listed(ago) };
        assert_eq!(tenancy(0).since(after(5)), after(1));
        assert_eq!(tenancy(59).since(after(70)), after(1));
        assert_eq!(tenancy(61).since(after(70)), made);
        // The daemon has started, or this clock is behind the server's.
        assert_eq!(tenancy(0).since(after(3_600)), made);
        assert_eq!(tenancy(0).since(after(-600)), after(1));
    }
}
