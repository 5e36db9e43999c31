//! Addresses of screens: everything that a screen shows is in its address.

use kubediff_history::{Number, ObjectId};

/// The segment of an object without a namespace.
pub(crate) const NONE: &str = "-";

/// `/change/812`.
pub(super) fn change(number: Number) -> String {
    format!("/change/{number}")
}

/// `/story/812`.
pub(super) fn story(id: Number) -> String {
    format!("/story/{id}")
}

/// `/o/deployments.apps/shop/cart`.
pub(super) fn object(object: &ObjectId) -> String {
    named(&object.qualified_resource(), object.namespace.as_deref(), &object.name)
}

/// The same by names.
pub(super) fn named(resource: &str, namespace: Option<&str>, name: &str) -> String {
    format!("/o/{}/{}/{}", segment(resource), segment(namespace.unwrap_or(NONE)), segment(name))
}

/// A path with parameters; those without a value are left out.
pub(crate) fn with<'a>(path: &str, parameters: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let mut is_empty = true;
    for (name, value) in parameters.into_iter().filter(|(_, value)| !value.is_empty()) {
        query.append_pair(name, &value);
        is_empty = false;
    }
    if is_empty { path.to_owned() } else { format!("{path}?{}", query.finish()) }
}

/// A text as a segment of a path (RFC 3986, 3.3).
pub(crate) fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    // A browser would leave out a segment of points.
    if text == "." || text == ".." { out.replace('.', "%2E") } else { out }
}

/// The text of a segment.
pub(super) fn text(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let hex = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&hex).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_a_segment() {
        for written in ["cart", "system:node-proxier", "a/b", "ä %2F?#&\"<>", ".", "..", "", "a\nb"] {
            let segment = segment(written);
            assert_eq!(text(&segment).as_deref(), Some(written));
            assert!(
                segment.bytes().all(|byte| byte.is_ascii_graphic() && !b"/?#\"<>&".contains(&byte)),
                "{segment}"
            );
        }
        assert_eq!(text("%2"), None);
        assert_eq!(text("%zz"), None);
        assert_eq!(text("%ff"), None);
    }
}
