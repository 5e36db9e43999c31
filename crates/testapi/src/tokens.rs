//! Authentication: bearer tokens and their users.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderMap, header};
use parking_lot::RwLock;

/// The user of a request without credentials.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

/// The tokens that a server accepts. A server without tokens is open: it accepts every request, with any token or none.
/// A clone is a handle to the same tokens.
#[derive(Debug, Clone)]
pub struct Tokens(Arc<Inner>);

struct Inner {
    /// Users by token; `None` for an open server.
    users: Option<RwLock<BTreeMap<String, String>>>,
    anonymous: bool,
}

impl Tokens {
    /// With `anonymous`, requests without a token are accepted too. Wrong tokens never are.
    pub(crate) fn new(users: BTreeMap<String, String>, anonymous: bool) -> Self {
        let users = (!users.is_empty()).then(|| RwLock::new(users));
        Self(Arc::new(Inner { users, anonymous }))
    }

    /// Accepts a token from now on. Changes nothing on an open server.
    pub fn add(&self, token: &str, user: &str) {
        if let Some(users) = &self.0.users {
            users.write().insert(token.to_owned(), user.to_owned());
        }
    }

    /// Refuses a token from now on (401), as if it had expired. Running watches go on, as with the real server. Changes
    /// nothing on an open server.
    pub fn expire(&self, token: &str) {
        if let Some(users) = &self.0.users {
            users.write().remove(token);
        }
    }

    /// Accepts a new token in the place of another, for the same user; `false` if the old one is unknown.
    pub fn rotate(&self, old: &str, new: &str) -> bool {
        let Some(users) = &self.0.users else { return false };
        let mut users = users.write();
        match users.remove(old) {
            Some(user) => users.insert(new.to_owned(), user).is_none(),
            None => false,
        }
    }

    /// A token of a user, if one is accepted.
    pub fn of(&self, user: &str) -> Option<String> {
        let users = self.0.users.as_ref()?.read();
        users.iter().find(|(_, of)| *of == user).map(|(token, _)| token.clone())
    }

    /// The user of a request; `None` if the token is unknown.
    pub(crate) fn user(&self, headers: &HeaderMap) -> Option<String> {
        let Some(users) = &self.0.users else { return Some(ANONYMOUS.to_owned()) };
        let Some(credentials) = headers.get(header::AUTHORIZATION) else {
            return self.0.anonymous.then(|| ANONYMOUS.to_owned());
        };
        let (scheme, token) = credentials.to_str().ok()?.split_once(' ')?;
        let users = users.read();
        scheme.eq_ignore_ascii_case("bearer").then(|| users.get(token.trim()).cloned())?
    }
}

/// Without the tokens.
impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("open", &self.users.is_none()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(tokens: &Tokens, credentials: Option<&str>) -> Option<String> {
        let mut headers = HeaderMap::new();
        if let Some(credentials) = credentials {
            headers.insert(header::AUTHORIZATION, credentials.parse().unwrap());
        }
        tokens.user(&headers)
    }

    fn jane(anonymous: bool) -> Tokens {
        Tokens::new(BTreeMap::from([("secret".to_owned(), "jane".to_owned())]), anonymous)
    }

    #[test]
    fn an_open_server_takes_everybody() {
        let open = Tokens::new(BTreeMap::new(), false);
        assert_eq!(user(&open, None).as_deref(), Some(ANONYMOUS));
        assert_eq!(user(&open, Some("Bearer x")).as_deref(), Some(ANONYMOUS));
    }

    #[test]
    fn a_wrong_token_is_refused_even_where_none_is_needed() {
        for anonymous in [false, true] {
            let tokens = jane(anonymous);
            assert_eq!(user(&tokens, Some("Bearer secret")).as_deref(), Some("jane"));
            assert_eq!(user(&tokens, Some("bearer secret")).as_deref(), Some("jane"));
            assert_eq!(user(&tokens, Some("Bearer wrong")), None);
            assert_eq!(user(&tokens, Some("Basic secret")), None);
            assert_eq!(user(&tokens, Some("secret")), None);
            assert_eq!(user(&tokens, None).as_deref(), anonymous.then_some(ANONYMOUS));
        }
    }

    #[test]
    fn a_rotated_token_is_its_users_and_the_old_one_nobodys() {
        let tokens = jane(false);
        assert!(tokens.rotate("secret", "new"));
        assert!(!tokens.rotate("secret", "newer"));
        assert_eq!(user(&tokens, Some("Bearer secret")), None);
        assert_eq!(user(&tokens, Some("Bearer new")).as_deref(), Some("jane"));
        assert_eq!(tokens.of("jane").as_deref(), Some("new"));
        tokens.expire("new");
        assert_eq!(user(&tokens, Some("Bearer new")), None);
        assert!(!format!("{:?}", jane(true)).contains("secret"));
    }
}
