//! Values of Secrets do not get out (issue 12, item 1): what a day with `kubediff watch` showed, and values planted at
//! random in objects of any kind.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD};
use expect_test::expect;
use fastrand::Rng;
use kubediff::render::{Renderer, json_line};
use kubediff::{Change, Gvk, Profile, Secrets, Tally};
use serde_json::{Value, json};

use crate::support::{change_with, plain, profile, renderer, seeded};
use crate::{random, support};

/// All that can be had of a change as text.
fn everything(change: &Change) -> String {
    let json = json_line(&change.with_objects()).unwrap();
    let patch = serde_json::to_string(&change.patch()).unwrap();
    let wide = Renderer { width: 100_000, max_lines: 1000, show_dropped: true, ..renderer() };
    let texts = [
        json,
        patch,
        wide.text(change),
        renderer().text(change),
        change.summary.clone(),
        format!("{change:?}\n{change:#?}"),
    ];
    texts.join("\n")
}

/// With the rules that are on by default, and with none.
fn shown(profile: &Profile, old: Option<&Value>, new: Option<&Value>) -> String {
    let mut noisy = profile.clone();
    noisy.noise.adjust("none").unwrap();
    let changes = [profile, &noisy].map(|profile| change_with(profile, old, new, &mut Tally::default()));
    changes.iter().flatten().map(everything).collect()
}

fn secret(password: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "leak", "namespace": "shop", "uid": "u", "resourceVersion": "1"},
        "data": {"pw": BASE64.encode(password)}})
}

fn with(mut object: Value, pointer: &str, value: impl Into<Value>) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let mut at = &mut object;
    for step in parent.split('/').skip(1) {
        at = &mut at[step];
    }
    at[name.replace("~1", "/")] = value.into();
    object
}

fn learnt(values: &[&str]) -> Profile {
    let profile = profile();
    for (at, value) in values.iter().enumerate() {
        let secret = with(secret(value), "/metadata/name", format!("s{at}"));
        profile.secrets.learn(&Gvk::new("v1", "Secret"), &secret);
    }
    profile
}

#[test]
fn an_annotation_that_mentions_the_old_password() {
    let old = with(
        secret("OldSecret1"),
        "/metadata/annotations",
        json!({"note": "was OldSecret1", "n": "OldSecret1\n"}),
    );
    let new = with(old.clone(), "/data/pw", BASE64.encode("NewSecret2"));
    let text = shown(&profile(), Some(&old), Some(&new));
    assert!(!text.contains("OldSecret1") && !text.contains("NewSecret2"), "{text}");
}

#[test]
fn a_label_that_repeats_the_password() {
    let old = secret("NewSecret2");
    let new = with(old.clone(), "/metadata/labels", json!({"pw": "NewSecret2"}));
    let text = shown(&profile(), Some(&old), Some(&new));
    assert!(!text.contains("NewSecret2"), "{text}");
    assert!(text.contains("metadata.labels"), "{text}");
}

#[test]
fn a_value_with_a_line_break_at_its_end() {
    let profile = learnt(&["OldSecret1\n"]);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "annotations": {
        "note": "the password is OldSecret1.", "twice": BASE64.encode(BASE64.encode("OldSecret1\n"))}}});
    let text =
        shown(&profile, None, Some(&map)) + &shown(&profile, Some(&json!({"kind": "ConfigMap"})), Some(&map));
    for form in ["OldSecret1", "T2xkU2VjcmV0MQ", "VDJ4a1UyVmpjbVYwTV"] {
        assert!(!text.contains(form), "{form} in {text}");
    }
}

