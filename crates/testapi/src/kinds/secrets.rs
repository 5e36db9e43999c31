//! Secrets: what is written as text is kept as base64.

use serde_json::{Value, json};

/// Moves `stringData` into `data`.
pub(super) fn encode(secret: &mut Value) {
    let Some(text) = secret.as_object_mut().and_then(|members| members.remove("stringData")) else { return };
    for (name, value) in text.as_object().into_iter().flatten() {
        if !secret["data"].is_object() {
            secret["data"] = json!({});
        }
        secret["data"][name] = base64(value.as_str().unwrap_or_default().as_bytes()).into();
    }
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at)) as usize & 63];
            out.push(if at <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn text_becomes_base64() {
        let encoded = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(encoded, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }
}
