//! Answers requests.

use std::time::Duration;

use informer_core::reflector::{ListRequest, Request, WatchRequest};
use informer_core::{ResourceVersion, Time};

use super::{BOOKMARKS_EVERY, Server, send};
use crate::doubt::{Cause, Doubt};
use crate::network::{Head, Link, LinkId, Watch};
use crate::plan::{Denial, Fault, Spoil};
use crate::render;
use crate::truth::{Change, Key, Record};

/// How late a late end of the initial events is.
const LATE_END: Duration = Duration::from_secs(5);

/// The version that a request asks for.
enum From {
    /// The most recent state.
    Now,
    /// Any state.
    Any,
    Version(u64),
}

impl Server {
    /// Answers a request for one namespace, or for all, of a version of the resource. One that is held waits for
    /// [`Server::unpark`].
    pub(crate) fn request(
        &mut self,
        now: Time,
        of: (Option<u8>, u8),
        request: &Request,
        held: bool,
    ) -> LinkId {
        self.links_made += 1;
        let id = LinkId(self.links_made);
        if held {
            self.links.push(Link::parked(id, self.truth.epoch(), now, of, request.clone()));
        } else {
            self.answer_on(id, now, of, request);
        }
        id
    }

    /// Answers a request that was held. Returns the epoch of the server; `None` if the request is not held.
    pub(crate) fn unpark(&mut self, now: Time, id: LinkId) -> Option<usize> {
        let (of, request) = self.link(id)?.unpark()?;
        self.close(id);
        self.answer_on(id, now, of, &request);
        Some(self.truth.epoch())
    }

    fn answer_on(&mut self, id: LinkId, now: Time, of: (Option<u8>, u8), request: &Request) {
        let (namespace, resource) = of;
        let epoch = self.truth.epoch();
        let mut link = Link::new(id, namespace, epoch, Head::Accepted, self.flows);
        link.protobuf = self.setup.protobuf;
        link.resource = resource;
        if let Err(head) = self.answer(now, &mut link, request) {
            link = Link::new(id, namespace, epoch, head, self.flows);
        }
        link.since = now;
        self.links.push(link);
    }

    fn answer(&mut self, now: Time, link: &mut Link, request: &Request) -> Result<(), Head> {
        let fault = self.faults.pop_front();
        match fault {
            Some(Fault::Unreachable) => return Err(Head::Unreachable),
            Some(Fault::Silent) => {
                link.is_dead = true;
                return Ok(());
            }
            Some(Fault::Refused { code, retry_after }) => return Err(refused(code, retry_after)),
            Some(Fault::TooLarge) => return Err(too_large(self.setup.too_large_form)),
            Some(Fault::Page) => {
                let body = "<html>bad gateway</html>".into();
                return Err(Head::Refused { code: 502, retry_after: None, body });
            }
            Some(Fault::Nonsense(which)) => {
                link.push(&render::nonsense(which));
                link.finish();
                return Ok(());
            }
            Some(Fault::Stale(_) | Fault::NoEnd) | None => {}
        }
        if let Some((denial, namespace)) = self.denial
            && (namespace.is_none() || namespace == link.namespace)
        {
            return Err(denied(denial));
        }
        if self.is_undefined || link.resource != self.served {
            return Err(refused(404, 0));
        }
        let stale = match fault {
            // An informer cannot notice that an opaque version is old.
            Some(Fault::Stale(back)) if !self.setup.opaque => u64::from(back),
            _ => 0,
        };
        match request {
            Request::List(list) => self.list(link, list, stale),
            Request::Watch(watch) if watch.initial_events => {
                self.stream(now, link, watch, stale, fault == Some(Fault::NoEnd))
            }
            Request::Watch(watch) => self.watch(now, link, watch),
        }
    }

    fn list(&mut self, link: &mut Link, request: &ListRequest, stale: u64) -> Result<(), Head> {
        let (mut after, oldest) = (None, self.oldest());
        let at = match &request.continue_token {
            Some(token) => {
                let (version, last) = self.token(token)?;
                after = Some(last);
                version
            }
            None => match from(&request.resource_version)? {
                From::Now => self.version,
                From::Any => self.version.saturating_sub(u64::from(self.setup.lag)).max(oldest),
                From::Version(asked) if asked > self.version && self.setup.opaque => return Err(expired()),
                From::Version(asked) if asked > self.version => {
                    return Err(too_large(self.setup.too_large_form));
                }
                From::Version(_) if stale > 0 => self.version.saturating_sub(stale).max(1),
                From::Version(asked) => self.version.saturating_sub(u64::from(self.setup.lag)).max(asked),
            },
        };
        let pages = after.is_some() || self.setup.pages || request.resource_version.is_unset();
        let limit = request.limit.filter(|_| pages).map_or(usize::MAX, |limit| limit as usize);
        let epoch = self.truth.epoch();
        let mut objects: Vec<_> = Key::all()
            .filter(|key| link.namespace.is_none_or(|namespace| namespace == key.namespace()))
            .filter(|key| after.is_none_or(|after| *key > after))
            .filter_map(|key| Some((key, self.truth.at(epoch, key, at)?)))
            .collect();
        let more = objects.len() > limit;
        objects.truncate(limit);
        let custom = self.setup.custom;
        let items = objects.iter().map(|(key, state)| {
            let spoil = self.spoil.take();
            if let Some(spoil) = spoil {
                let cause = if spoil == Spoil::Nameless { Cause::Half } else { Cause::Damage };
                link.doubts.push((*key, Doubt { until: at, cause, is_held: false, lists: 0 }));
                link.kept_unread.extend((spoil != Spoil::Nameless).then_some(*key));
            }
            link.said.push((*key, *state));
            render::item(*key, *state, custom, spoil)
        });
        let items: Vec<_> = items.collect();
        let next = objects.last().filter(|_| more).map(|(last, _)| format!("{at}.{epoch}.{}", last.0));
        link.push(&render::list(at, next.as_deref(), &items, custom));
        link.finish();
        Ok(())
    }

