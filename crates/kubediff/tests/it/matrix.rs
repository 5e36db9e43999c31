//! The attack's matrix (issue 19): shapes of values, in encodings, at places. Its table is what SECURITY.md says.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD as BASE64, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use expect_test::expect;
use kubediff::{Gvk, Profile};
use serde_json::{Value, json};

use crate::support::profile;

/// Its name, and how it writes a value.
type Encoding = (&'static str, fn(&str) -> String);
/// Its name, and an object with a text at it.
type Place = (&'static str, fn(&str) -> Value);

/// What is in a Secret, and which part of it is planted elsewhere.
fn shapes() -> Vec<(&'static str, String, &'static str)> {
    let whole = |name, value: &'static str| (name, value.to_owned(), value);
    let docker =
        json!({"auths": {"r.example.com": {"username": "ci", "password": "Dk7-xQz_pull9"}}}).to_string();
    vec![
        whole("a password", "Vq7#mZx2kLw!"),
        whole("8 bytes", "kz4wq8xj"),
        whole("hex", "9f86d081884c7d65"),
        whole("long hex", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        whole("a UUID", "7d9f3c1e-52b8-4a06-9e41-c0d7b85fa213"),
        whole("base64", "q83vEjRWeJq83vEjRWeJkw7Qx1Zp"),
        whole("base64 for URLs", "Zx-9_qLw7K2mVb-R_t5YhN8s"),
        whole("a JWT", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJqcXh6In0.Qx7zVb9kLm2wRt5YhN8sPq"),
        whole("an access key", "AKIAQ7ZX3VWK9JY2MLPT"),
        whole("a secret key", "wJq7/XzVtn+FEMIK7MDENG/bPxRfiCYzQXZW9KEY"),
        whole("a token", "ghp_x7QzV9kLm2wRt5YhN8sPqJ4bC6dF1gH3jK0l"),
        whole(
            "an armoured key",
            "-----BEGIN PRIVATE KEY-----\nMIIEvQx7zVb9kLm2\nwRt5YhN8sPqJ4bC6\n-----END PRIVATE KEY-----",
        ),
        whole("other letters", "пароль漢7字ß-schlüssel"),
        whole("a space and quotes", "x7 \"qz\" \\ 9'vk"),
        whole("signs of URLs", "a%b+c&d=e/7?zq"),
        (
            "in a connection string",
            "postgres://app:Cn7_qZx4vkW@db:5432/shop?sslmode=disable".to_owned(),
            "Cn7_qZx4vkW",
        ),
        ("in JSON", json!({"db": {"password": "Jn8-qVx2zkR"}}).to_string(), "Jn8-qVx2zkR"),
        ("in YAML", "db:\n  password: Ym3_zQx9vkT\n".to_owned(), "Ym3_zQx9vkT"),
        ("in properties", "db.user=app\ndb.password=Pp5-xZq7vkM\n".to_owned(), "Pp5-xZq7vkM"),
        ("in docker's configuration", docker, "Dk7-xQz_pull9"),
        ("in base64", BASE64.encode("Bb6_zVx8qkN"), "Bb6_zVx8qkN"),
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
fn encodings() -> Vec<Encoding> {
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

fn places() -> Vec<Place> {
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

#[test]
fn k3_no_recognised_value_is_visible_in_any_encoding_at_any_place() {
    let (mut visible, mut tried) = (BTreeMap::<&str, Vec<String>>::new(), 0);
    for (shape, value, planted) in shapes() {
        let profile: Profile = profile();
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"k": BASE64.encode(&value)},
            "metadata": {"name": "s", "namespace": "shop", "uid": "s", "resourceVersion": "1"}});
        profile.secrets.learn(&Gvk::new("v1", "Secret"), &secret);
        for (encoding, encode) in encodings() {
            let text = encode(planted);
            for (place, make) in places() {
                let mut object = make(&text);
                for (name, value) in [("name", "x"), ("namespace", "shop"), ("uid", "1")] {
                    object["metadata"][name] = value.into();
                }
                let version = object["apiVersion"].as_str().unwrap_or("v1").to_owned();
                let gvk = Gvk::new(&version, object["kind"].as_str().unwrap());
                tried += 1;
                let shown = profile.secrets.redact(&gvk, object).to_string();
                let is_there = shown.contains(quoted(&text).trim_matches('"'));
                if is_there || !shown.contains("<hmac:") {
                    visible.entry(encoding).or_default().push(format!("{shape} in {place}"));
                }
            }
        }
    }
    let mut table = String::new();
    for (encoding, cases) in &visible {
        let cases = if encoding.starts_with('*') { String::new() } else { format!(": {}", cases.join(", ")) };
        table += &format!("{encoding}{cases}\n");
    }
    expect![[r#"
        8064 tried
        * backwards
        * base64 three times
        * hex
        HTML: a space and quotes in last applied, a space and quotes in a document
        HTML twice: a space and quotes in last applied, a space and quotes in a document
        JSON three deep: an armoured key in last applied, an armoured key in a document, a space and quotes in last applied, a space and quotes in a document
    "#]].assert_eq(&format!("{tried} tried\n{table}"));
}
