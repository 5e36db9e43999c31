//! One source as the oracle sees it: which requests the engine may send, when, and which content the cache may have by
//! then.

use std::collections::BTreeMap;
use std::time::Duration;

use informer_core::engine::{Applied, RequestId};
use informer_core::reflector::{self, ReflectorConfig, Report, Request, Status};
use informer_core::{ResourceVersion, Time};

use crate::content::Content;
use crate::doubt::{Cause, Doubt};
use crate::invariant::{Invariant, Violation};
use crate::network::LinkId;
use crate::past::Beginning;
use crate::plan::Transform;
use crate::render::number;
use crate::served::Served;
use crate::server::Server;
use crate::stored;
use crate::trace::Trace;
use crate::truth::{Key, State, namespace};

/// The most requests in one moment: each form of an expired list, a refused streaming list, and the watch.
const REQUESTS_AT_ONCE: u32 = 8;
const LONGEST_WAIT: Duration = Duration::from_secs(660);
const SHORTEST_WAIT: Duration = Duration::from_millis(800);

/// The world that a client reads and changes beside itself.
pub(crate) struct Around<'a> {
    pub(crate) now: Time,
    pub(crate) server: &'a mut Server,
    pub(crate) content: &'a mut Content,
    pub(crate) trace: &'a mut Trace,
    pub(crate) transform: Transform,
}

pub(crate) struct Client {
    /// The namespace of its scope; all namespaces if `None`.
    pub(crate) namespace: Option<u8>,
    pub(crate) link: Option<LinkId>,
    pub(crate) request: Option<RequestId>,
    /// Its requests, as long as something of their responses may reach the cache.
    asked_for: BTreeMap<RequestId, Asked>,
    pub(crate) status: Status,
    /// The last request failed, and the next one waits.
    pub(crate) waits: bool,
    /// When its last watch ends by its own timeout.
    pub(crate) watched_until: Option<Time>,
    /// It was woken while it waited, and has not sent a request since.
    pub(crate) owes_request: bool,
    /// No request may be sent before this time.
    not_before: Time,
    /// The number of its requests.
    pub(crate) asked: u32,
    asked_now: (Time, u32),
    /// Whether the last request had a version.
    names_version: bool,
    /// The running watch, if the last request is one.
    pub(crate) watch: Option<Served>,
    /// The epoch of its content.
    pub(crate) epoch: usize,
    /// The cache has its content.
    is_synced: bool,
    /// A server has sent or confirmed its content.
    pub(crate) is_confirmed: bool,
    /// The version of its loaded content.
    loaded_at: u64,
    /// The version of its last list in the cache, or of its loaded content.
    pub(crate) listed_at: u64,
    /// Its content mixes states of two epochs, and the engine cannot know.
    pub(crate) is_deceived: bool,
    /// It has been as far as the cache once. A source that is added later may be behind until then
    /// (`Cache::resource_version`).
    pub(crate) has_caught_up: bool,
    /// The cache's revision and the source's version when its content was last checked.
    pub(crate) checked: Option<(u64, u64)>,
    /// The doubts of its keys. Each cause ends by itself.
    pub(crate) doubts: BTreeMap<(Key, Cause), Doubt>,
    /// The keys that the list being applied reported as unsteady.
    unsteady: Vec<Key>,
    /// The number of its lists. The pages of a list count once.
    lists: u64,
    /// The number of the last list in the cache.
    listed: u64,
    /// Whether an equal version means an equal state in the list under way.
    trusts: bool,
    /// The epoch of the server when the source last probed it.
    probed: Option<usize>,
    /// The server's schema when the list of its content began; 0 without any.
    pub(crate) schema: u64,
}

/// The oracle's knowledge of a request.
struct Asked {
    /// The epoch of the server when it answered.
    epoch: usize,
    /// The number of the list that it belongs to.
    list: Option<u64>,
    /// The number of lists that had begun by then, this one included.
    lists: u64,
    /// The listed keys whose item was undecodable.
    kept_unread: Vec<Key>,
    /// The states in its response, as the server sent them.
    said: Vec<(Key, State)>,
    /// It is a probe: the engine uses only the version of its response.
    is_probe: bool,
    /// The server's schema when the request was sent.
    schema: u64,
    /// The epoch of the server at the last probe before.
    probed: Option<usize>,
}

