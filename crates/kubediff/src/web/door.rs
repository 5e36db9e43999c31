//! The door of the page: somebody enters with a link that works once, and stays with a cookie.
//!
//! The port is open to every program and every user of this machine, and pages of other sites can send a browser to it. So a request needs
//! the cookie, and the `Host` of the page: another name would be one that an attacker lets point here (DNS rebinding). A browser sends a cookie to all
//! ports of an address, so that a page without a chosen port has an address of its own where the system has many (Linux).

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::{HeaderMap, Request, header};
use sha2::{Digest as _, Sha256};

use crate::text::terminal::say;

/// Browsers that are in at once. Beyond it, the one that entered first is out.
const MOST: usize = 64;
/// A new link is printed so long after the last one at the earliest.
const PAUSE: Duration = Duration::from_secs(10);

type Hash = [u8; 32];

/// The door of a page at this address.
pub(super) struct Door {
    address: SocketAddr,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The token of the link that nobody has used.
    link: Option<String>,
    printed: Option<Instant>,
    /// The hashes of the cookies.
    inside: VecDeque<Hash>,
}

/// The decision about a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It is answered.
    Inside,
    /// Its sender enters, with this cookie.
    Enters(String),
    /// It has no cookie of this door.
    Outside,
    /// It is for another host.
    Elsewhere,
}

impl Door {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self { address, state: Mutex::default() }
    }

    /// A link that works once: the former one as long as nobody has used it.
    pub(super) fn link(&self) -> Result<String, getrandom::Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.printed = Some(Instant::now());
        let token = match state.link.take() {
            Some(token) => token,
            None => token()?,
        };
        let link = format!("http://{}/enter/{token}", self.address);
        state.link = Some(token);
        Ok(link)
    }

    /// Prints a new link for somebody who came without one.
    pub(super) fn invite(&self) {
        let printed = self.state.lock().unwrap_or_else(PoisonError::into_inner).printed;
        if printed.is_none_or(|printed| printed.elapsed() >= PAUSE)
            && let Ok(link) = self.link()
        {
            say(&format!("a browser came without a link; if it is yours, open {link}"));
        }
    }

    /// Whether a request is answered.
    pub(super) fn admit<B>(&self, request: &Request<B>) -> Admission {
        let host = request.uri().authority().map(http::uri::Authority::as_str);
        let named = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let is_here = |host: &str| {
            let names = [self.address.ip().to_string(), "localhost".to_owned()];
            names.iter().any(|name| host == format!("{name}:{}", self.address.port()))
        };
        if !host.or(named).is_some_and(is_here) {
            return Admission::Elsewhere;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = request.uri().path().strip_prefix("/enter/") {
            // Hashes are compared, so that the time says nothing of the token.
            let Ok(cookie) = self::token() else { return Admission::Outside };
            if state.link.take_if(|link| hash(link) == hash(token)).is_none() {
                return Admission::Outside;
            }
            state.inside.push_back(hash(&cookie));
            if state.inside.len() > MOST {
                state.inside.pop_front();
            }
            let name = self.name();
            return Admission::Enters(format!("{name}={cookie}; Path=/; HttpOnly; SameSite=Strict"));
        }
        let is_inside =
            cookies(request.headers(), &self.name()).any(|cookie| state.inside.contains(&hash(cookie)));
        if is_inside { Admission::Inside } else { Admission::Outside }
    }

    /// Cookies know no ports: the name has it.
    fn name(&self) -> String {
        format!("kubediff-{}", self.address.port())
    }
}

/// The values of a cookie.
pub(super) fn cookies<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    let all = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(';')).filter_map(move |pair| {
        let (known, value) = pair.trim().split_once('=')?;
        (known == name).then_some(value)
    })
}

/// 256 random bits.
pub(super) fn token() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

pub(super) fn hash(token: &str) -> Hash {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str, host: &str, cookie: Option<&str>) -> Request<()> {
        let mut request = Request::get(path).header(header::HOST, host);
        if let Some(cookie) = cookie {
            request = request.header(header::COOKIE, cookie);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn a_link_works_once_and_the_cookie_stays() {
        let door = Door::new(([127, 0, 0, 1], 4711).into());
        let here = "127.0.0.1:4711";
        let link = door.link().unwrap();
        let path = link.strip_prefix("http://127.0.0.1:4711").unwrap();
        assert_eq!(door.admit(&request("/", here, None)), Admission::Outside);
        let Admission::Enters(cookie) = door.admit(&request(path, here, None)) else { panic!("{link}") };
        assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
        assert_eq!(door.admit(&request(path, here, None)), Admission::Outside);
        let cookie = cookie.split(';').next().unwrap();
        let sent = format!("other=1; {cookie}");
        for host in [here, "localhost:4711"] {
            assert_eq!(door.admit(&request("/", host, Some(&sent))), Admission::Inside, "{host}");
        }
        for host in [
            "evil.example:4711",
            "127.0.0.1",
            "127.0.0.1:4712",
            "127.0.0.2:4711",
            "127.0.0.1:4711.evil.example",
            "",
        ] {
            assert_eq!(door.admit(&request("/", host, Some(&sent))), Admission::Elsewhere, "{host}");
        }
        for wrong in ["kubediff-4711=", "kubediff-4711=x", "kubediff-4712=x"] {
            assert_eq!(door.admit(&request("/", here, Some(wrong))), Admission::Outside, "{wrong}");
        }
        // A link that nobody has used stays: whoever asks without one makes none on the screen stale.
        let (first, second) = (door.link().unwrap(), door.link().unwrap());
        assert_eq!(first, second);
        let path = first.strip_prefix("http://127.0.0.1:4711").unwrap();
        assert!(matches!(door.admit(&request(path, here, None)), Admission::Enters(_)));
        assert_ne!(door.link().unwrap(), first);
    }
}