    /// Reads a continue token, unless its version is compacted.
    fn token(&self, token: &str) -> Result<(u64, Key), Head> {
        let parts: Vec<u64> = token.split('.').filter_map(|part| part.parse().ok()).collect();
        let [version, epoch, last] = parts[..] else { return Err(refused(400, 0)) };
        if version < self.compacted || epoch != self.truth.epoch() as u64 {
            return Err(expired());
        }
        Ok((version, Key(u8::try_from(last).unwrap_or_default())))
    }

    fn watch(&mut self, now: Time, link: &mut Link, request: &WatchRequest) -> Result<(), Head> {
        let From::Version(start) = from(&request.resource_version)? else {
            self.initial_events(now, link, request, 0);
            return Ok(());
        };
        if start < self.compacted || start > self.version && self.setup.opaque {
            return Err(expired());
        }
        link.watch = Some(open(now, start, request));
        self.send_since(link, start);
        Ok(())
    }

    fn stream(
        &mut self,
        now: Time,
        link: &mut Link,
        request: &WatchRequest,
        stale: u64,
        never_ends: bool,
    ) -> Result<(), Head> {
        if self.setup.ignores_initial_events {
            return self.watch(now, link, request);
        }
        if !self.setup.streams_lists {
            return Err(refused(422, 0));
        }
        let asked = match from(&request.resource_version)? {
            From::Version(asked) => asked,
            From::Now | From::Any => 0,
        };
        if asked > self.version && self.setup.opaque {
            return Err(expired());
        }
        if asked > self.version {
            return Err(too_large(self.setup.too_large_form));
        }
        // A consistent read is never stale.
        let stale = if asked > 0 { stale } else { 0 };
        self.initial_events(now, link, request, stale);
        let version = self.version.saturating_sub(stale).max(self.oldest());
        if !never_ends {
            if self.setup.late_end && stale == 0 {
                if let Some(watch) = &mut link.watch {
                    watch.initial_end_at = Some(now + LATE_END);
                }
            } else {
                link.push(&render::bookmark(version, true));
            }
        }
        self.send_since(link, version);
        Ok(())
    }

    /// Sends the objects, of now or of some versions ago, as ADDED events.
    fn initial_events(&mut self, now: Time, link: &mut Link, request: &WatchRequest, stale: u64) {
        let (epoch, version) = (self.truth.epoch(), self.version.saturating_sub(stale).max(self.oldest()));
        link.watch = Some(open(now, 0, request));
        for key in Key::all() {
            if let Some(state) = self.truth.at(epoch, key, version) {
                // The initial events are not in the order of their versions.
                if let Some(watch) = &mut link.watch {
                    watch.sent = 0;
                }
                let record = Record { key, state, change: Change::Added };
                send(link, &record, &mut self.spoil);
            }
        }
        if let Some(watch) = &mut link.watch {
            watch.sent = version;
        }
        // A version of an object that is newer than the list ends its doubt.
        for (_, doubt) in &mut link.doubts {
            *doubt = Doubt { until: version, is_held: false, ..*doubt };
        }
    }

    fn send_since(&mut self, link: &mut Link, version: u64) {
        for record in self.truth.since(version) {
            send(link, &record, &mut self.spoil);
        }
    }
}

fn open(now: Time, sent: u64, request: &WatchRequest) -> Watch {
    Watch {
        sent,
        bookmark_at: now + BOOKMARKS_EVERY,
        ends_at: now + Duration::from_secs(request.timeout_seconds),
        initial_end_at: None,
        last_line: String::new(),
        is_list: request.initial_events,
    }
}

fn from(version: &ResourceVersion) -> Result<From, Head> {
    if version.is_unset() {
        return Ok(From::Now);
    }
    match render::parsed(&version.to_string()) {
        Some(0) => Ok(From::Any),
        Some(version) => Ok(From::Version(version)),
        None => Err(refused(400, 0)),
    }
}

fn refused(code: u16, retry_after: u8) -> Head {
    let reason = match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        _ => "Timeout",
    };
    let asked = (retry_after > 0).then_some(u64::from(retry_after));
    // In the header, or in the body.
    let (header, details) = match asked {
        Some(seconds) if seconds % 2 == 0 => (None, format!(r#""retryAfterSeconds":{seconds}"#)),
        asked => (asked, String::new()),
    };
    Head::Refused { code, retry_after: header, body: render::status(code, reason, "no", &details) }
}

fn denied(denial: Denial) -> Head {
    match denial {
        Denial::Unauthorized => refused(401, 0),
        Denial::Forbidden => refused(403, 0),
        Denial::NotFound => refused(404, 0),
        Denial::Unavailable => refused(503, 0),
        Denial::Down => Head::Unreachable,
    }
}

fn expired() -> Head {
    Head::Refused { code: 410, retry_after: None, body: render::expired() }
}

fn too_large(form: u8) -> Head {
    Head::Refused { code: 504, retry_after: None, body: render::too_large(form) }
}