#[test]
fn a_manifest_inside_of_a_custom_resource() {
    let object = |password: &str| {
        let manifest = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "inner", "labels": {"l": password}},
            "stringData": {"pw2": password}});
        json!({"apiVersion": "example.com/v1", "kind": "Vault", "metadata": {"name": "v", "uid": "1"},
        "spec": {"secretTemplate": manifest, "list": {"kind": "SecretList", "items": [{"data": {"k": BASE64.encode(password)}}]}},
        "data": {
            "all.yaml": format!("kind: ConfigMap\ndata:\n  a: b\n---\nkind: Secret\nstringData:\n  # {password}\n  pw3: {password}\n"),
            "template": format!("{{{{ if x }}}}\nkind: Secret\nstringData:\n  pw4: {password}\n"),
            "nested": json!({"applied": manifest.to_string()}).to_string(),
        }})
    };
    let (old, new) = (object("Em-RRRR"), object("Em-SSSS"));
    let text = shown(&profile(), Some(&old), Some(&new)) + &shown(&profile(), None, Some(&new));
    assert!(!text.contains("RRRR") && !text.contains("SSSS"), "{text}");
    let change = support::change(Some(&old), Some(&new)).unwrap();
    expect![[r#"
        14:03:22  ~ vaults.example.com v  (updated)
            ~ data["all.yaml"]#[1].stringData.pw3:
                - <hmac:72e2e2403f4e858f 7 bytes>
                + <hmac:a218055f7a68c1e6 7 bytes>
            ~ data.nested#applied#metadata.labels.l:
                - <hmac:72e2e2403f4e858f 7 bytes>
                + <hmac:a218055f7a68c1e6 7 bytes>
            ~ data.nested#applied#stringData.pw2:
                - <hmac:72e2e2403f4e858f 7 bytes>
                + <hmac:a218055f7a68c1e6 7 bytes>
            ~ data.template:             <hmac:780e4de47af7a35d 51 bytes> → <hmac:ea1a51146c01cab5 51 bytes>
            ~ spec.list.items[0].data.k: <hmac:72e2e2403f4e858f 7 bytes> → <hmac:a218055f7a68c1e6 7 bytes>
            ~ spec.secretTemplate.metadata.labels.l:
                - <hmac:72e2e2403f4e858f 7 bytes>
                + <hmac:a218055f7a68c1e6 7 bytes>
            ~ spec.secretTemplate.stringData.pw2:
                - <hmac:72e2e2403f4e858f 7 bytes>
                + <hmac:a218055f7a68c1e6 7 bytes>
    "#]]
    .assert_eq(&plain(&renderer().text(&change)));
}

#[test]
fn a_former_value_is_still_looked_for() {
    let profile = profile();
    let (old, new) = (secret("OldSecret1"), secret("NewSecret2"));
    assert!(change_with(&profile, Some(&old), Some(&new), &mut Tally::default()).is_some());
    assert!(change_with(&profile, Some(&new), None, &mut Tally::default()).is_some());
    let pod = |value: &str| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"env": format!("pw={value};")}});
    let text = shown(&profile, Some(&pod("OldSecret1")), Some(&pod("NewSecret2")));
    assert!(!text.contains("OldSecret1") && !text.contains("NewSecret2"), "{text}");
    assert!(text.contains("pw=<hmac:") && text.contains(" 10 bytes>;"), "{text}");
}

