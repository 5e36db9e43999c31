//! The users of a listener: each has a token of the cluster, by which the API server knows them (a TokenReview of authentication.k8s.io/v1), or
//! a cookie that they got for one.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderMap;
use kube_client::Client;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use super::door::{cookies, hash, token};
use super::problem::Problem;
use super::review::review;

/// How long the answer to a token holds.
const TOKEN: Duration = Duration::from_secs(60);
/// How long a session lasts.
const SESSION: Duration = Duration::from_secs(8 * 60 * 60);
/// Tokens, sessions and users that are remembered.
const MOST: usize = 1_000;
/// Sessions of one user. A further one ends the oldest.
const SESSIONS: usize = 10;
/// Requests and streams of one user at once.
const REQUESTS: usize = 10;
const STREAMS: usize = 4;
/// Tokens that are reviewed at once.
const REVIEWS: usize = 20;

/// A user by all that the API server says of them.
pub(super) type UserKey = [u8; 32];

/// A user of the cluster.
pub(super) struct User {
    pub(super) key: UserKey,
    pub(super) name: Arc<str>,
    /// The user as the `spec` of a SubjectAccessReview has them.
    pub(super) subject: Value,
    pub(super) requests: Arc<Semaphore>,
    pub(super) streams: Arc<Semaphore>,
}

/// The reason why a user is in.
#[derive(Clone)]
pub(super) enum Pass {
    /// A session, by the hash of its cookie.
    Session(UserKey),
    /// A token, which is kept as long as a request or stream lasts.
    Token(Arc<str>),
}

/// The requests and streams that one user may have at once.
#[derive(Clone)]
struct Limits {
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { requests: Arc::new(Semaphore::new(REQUESTS)), streams: Arc::new(Semaphore::new(STREAMS)) }
    }
}

/// The sessions of a daemon, which last longer than one configuration.
#[derive(Clone, Default)]
pub(crate) struct Guests(Arc<Mutex<State>>);

/// The users that are in.
pub(super) struct Sessions {
    client: Client,
    /// The name of the cookie.
    cookie: &'static str,
    attributes: &'static str,
    room: Semaphore,
    guests: Guests,
}

#[derive(Default)]
struct State {
    tokens: HashMap<UserKey, (Option<Arc<User>>, Instant)>,
    /// By the hash of the cookie, the oldest first.
    sessions: VecDeque<(UserKey, Arc<User>, Instant)>,
    /// By the name of the user: all tokens of a user share them.
    limits: HashMap<String, Limits>,
}