impl Client {
    pub(crate) fn new(namespace: Option<u8>, beginning: Option<Beginning>) -> Self {
        let Beginning { loaded_at, past } = beginning.unwrap_or_default();
        let past = past.filter(|_| loaded_at > 0);
        Self {
            namespace,
            is_synced: loaded_at > 0,
            is_confirmed: false,
            loaded_at,
            listed_at: loaded_at,
            link: None,
            request: None,
            asked_for: BTreeMap::new(),
            status: Status::Connecting,
            waits: false,
            watched_until: None,
            owes_request: false,
            not_before: Time::ZERO,
            asked: 0,
            asked_now: (Time::ZERO, 0),
            names_version: false,
            watch: None,
            epoch: past.as_ref().map_or(0, |past| past.epoch),
            schema: past.as_ref().map_or(0, |past| past.schema),
            is_deceived: past.as_ref().is_some_and(|past| past.is_deceived),
            has_caught_up: false,
            checked: None,
            doubts: past.map(|past| past.doubts).unwrap_or_default(),
            unsteady: Vec::new(),
            lists: 0,
            listed: 0,
            trusts: true,
            probed: None,
        }
    }

    pub(crate) fn covers(&self, key: Key) -> bool {
        self.namespace.is_none_or(|namespace| namespace == key.namespace())
    }