#[test]
fn one_value_has_one_hash_wherever_it_is() {
    let profile = learnt(&["correct horse"]);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {
        "plain": "url: pg://app:correct horse@db/", "once": format!("Basic {}", BASE64.encode("app:correct horse")),
        "twice": BASE64.encode(BASE64.encode("correct horse")), "url": "pw=correct%20horse&x", "form": "pw=correct+horse",
        "json": r#"{"pw": "correct\u0020horse"}"#, "folded": "correct\n  horse", "short": "correct",
    }});
    let change = change_with(&profile, None, Some(&map), &mut Tally::default()).unwrap();
    let data = serde_json::to_string_pretty(&change.new.as_ref().unwrap()["data"]).unwrap();
    expect![[r#"
        {
          "folded": "<hmac:48291698cad48f0d 13 bytes, escaped 09fec83a18793b6b>",
          "form": "pw=<hmac:48291698cad48f0d 13 bytes, escaped 9b23b285dafd8e37>",
          "json": "{\"pw\": \"<hmac:48291698cad48f0d 13 bytes, escaped ceaa4d4905f3a234>\"}",
          "once": "Basic YXBwO<hmac:48291698cad48f0d 13 bytes, base64 f8d58fd851518ee9>",
          "plain": "url: pg://app:<hmac:48291698cad48f0d 13 bytes>@db/",
          "short": "correct",
          "twice": "<hmac:48291698cad48f0d 13 bytes, base64 of base64 d3ef6b630c783afb>",
          "url": "pw=<hmac:48291698cad48f0d 13 bytes, escaped df7d6a70217ccda2>&x"
        }"#]]
    .assert_eq(&data);
}

#[test]
fn what_a_secret_shows() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true, "pin": 12345678, "data": {
            "k": "dmFsdWUtdmFsdWU=", "empty": "", "odd": 7, "not base64": "%"},
        "metadata": {"name": "s", "namespace": "n", "uid": "u", "resourceVersion": "17", "generation": 2,
            "creationTimestamp": "2026-02-26T10:00:00Z", "deletionTimestamp": "value-value", "finalizers": ["x.io/y"],
            "labels": {"app": "cart"}, "selfLink": "/x",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Vault", "name": "v", "uid": "u2", "controller": true, "more": "x"}],
            "managedFields": [{"manager": "helm", "operation": "Update", "time": "2026-02-26T10:00:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:data": {".": {}, "f:k": {}}, "f:metadata": {"f:finalizers": {"v:\"x.io/y\"": {}}}}}]}});
    let redacted = profile().secrets.redact(&Gvk::new("v1", "Secret"), secret);
    expect![[r#"
        {
          "apiVersion": "v1",
          "data": {
            "empty": "<hmac:d4eed5d71df45fb5 0 bytes>",
            "k": "<hmac:e4abce801fecc6fb 11 bytes>",
            "not base64": "<hmac:000f3c2a649ec19e 1 bytes>",
            "odd": "<hmac:332185d010b51ed5 1 bytes>"
          },
          "immutable": true,
          "kind": "Secret",
          "metadata": {
            "creationTimestamp": "2026-02-26T10:00:00Z",
            "deletionTimestamp": "<hmac:e4abce801fecc6fb 11 bytes>",
            "finalizers": [
              "<hmac:c626ea45960a36c9 6 bytes>"
            ],
            "generation": 2,
            "labels": {
              "app": "<hmac:7fbf6aa022f319c8 4 bytes>"
            },
            "managedFields": [
              {
                "fieldsType": "FieldsV1",
                "fieldsV1": {
                  "f:data": {
                    ".": {},
                    "f:k": {}
                  },
                  "f:metadata": {
                    "f:finalizers": {}
                  }
                },
                "manager": "helm",
                "operation": "Update",
                "time": "2026-02-26T10:00:00Z"
              }
            ],
            "name": "s",
            "namespace": "n",
            "ownerReferences": [
              {
                "apiVersion": "v1",
                "controller": true,
                "kind": "Vault",
                "more": "<hmac:855041ac38684d01 1 bytes>",
                "name": "v",
                "uid": "u2"
              }
            ],
            "resourceVersion": "17",
            "selfLink": "<hmac:4f102f6e3c43d135 2 bytes>",
            "uid": "u"
          },
          "pin": "<hmac:55c0ca61075d6f80 8 bytes>",
          "type": "Opaque"
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&redacted).unwrap());
}

#[test]
fn values_that_are_shown_of_the_secret_are_not_hidden_elsewhere() {
    let token = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "default-token", "namespace": "kube-system"},
        "data": {"namespace": BASE64.encode("kube-system"), "short": BASE64.encode("seven77")}});
    let profile = profile();
    profile.secrets.learn(&Gvk::new("v1", "Secret"), &token);
    let text = "in kube-system, seven77";
    assert_eq!(*profile.secrets.redact_text(text), text);
}