impl Sessions {
    /// Without TLS a browser would not send a cookie that asks for it.
    pub(super) fn new(client: Client, is_encrypted: bool, guests: Guests) -> Self {
        let (cookie, attributes) = match is_encrypted {
            true => ("__Host-kubediff", "; Path=/; Secure; HttpOnly; SameSite=Strict"),
            false => ("kubediff", "; Path=/; HttpOnly; SameSite=Strict"),
        };
        Self { client, cookie, attributes, room: Semaphore::new(REVIEWS), guests }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.guests.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The user of a token; `None` for a token that the API server does not know.
    pub(super) async fn of_token(&self, token: &str) -> Result<Option<Arc<User>>, Problem> {
        let key = hash(token);
        if let Some((user, at)) = self.lock().tokens.get(&key)
            && at.elapsed() < TOKEN
        {
            return Ok(user.clone());
        }
        // The semaphore is never closed.
        let _room = self.room.acquire().await.ok();
        let status =
            review(&self.client, "authentication.k8s.io", "TokenReview", &json!({ "token": token })).await?;
        let mut state = self.lock();
        let user = (status["authenticated"] == true).then(|| state.user(&status["user"]));
        if state.tokens.len() >= MOST {
            state.tokens.retain(|_, (_, at)| at.elapsed() < TOKEN);
        }
        if state.tokens.len() < MOST {
            state.tokens.insert(key, (user.clone(), Instant::now()));
        }
        Ok(user)
    }

    /// The cookie of a new session. The token is not kept.
    pub(super) fn enter(&self, user: Arc<User>) -> Result<String, getrandom::Error> {
        let cookie = token()?;
        self.lock().enter(hash(&cookie), user);
        Ok(format!("{}={cookie}{}; Max-Age={}", self.cookie, self.attributes, SESSION.as_secs()))
    }

    /// The user of a request with a cookie, and their session.
    pub(super) fn of_cookie(&self, headers: &HeaderMap) -> Option<(Arc<User>, Pass)> {
        cookies(headers, self.cookie).find_map(|cookie| {
            let sent = hash(cookie);
            Some((self.lock().of_session(sent)?, Pass::Session(sent)))
        })
    }

    /// Whether a user may still be in: their session has not ended, or the API server knows their token.
    pub(super) async fn is_in(&self, pass: &Pass) -> Result<bool, Problem> {
        match pass {
            Pass::Session(session) => Ok(self.lock().of_session(*session).is_some()),
            Pass::Token(token) => Ok(self.of_token(token).await?.is_some()),
        }
    }

    /// Ends the session of a request.
    pub(super) fn leave(&self, headers: &HeaderMap) -> String {
        let mut state = self.lock();
        for cookie in cookies(headers, self.cookie) {
            let sent = hash(cookie);
            state.sessions.retain(|(known, ..)| *known != sent);
        }
        format!("{}={}; Max-Age=0", self.cookie, self.attributes)
    }
}

impl State {
    fn of_session(&mut self, cookie: UserKey) -> Option<Arc<User>> {
        self.sessions.retain(|(.., at)| at.elapsed() < SESSION);
        self.sessions.iter().find(|(known, ..)| *known == cookie).map(|(_, user, _)| user.clone())
    }

    fn enter(&mut self, cookie: UserKey, user: Arc<User>) {
        let is_own = |(_, other, _): &(UserKey, Arc<User>, Instant)| other.name == user.name;
        if self.sessions.iter().filter(|it| is_own(it)).count() >= SESSIONS
            && let Some(oldest) = self.sessions.iter().position(is_own)
        {
            self.sessions.remove(oldest);
        }
        self.sessions.push_back((cookie, user, Instant::now()));
        if self.sessions.len() > MOST {
            self.sessions.pop_front();
        }
    }

    /// The user that the API server describes. Each token of a service account has an identity of its own among the details.
    fn user(&mut self, info: &Value) -> Arc<User> {
        let subject = json!({
            "user": info["username"], "uid": info["uid"], "groups": info["groups"], "extra": info["extra"],
        });
        let key = Sha256::digest(subject.to_string()).into();
        let name = info["username"].as_str().unwrap_or_default();
        if self.limits.len() >= MOST {
            self.limits.retain(|_, limits| Arc::strong_count(&limits.requests) > 1);
        }
        let Limits { requests, streams } = self.limits.entry(name.to_owned()).or_default().clone();
        Arc::new(User { key, name: name.into(), subject, requests, streams })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tokens_of_a_user_share_limits_and_no_two_users_do() {
        let mut state = State::default();
        let info =
            |name: &str, token: &str| json!({ "username": name, "extra": { "credential-id": [token] } });
        let (one, other) = (state.user(&info("jane", "1")), state.user(&info("jane", "2")));
        assert!(Arc::ptr_eq(&one.requests, &other.requests) && Arc::ptr_eq(&one.streams, &other.streams));
        assert_ne!(one.key, other.key, "rights may depend on the token");
        let stranger = state.user(&info("joe", "1"));
        assert!(!Arc::ptr_eq(&one.requests, &stranger.requests));
        // Many sessions of one user end none of another.
        state.enter([200; 32], stranger);
        for number in 0..50 {
            state.enter([number; 32], if number % 2 == 0 { one.clone() } else { other.clone() });
        }
        assert_eq!(state.sessions.len(), SESSIONS + 1);
        assert!(state.of_session([200; 32]).is_some() && state.of_session([49; 32]).is_some());
        assert!(state.of_session([0; 32]).is_none());
    }
}