    pub(crate) fn name(&self) -> &'static str {
        self.namespace.map_or("*", namespace)
    }

    pub(crate) fn has_asked(&self, request: RequestId) -> bool {
        self.asked_for.contains_key(&request)
    }

    /// Whether its last request was not answered, or not to its end.
    pub(crate) fn is_unreached(&self) -> bool {
        let Status::Retrying { cause, .. } = &self.status else { return false };
        matches!(
            cause,
            reflector::Cause::Unreachable(_) | reflector::Cause::Silent(_) | reflector::Cause::Broken(_)
        )
    }

    /// A caller asks for an immediate retry.
    pub(crate) fn woken(&mut self, now: Time) {
        if self.waits {
            self.not_before = now;
            self.owes_request = true;
        }
    }

    /// A new step begins. Requests are counted anew, because they have another cause.
    pub(crate) fn another_moment(&mut self) {
        self.asked_now.1 = 0;
    }

    pub(crate) fn hang_up(&mut self, server: &mut Server) {
        self.request = None;
        if let Some(link) = self.link.take() {
            server.close(link);
        }
    }

    /// Takes over the doubts and states of the connection, as soon as its first byte arrives.
    pub(crate) fn note_damage(&mut self, around: &mut Around<'_>) {
        let Some(link) = self.link.and_then(|link| around.server.link(link)) else { return };
        let doubts = std::mem::take(&mut link.doubts);
        let (kept_unread, said) = (link.kept_unread.clone(), std::mem::take(&mut link.said));
        if let Some(asked) = self.request.and_then(|request| self.asked_for.get_mut(&request)) {
            if asked.is_probe {
                return;
            }
            asked.kept_unread = kept_unread;
            asked.said.extend(said);
        }
        let is_one = doubts.len() == 1;
        for (key, doubt) in doubts {
            let truth = around.server.truth.at(around.server.truth.epoch(), key, around.server.version);
            let cached = around.content.cache().get_str(key.text()).and_then(|object| stored::read(&object));
            let is_known = |sent: u64| {
                let is_newer = |(_, cached): (Key, State)| {
                    cached.version >= sent && truth.is_some_and(|truth| truth.uid == cached.uid)
                };
                // A key that the cache does not have may come back with an old state, also one that a list which is not
                // applied yet leaves out.
                is_one
                    && !self.has_other_lists()
                    && around.transform == Transform::default()
                    && cached.is_some_and(is_newer)
            };
            match doubt.cause {
                Cause::Excuse(sent) if is_known(sent) => {}
                Cause::Excuse(_) => self.doubt(around.content, key, Doubt { cause: Cause::Lie, ..doubt }),
                _ => self.doubt(around.content, key, doubt),
            }
        }
    }

    fn doubt(&mut self, content: &mut Content, key: Key, doubt: Doubt) {
        content.doubt(key);
        let doubt = Doubt { lists: self.lists, ..doubt };
        let known = self.doubts.entry((key, doubt.cause)).or_insert(doubt);
        // A new list may be of another epoch, so an older `until` means nothing.
        let is_same_list = known.lists == doubt.lists;
        let until = if is_same_list { known.until.max(doubt.until) } else { doubt.until };
        *known = Doubt { until, ..doubt };
    }

    /// An object changed at an unchanged version.
    pub(crate) fn revised(&mut self, content: &mut Content, key: Key, version: u64) {
        if self.covers(key) {
            let doubt = Doubt { until: version + 1, cause: Cause::Revision, is_held: false, lists: 0 };
            self.doubt(content, key, doubt);
        }
    }

    /// Whether an undecodable version of the key must be in quarantine.
    pub(crate) fn has_held(&self, key: Key, version: u64) -> bool {
        let doubt = self.doubts.get(&(key, Cause::Damage));
        let is_lied_about = self.doubts.contains_key(&(key, Cause::Lie));
        !is_lied_about && doubt.is_some_and(|doubt| doubt.is_held && doubt.until <= version)
    }

    /// Whether a list was started after the last one in the cache. Its undecodable items may be in quarantine.
    pub(crate) fn has_other_lists(&self) -> bool {
        self.lists != self.listed
    }

    /// Whether a subscription may receive changes of the key that do not follow from each other: now, or once a list
    /// of another epoch is applied.
    pub(crate) fn doubts_story(&self, key: Key) -> bool {
        let is_mixed = || self.asked_for.values().any(|asked| asked.epoch != self.epoch);
        self.doubts(key) || self.covers(key) && is_mixed()
    }

    /// Whether the key may have another state than the server's.
    pub(crate) fn doubts(&self, key: Key) -> bool {
        self.covers(key) && (self.is_deceived || self.doubts.keys().any(|(doubted, _)| *doubted == key))
    }

    pub(crate) fn send(
        &mut self,
        around: &mut Around<'_>,
        id: RequestId,
        request: &Request,
        resource: u8,
        held: bool,
    ) -> Result<(), Violation> {
        around.trace.line(|| format!("       {} -> {request}", self.name()));
        if !around.content.is_ahead() {
            self.check_request(&around.content.source_version(self.namespace), request)?;
        }
        Invariant::Pace.holds(around.now >= self.not_before, || {
            format!("{request} is sent at {:?}, before {:?}", around.now, self.not_before)
        })?;
        let is_page = matches!(request, Request::List(list) if list.continue_token.is_some());
        if !is_page {
            self.asked += 1;
            let (at, count) = self.asked_now;
            self.asked_now = if at == around.now { (at, count + 1) } else { (around.now, 1) };
            Invariant::Pace.holds(self.asked_now.1 <= REQUESTS_AT_ONCE, || {
                format!("{request} is request number {} in one moment", self.asked_now.1)
            })?;
        }
        self.hang_up(around.server);
        self.waits = false;
        self.owes_request = false;
        let is_probe = matches!(request, Request::List(list) if list.limit == Some(1));
        let is_list = match request {
            Request::List(_) => !is_probe,
            Request::Watch(watch) => watch.initial_events,
        };
        self.lists += u64::from(is_list && !is_page);
        self.names_version = !match request {
            Request::List(list) => list.resource_version.is_unset(),
            Request::Watch(watch) => watch.resource_version.is_unset(),
        };
        self.watch = (!is_list && !is_probe).then(Served::asked);
        let link = around.server.request(around.now, (self.namespace, resource), request, held);
        let epoch = around.server.link(link).map_or(self.epoch, |link| link.epoch);
        let list = is_list.then_some(self.lists);
        if is_probe {
            self.probed = Some(epoch);
        }
        let (kept_unread, said) = (Vec::new(), Vec::new());
        let (schema, lists, probed) = (around.server.schema, self.lists, self.probed);
        let asked = Asked { epoch, list, lists, kept_unread, said, is_probe, schema, probed };
        self.asked_for.insert(id, asked);
        (self.link, self.request) = (Some(link), Some(id));
        Ok(())
    }

    /// The outage is over: the request that waited for that is sent.
    pub(crate) fn released(&mut self, around: &mut Around<'_>) {
        let Some((link, request)) = self.link.zip(self.request) else { return };
        let Some(epoch) = around.server.unpark(around.now, link) else { return };
        // A list that waited is answered with the state of now, so it begins now. The later pages of one began with its first.
        let list = self.asked_for.get(&request).and_then(|asked| asked.list);
        let begins = list.is_some() && self.parts(list).count() == 1;
        self.lists += u64::from(begins);
        if let Some(asked) = self.asked_for.get_mut(&request) {
            if begins {
                (asked.list, asked.lists) = (Some(self.lists), self.lists);
            }
            if asked.is_probe {
                self.probed = Some(epoch);
            }
            *asked = Asked {
                epoch,
                schema: around.server.schema,
                probed: self.probed,
                kept_unread: std::mem::take(&mut asked.kept_unread),
                said: std::mem::take(&mut asked.said),
                ..*asked
            };
        }
    }

    fn check_request(&self, reached: &ResourceVersion, request: &Request) -> Result<(), Violation> {
        let right = match request {
            Request::List(list) if list.continue_token.is_some() => {
                list.resource_version.is_unset() && !list.not_older_than
            }
            Request::List(list) => self.may_list_at(&list.resource_version, reached),
            Request::Watch(watch) => {
                let at = &watch.resource_version;
                let right = if watch.initial_events { self.may_list_at(at, reached) } else { at == reached };
                right && (300..=600).contains(&watch.timeout_seconds)
            }
        };
        Invariant::Request.holds(right, || format!("{request}, though the source has reached {reached:?}"))
    }

    fn may_list_at(&self, version: &ResourceVersion, reached: &ResourceVersion) -> bool {
        let is_zero = version.is_unset_or_zero() && !version.is_unset();
        version.is_unset() || version.is_at_least(reached) || is_zero && !self.is_synced
    }

    pub(crate) fn status(&mut self, around: &mut Around<'_>, status: Status) -> Result<(), Violation> {
        around.trace.line(|| format!("       {} is {status}", self.name()));
        self.waits = matches!(status, Status::Retrying { .. } | Status::Denied { .. } | Status::Stalled);
        match &status {
            Status::Retrying { wait, .. } => {
                self.not_before = around.now + *wait;
                Invariant::Pace
                    .holds((SHORTEST_WAIT..=LONGEST_WAIT).contains(wait), || format!("a wait of {wait:?}"))?;
            }
            Status::Denied { status } => {
                self.not_before = around.now + ReflectorConfig::default().denied_retry;
                // A request with a version may be refused because of the version.
                let is_right = match status.code {
                    401 | 403 | 404 => true,
                    400 | 405 | 406 | 415 | 422 => !self.names_version,
                    _ => false,
                };
                Invariant::Connection.holds(is_right, || format!("denied by {status}"))?;
            }
            Status::Stalled => {
                Invariant::Connection
                    .holds(around.content.is_lent(), || "stalled, though no user code runs".to_owned())?;
            }
            _ => {}
        }
        self.status = status;
        Ok(())
    }

    pub(crate) fn report(&mut self, around: &mut Around<'_>, report: &Report) {
        around.trace.line(|| format!("       {} reports {report:?}", self.name()));
        match report {
            Report::ServerRestored { .. } => {
                around.content.restored = true;
                around.content.doubt_everything();
            }
            Report::Unsteady { key } => self.unsteady.extend(Key::of(key.as_str())),
            _ => {}
        }
    }

    /// The cache applied a part of a response.
    pub(crate) fn applied(
        &mut self,
        around: &mut Around<'_>,
        request: RequestId,
        applied: Applied,
    ) -> Result<(), Violation> {
        match applied {
            Applied::ListBegun { trust_versions } => self.trusts = trust_versions,
            Applied::Listed(version) => self.listed(around, request, &version)?,
            Applied::ListRefused(error) => return Err(Invariant::Content.violated(error.to_string())),
            Applied::Upserted(key, version) | Applied::Deleted(key, version) => {
                self.follows(around, request);
                if let Some(key) = Key::of(key.as_str()) {
                    let version = number(&version);
                    let lists = self.asked_for.get(&request).map_or(self.lists, |asked| asked.lists);
                    let said = self.asked_for.get(&request).map_or(&[][..], |asked| &asked.said);
                    let now = around.server.truth.at(self.epoch_of(request), key, version);
                    let fails = now.is_some_and(|now| around.transform.fails(value(said, key, now)));
                    // A doubt that arose after this event was sent stays.
                    self.doubts.retain(|(doubted, _), doubt| {
                        fails || *doubted != key || doubt.until > version || doubt.lists > lists
                    });
                }
            }
            Applied::Bookmark(_) => self.follows(around, request),
            Applied::Confirmed => {
                self.is_confirmed = true;
                // The engine cannot know yet that the server was restored after the probe (W12).
                let probed = self.asked_for.get(&request).and_then(|asked| asked.probed);
                let probed = probed.unwrap_or(self.epoch_of(request));
                let is_unheard = probed != around.server.truth.epoch();
                Invariant::Saved.holds(is_unheard || around.server.version >= self.loaded_at, || {
                    format!(
                        "a load at {} is confirmed by a server at {}",
                        self.loaded_at, around.server.version
                    )
                })?;
            }
            _ => {}
        }
        // Operations are applied in order, so nothing of an earlier request follows.
        let current = self.asked_for.get(&request).and_then(|asked| asked.list);
        self.asked_for.retain(|id, asked| *id >= request || asked.list.is_some() && asked.list == current);
        Ok(())
    }

    fn listed(
        &mut self,
        around: &mut Around<'_>,
        request: RequestId,
        version: &ResourceVersion,
    ) -> Result<(), Violation> {
        let epoch = self.epoch_of(request);
        // The same version may now mean another state. A mixture of two epochs ends here.
        let is_mixed = self.is_deceived || self.is_synced && epoch != self.epoch;
        if !self.trusts || is_mixed {
            around.content.doubt_everything();
        }
        self.is_deceived = false;
        let reached = number(version);
        // A streaming list goes on as the watch.
        if self.request == Some(request) {
            self.watch = Some(Served::accepted(around.now));
        }
        let list = self.asked_for.get(&request).and_then(|asked| asked.list);
        let kept = self.kept_by_transform(around, list, epoch, reached);
        // A complete list ends every older doubt, except where the cache keeps the former object. The next version that the
        // transform accepts ends that.
        let truth = &around.server.truth;
        self.doubts.retain(|(key, cause), doubt| {
            let is_older = match cause {
                // The versions of another epoch may be smaller.
                Cause::Unsteady => {
                    let now = truth.at(epoch, *key, reached);
                    !self.trusts || now.is_none_or(|now| now.version + 1 != doubt.until)
                }
                _ => Some(doubt.lists) < list,
            };
            if let (true, Some(version)) = (is_older, kept.get(key)) {
                doubt.until = version + 1;
            }
            !is_older || kept.contains_key(key)
        });
        for key in std::mem::take(&mut self.unsteady) {
            let until = around.server.truth.at(epoch, key, reached).map_or(0, |now| now.version + 1);
            let doubt = Doubt { until, cause: Cause::Unsteady, is_held: false, lists: 0 };
            self.doubt(around.content, key, doubt);
        }
        (self.epoch, self.is_synced, self.is_confirmed) = (epoch, true, true);
        self.listed_at = reached;
        self.listed = list.unwrap_or(self.listed);
        self.schema = self.parts(list).map(|part| part.schema).min().unwrap_or(self.schema);
        // A namespace may have been away while the server was restored, so no source noticed.
        if around.content.epoch.replace(epoch).is_some_and(|before| before != epoch) {
            around.content.doubt_everything();
        }
        // A kept object may be of the other epoch.
        for (key, version) in kept.iter().filter(|_| is_mixed) {
            let lists = list.unwrap_or(self.lists);
            let doubt = Doubt { until: version + 1, cause: Cause::Lie, is_held: false, lists };
            // A later event may have lied already.
            let known = self.doubts.entry((*key, Cause::Lie)).or_insert(doubt);
            known.until = known.until.max(doubt.until);
            around.content.doubt(*key);
        }
        self.check_undecodable(around, list)
    }

    /// The responses of a list.
    fn parts(&self, list: Option<u64>) -> impl Iterator<Item = &Asked> {
        self.asked_for.values().filter(move |asked| asked.list.is_some() && asked.list == list)
    }

    /// The listed objects for which the transform fails, with their versions: the cache keeps their former states. An item
    /// without a name keeps nothing.
    fn kept_by_transform(
        &self,
        around: &Around<'_>,
        list: Option<u64>,
        epoch: usize,
        reached: u64,
    ) -> BTreeMap<Key, u64> {
        let said: Vec<_> = self.parts(list).flat_map(|part| part.said.iter().copied()).collect();
        let is_nameless = |key: &Key| {
            let doubt = self.doubts.get(&(*key, Cause::Half));
            doubt.is_some_and(|doubt| Some(doubt.lists) == list)
        };
        let listed = Key::all().filter(|key| self.covers(*key) && !is_nameless(key));
        let listed = listed.filter_map(|key| Some((key, around.server.truth.at(epoch, key, reached)?)));
        let kept = listed.filter(|(key, now)| around.transform.fails(value(&said, *key, *now)));
        kept.map(|(key, now)| (key, now.version)).collect()
    }

    /// The listed keys whose item was undecodable stay in the cache, and are in quarantine from now on (W8).
    fn check_undecodable(&mut self, around: &Around<'_>, list: Option<u64>) -> Result<(), Violation> {
        let undecodable = self.parts(list).flat_map(|part| part.kept_unread.iter().copied());
        let undecodable: Vec<_> = undecodable.collect();
        for key in &undecodable {
            let doubt = self.doubts.get_mut(&(*key, Cause::Damage));
            if let Some(doubt) = doubt.filter(|doubt| Some(doubt.lists) == list) {
                doubt.is_held = true;
            }
        }
        let kept = undecodable.into_iter().filter(|key| self.trusts && around.content.had(*key));
        let lost: Vec<_> = kept.filter(|key| around.content.cache().get_str(key.text()).is_none()).collect();
        Invariant::Content
            .holds(lost.is_empty(), || format!("the cache lost {lost:?}, whose items are undecodable (W8)"))
    }

    /// An event is applied to the present content, whatever epoch that is of.
    fn follows(&mut self, around: &mut Around<'_>, request: RequestId) {
        if self.epoch_of(request) != self.epoch {
            self.deceived(around);
        }
    }

    fn deceived(&mut self, around: &mut Around<'_>) {
        if !std::mem::replace(&mut self.is_deceived, true) {
            around.trace.line(|| format!("       {} cannot know that the server was restored", self.name()));
        }
        around.content.doubt_everything();
    }

    fn epoch_of(&self, request: RequestId) -> usize {
        self.asked_for.get(&request).map_or(self.epoch, |asked| asked.epoch)
    }
}

/// The value of a state as it was sent. The server's may be another one after a revision.
fn value(said: &[(Key, State)], key: Key, now: State) -> u32 {
    let came = said.iter().rev().find(|(of, came)| *of == key && came.version == now.version);
    came.map_or(now.value, |(_, came)| came.value)
}