#[test]
fn a_megabyte_costs_what_eight_bytes_cost() {
    let mut rng = Rng::with_seed(1);
    let big: String = (0..1 << 20).map(|_| rng.alphanumeric()).collect();
    let profile = learnt(&[&big]);
    let text = profile.secrets.redact_text(&format!("<{big}> {}", BASE64.encode(&big)));
    assert!(text.len() < 120, "{} bytes", text.len());
    // A text without any is searched at memory's pace or so, whatever it is.
    let started = std::time::Instant::now();
    for nasty in
        [" ".repeat(1 << 20), "\\u005c".repeat(1 << 17), "%25".repeat(1 << 18), "\n ".repeat(1 << 19)]
    {
        assert_eq!(*profile.secrets.redact_text(&nasty), nasty);
    }
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

/// Forms in which a value must not be seen. Of base64 the part that the value alone determines.
fn forms(value: &str) -> Vec<String> {
    let aligned = |bytes: &[u8]| -> Vec<String> {
        (0..3)
            .map(|offset| {
                let padded = [&vec![b'x'; offset][..], bytes].concat();
                let text = BASE64.encode(&padded);
                text[(8 * offset).div_ceil(6)..8 * padded.len() / 6].to_owned()
            })
            .collect()
    };
    let once = aligned(value.as_bytes());
    let twice = once.iter().flat_map(|text| aligned(text.as_bytes()));
    let percent = value.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    [vec![value.to_owned(), percent], once.clone(), twice.collect()].concat()
}

/// How a value may be written into a text.
fn written(rng: &mut Rng, value: &str) -> String {
    let padding: String = (0..rng.usize(0..4)).map(|_| rng.alphabetic()).collect();
    match rng.u32(0..11) {
        0 => value.to_owned(),
        1 => value.trim().to_owned(),
        2 => format!("{padding}{value}{padding}"),
        3 => BASE64.encode(format!("{padding}{value}{padding}")),
        4 => URL_SAFE_NO_PAD.encode(format!("{padding}{value}")),
        5 => BASE64.encode(format!("{padding}{}", BASE64.encode(format!("{padding}{value}")))),
        6 => value.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        7 => {
            value
                .bytes()
                .map(|byte| {
                    if byte.is_ascii_alphanumeric() {
                        char::from(byte).into()
                    } else {
                        format!("%{byte:02x}")
                    }
                })
                .collect()
        }
        8 => json!({"a": [value]}).to_string(),
        9 => json!({"a": json!({"b": value}).to_string()}).to_string(),
        _ => format!("key: |\n  {padding}\n  {value}\nother: {padding}\n"),
    }
}

/// Puts a text somewhere into the object: as a value, in a value, as an element, or as a name.
fn plant(rng: &mut Rng, value: &mut Value, text: &str) {
    match value {
        Value::Object(map) if !map.is_empty() && rng.u32(0..4) > 0 => {
            let name = rng.choice(map.keys().cloned().collect::<Vec<_>>()).unwrap();
            plant(rng, &mut map[&name], text);
        }
        Value::Object(map) => {
            if rng.bool() {
                map.insert(text.to_owned(), json!({}));
            } else {
                map.insert("planted".to_owned(), text.into());
            }
        }
        Value::Array(list) if !list.is_empty() && rng.bool() => {
            let at = rng.usize(0..list.len());
            plant(rng, &mut list[at], text);
        }
        Value::Array(list) => list.push(text.into()),
        Value::String(old) if rng.bool() => *old = format!("{old} {text}"),
        other => *other = text.into(),
    }
}

/// A value with characters that no hash, name or time has, and some that formats escape.
fn value(rng: &mut Rng) -> String {
    let letters: Vec<char> = "JQXZWVKYjqxzwvky".chars().collect();
    let mut value: String = (0..rng.usize(12..40)).map(|_| *rng.choice(&letters).unwrap()).collect();
    // A name of letters alone is a field's.
    value.insert(rng.usize(0..value.len()), '7');
    if rng.bool() {
        let at = rng.usize(4..value.len() - 4);
        value.insert(at, *rng.choice(&[' ', '"', '\\', '/', '+', '=', 'ß', '漢', '&', '%']).unwrap());
    }
    if rng.u32(0..4) == 0 {
        value.push('\n');
    }
    value
}

#[test]
fn a_planted_value_is_in_no_output() {
    let mut rng = seeded("leaks");
    for round in 0..400 {
        let profile = Profile { secrets: Secrets::with_random_key().unwrap(), ..profile() };
        let values = [value(&mut rng), value(&mut rng)];
        let [before, after] = [&values[0], &values[1]].map(|value| secret(value));
        profile.secrets.learn(&Gvk::new("v1", "Secret"), &before);
        shown(&profile, Some(&before), Some(&after));

        let kind = *rng.choice(&["ConfigMap", "Pod", "Secret", "Vault", "Event"]).unwrap();
        let object = |rng: &mut Rng| {
            let mut object = json!({"apiVersion": "v1", "kind": kind});
            for field in ["spec", "data", "status", "message"] {
                if rng.bool() {
                    object[field] = random::value(rng, 3);
                }
            }
            object["metadata"] = json!({"name": "x", "uid": "1", "labels": {"a": "b"}, "annotations": {"a": random::value(rng, 1)}});
            for _ in 0..rng.usize(1..4) {
                let value = rng.choice(&values).unwrap();
                let text = written(rng, value);
                let fields = ["spec", "data", "status", "message", "other"];
                let field = *rng.choice(&fields).unwrap();
                let place = match rng.u32(0..3) {
                    0 => &mut object["metadata"]["annotations"],
                    1 => &mut object["metadata"]["labels"],
                    _ => &mut object[field],
                };
                plant(rng, place, &text);
            }
            object
        };
        let (old, new) = (object(&mut rng), object(&mut rng));
        for (old, new) in [(None, Some(&new)), (Some(&old), Some(&new)), (Some(&old), None)] {
            let text = shown(&profile, old, new);
            for value in &values {
                let value = value.trim();
                for form in forms(value) {
                    assert!(
                        !text.contains(&form),
                        "round {round}: {form:?} of {value:?} in {text}\nold {old:?}\nnew {new:?}"
                    );
                }
            }
        }
    }
}
