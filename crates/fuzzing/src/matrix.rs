//! The attack's matrix: shapes of values, in encodings, at places. No recognised value is visible, and no other text hidden.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD as BASE64, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use kubediff::{Gvk, Secrets};
use serde_json::{Value, json};

use crate::{Choices, seeds};

/// Its name, and how it writes a value.
pub type Encoding = (&'static str, fn(&str) -> String);
/// Its name, and an object with a text at it.
pub type Place = (&'static str, fn(&str) -> Value);

/// Its name, a text that is planted in other objects, and what a Secret has.
pub type Shape = (&'static str, &'static str, fn(&str) -> String);

/// The content of a Secret, and the part of it that is planted elsewhere.
pub fn shapes() -> Vec<Shape> {
    vec![
        ("a password", "Vq7#mZx2kLw!", str::to_owned),
        ("8 bytes", "kz4wq8xj", str::to_owned),
        ("hex", "9f86d081884c7d65", str::to_owned),
        ("long hex", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", str::to_owned),
        ("a UUID", "7d9f3c1e-52b8-4a06-9e41-c0d7b85fa213", str::to_owned),
        ("base64", "q83vEjRWeJq83vEjRWeJkw7Qx1Zp", str::to_owned),
        ("base64 for URLs", "Zx-9_qLw7K2mVb-R_t5YhN8s", str::to_owned),
        ("a JWT", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJqcXh6In0.Qx7zVb9kLm2wRt5YhN8sPq", str::to_owned),
        ("an access key", "AKIAQ7ZX3VWK9JY2MLPT", str::to_owned),
        ("a secret key", "wJq7/XzVtn+FEMIK7MDENG/bPxRfiCYzQXZW9KEY", str::to_owned),
        ("a token", "ghp_x7QzV9kLm2wRt5YhN8sPqJ4bC6dF1gH3jK0l", str::to_owned),
        (
            "an armoured key",
            "-----BEGIN PRIVATE KEY-----\nMIIEvQx7zVb9kLm2\nwRt5YhN8sPqJ4bC6\n-----END PRIVATE KEY-----",
            str::to_owned,
        ),
        ("other letters", "пароль漢7字ß-schlüssel", str::to_owned),
        ("a space and quotes", "x7 \"qz\" \\ 9'vk", str::to_owned),
        ("signs of URLs", "a%b+c&d=e/7?zq", str::to_owned),
        ("in a connection string", "Cn7_qZx4vkW", |it| {
            format!("postgres://app:{it}@db:5432/shop?sslmode=disable")
        }),
        ("in JSON", "Jn8-qVx2zkR", |it| json!({"db": {"password": it}}).to_string()),
        ("in YAML", "Ym3_zQx9vkT", |it| format!("db:\n  password: {it}\n")),
        ("in properties", "Pp5-xZq7vkM", |it| format!("db.user=app\ndb.password={it}\n")),
        ("in docker's configuration", "Dk7-xQz_pull9", |it| {
            json!({"auths": {"r.example.com": {"username": "ci", "password": it}}}).to_string()
        }),
        ("in base64", "Bb6_zVx8qkN", |it| BASE64.encode(it)),
    ]
}

fn percent(text: &str, lower: bool) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        byte if lower => format!("%{byte:02x}"),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

fn html(text: &str) -> String {
    let all = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;"), ("'", "&#39;")];
    all.iter().fold(text.to_owned(), |text, (plain, escaped)| text.replace(plain, escaped))
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn folded(text: &str, end: &str) -> String {
    let lines: Vec<String> =
        text.as_bytes().chunks(10).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    lines.join(end)
}

/// How a value may be written. Without `*`, the form is one that SECURITY.md calls recognised.
pub fn encodings() -> Vec<Encoding> {
    vec![
        ("plain", str::to_owned),
        ("in quotes", |it| format!("'{it}'")),
        ("with spaces around", |it| format!("  {it} \n")),
        ("after a name", |it| format!("PASSWORD={it}")),
        ("in a sentence", |it| format!("the login with {it} failed")),
        ("in a header", |it| format!("Authorization: Bearer {it}")),
        ("in a URL's user", |it| format!("https://app:{}@host/", percent(it, false))),
        ("in a query", |it| format!("https://host/?token={}&x=1", percent(it, false))),
        ("base64", |it| BASE64.encode(it)),
        ("base64 without padding", |it| STANDARD_NO_PAD.encode(it)),
        ("base64 for URLs", |it| URL_SAFE_NO_PAD.encode(it)),
        ("base64, one byte before", |it| BASE64.encode(format!("u{it}"))),
        ("base64, two bytes before", |it| BASE64.encode(format!("u:{it}\n"))),
        ("base64 in base64", |it| BASE64.encode(BASE64.encode(it))),
        ("base64 in lines", |it| folded(&BASE64.encode(it), "\n")),
        ("base64 in lines with returns", |it| folded(&BASE64.encode(it), "\r\n")),
        ("base64 of JSON", |it| BASE64.encode(json!({"password": it}).to_string())),
        ("URL", |it| percent(it, false)),
        ("URL, lower case", |it| percent(it, true)),
        ("URL of all bytes", |it| it.bytes().map(|byte| format!("%{byte:02X}")).collect()),
        ("URL twice", |it| percent(&percent(it, false), false)),
        ("HTML", html),
        ("HTML twice", |it| html(&html(it))),
        ("HTML by number", |it| it.chars().map(|c| format!("&#{};", c as u32)).collect()),
        ("JSON", |it| json!({"a": it}).to_string()),
        ("JSON in JSON", |it| quoted(&quoted(it))),
        ("JSON three deep", |it| quoted(&quoted(&quoted(it)))),
        ("by \\u", |it| it.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()),
        ("a Secret's manifest", |it| {
            format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: x}}\nstringData:\n  k: {}\n", quoted(it))
        }),
        ("* hex", |it| it.bytes().map(|byte| format!("{byte:02x}")).collect()),
        ("* base64 three times", |it| BASE64.encode(BASE64.encode(BASE64.encode(it)))),
        ("* backwards", |it| it.chars().rev().collect()),
    ]
}

/// Where a text may be.
pub fn places() -> Vec<Place> {
    vec![
        ("data", |it| json!({"kind": "ConfigMap", "data": {"k": it}})),
        ("a key", |it| json!({"kind": "ConfigMap", "data": {it: "v"}})),
        ("a label", |it| json!({"kind": "ConfigMap", "metadata": {"labels": {"l": it}}})),
        ("an annotation", |it| json!({"kind": "ConfigMap", "metadata": {"annotations": {"a": it}}})),
        ("last applied", |it| {
            let applied = json!({"kind": "ConfigMap", "data": {"k": it}}).to_string();
            json!({"kind": "ConfigMap", "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied}}})
        }),
        (
            "env",
            |it| json!({"kind": "Pod", "spec": {"containers": [{"name": "a", "env": [{"name": "E", "value": it}]}]}}),
        ),
        ("args", |it| json!({"kind": "Pod", "spec": {"containers": [{"name": "a", "args": ["--x", it]}]}})),
        (
            "a probe",
            |it| json!({"kind": "Pod", "spec": {"containers": [{"name": "a", "livenessProbe": {"exec": {"command": ["sh", "-c", it]}}}]}}),
        ),
        ("an event", |it| json!({"kind": "Event", "message": it})),
        (
            "a condition",
            |it| json!({"kind": "Pod", "status": {"conditions": [{"type": "Ready", "message": it}]}}),
        ),
        (
            "a custom resource",
            |it| json!({"apiVersion": "example.com/v1", "kind": "Gate", "spec": {"a": {"b": [{"c": it}]}}}),
        ),
        (
            "a document",
            |it| json!({"kind": "ConfigMap", "data": {"a.yaml": format!("x:\n  y: {}\n", quoted(it))}}),
        ),
    ]
}

/// A Secret with this value, and the object of a place with the text: what is shown of the object.
pub fn shown(value: &str, text: &str, (_, make): &Place) -> String {
    let secrets = Secrets::with_key([7; 32]);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"k": BASE64.encode(value)},
        "metadata": {"name": "s", "namespace": "shop", "uid": "s", "resourceVersion": "1"}});
    secrets.learn(&Gvk::new("v1", "Secret"), &secret);
    let mut object = make(text);
    for (name, value) in [("name", "x"), ("namespace", "shop"), ("uid", "1")] {
        object["metadata"][name] = value.into();
    }
    let version = object["apiVersion"].as_str().unwrap_or("v1").to_owned();
    let gvk = Gvk::new(&version, object["kind"].as_str().unwrap_or_default());
    secrets.redact(&gvk, object).to_string()
}

/// Whether a text is visible in what is shown.
pub fn is_visible(text: &str, shown: &str) -> bool {
    shown.contains(quoted(text).trim_matches('"')) || !shown.contains("<hmac:")
}

/// The bytes are decisions on the value and on what becomes of it.
pub fn run(input: &[u8]) {
    let mut choices = Choices::new(input);
    let (shapes, encodings, places) = (shapes(), encodings(), places());
    let Some((name, planted, whole)) = choices.pick(&shapes) else { return };
    let planted: String = planted.chars().map(|it| another(it, &mut choices)).collect();
    let value = whole(&planted);
    let (Some((encoding, encode)), Some(place)) = (choices.pick(&encodings), choices.pick(&places)) else {
        return;
    };
    // Escapes of two kinds at once are not recognised (SECURITY.md).
    let is_escaped = ["HTML", "HTML twice", "JSON three deep"].contains(encoding)
        && ["last applied", "a document"].contains(&place.0)
        && planted.contains(['"', '\\', '\n', '&', '<', '>', '\'']);
    let is_secret = places.first().is_some_and(|data| !is_visible(&planted, &shown(&value, &planted, data)));
    if encoding.starts_with('*') || is_escaped || !is_secret {
        return;
    }
    let text = encode(&planted);
    let shown = shown(&value, &text, place);
    assert!(!is_visible(&text, &shown), "{name} ({planted:?}), {encoding}, in {}: {shown}", place.0);
}

/// A character of the same class.
fn another(it: char, choices: &mut Choices<'_>) -> char {
    let classes = ["abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"];
    let class = classes.iter().find(|class| class.contains(it));
    class.and_then(|class| class.chars().nth(choices.below(class.len()))).unwrap_or(it)
}

/// Decisions.
pub fn example(seed: u64) -> Vec<u8> {
    seeds::bytes(seed, 200)
}
