//! Secret values are nowhere to be seen.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use expect_test::expect;
use kubediff::render::json_line;
use kubediff::{Change, Profile, Secrets, Tally};
use serde_json::{Value, json};

use crate::support::{change, change_with, deployment, edited, profile, rendered, renderer, seeded};

fn secret(version: &str, password: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "db", "namespace": "shop", "uid": "u", "resourceVersion": version, "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": format!(r#"{{"stringData":{{"password":"{password}"}}}}"#),
            "note": format!("the password is {password}"),
            "team": "shop",
        }},
        "data": {"password": BASE64.encode(password), "user": BASE64.encode("admin"), "empty": ""}})
}

#[test]
fn changed_and_changed_back() {
    let texts = [
        rendered(None, Some(&secret("1", "correct horse"))),
        rendered(Some(&secret("1", "correct horse")), Some(&secret("2", "battery staple"))),
        rendered(Some(&secret("2", "battery staple")), Some(&secret("3", "correct horse"))),
        rendered(Some(&secret("3", "correct horse")), None),
    ];
    expect![[r#"
        14:03:22  + secrets shop/db  (added)
            type  Opaque
            data  empty (0 bytes), password (13 bytes), user (5 bytes)
        14:03:22  ~ secrets shop/db  (updated)
            ~ data.password:             <hmac:569253805f5c044d 13 bytes> → <hmac:3cc353fc4ca20bfc 14 bytes>
            ~ metadata.annotations.note: <hmac:62e48b3d320fee59 29 bytes> → <hmac:5fb90cf3d21f2a97 30 bytes>
        14:03:22  ~ secrets shop/db  (updated)
            ~ data.password:             <hmac:3cc353fc4ca20bfc 14 bytes> → <hmac:569253805f5c044d 13 bytes>
            ~ metadata.annotations.note: <hmac:5fb90cf3d21f2a97 30 bytes> → <hmac:62e48b3d320fee59 29 bytes>
        14:03:22  - secrets shop/db  (deleted)
            type  Opaque
            data  empty (0 bytes), password (13 bytes), user (5 bytes)
    "#]]
    .assert_eq(&texts.concat());
}

#[test]
fn plain_and_encoded_values_have_one_hash() {
    let old = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"k": BASE64.encode("value")}});
    let new = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"k": "value"}});
    expect![[r#"
        14:03:22  ~ secrets a  (updated)
            - data:       {k: <hmac:6e65a3025d3b5a8f 5 bytes>}
            + stringData: {k: <hmac:6e65a3025d3b5a8f 5 bytes>}
    "#]]
    .assert_eq(&rendered(Some(&old), Some(&new)));
}

#[test]
fn places_that_the_user_names() {
    let mut profile = profile();
    for path in
        ["spec.template.spec.containers.env[PASSWORD].value", r#"metadata.annotations["example.com/*"]"#]
    {
        profile.secrets.hide("Deployment".parse().unwrap(), path.parse().unwrap());
    }
    let with = |value: &str| {
        edited(&deployment(), |it| {
            let env = json!([{"name": "PASSWORD", "value": value}, {"name": "LOG", "value": "info"}]);
            it["spec"]["template"]["spec"]["containers"][0]["env"] = env;
            it["metadata"]["annotations"]["example.com/token"] = value.into();
            let applied = it.to_string();
            it["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] =
                applied.into();
        })
    };
    profile.noise.adjust("none").unwrap();
    let (old, new) = (with("correct horse"), with("battery staple"));
    let change = change_with(&profile, Some(&old), Some(&new), &mut Tally::default()).unwrap();
    let text = everything(&change);
    assert!(!text.contains("horse") && !text.contains("staple"), "{text}");
    expect![[r#"
        14:03:22  ~ deployments.apps shop/cart  (updated)
            ~ metadata.annotations["example.com/token"]:
                - <hmac:569253805f5c044d 13 bytes>
                + <hmac:3cc353fc4ca20bfc 14 bytes>
            ~ metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]#metadata.annotations["example.com/token"]:
                - <hmac:569253805f5c044d 13 bytes>
                + <hmac:3cc353fc4ca20bfc 14 bytes>
            ~ metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]#spec.template.spec.containers[web].env[PASSWORD].value:
                - <hmac:569253805f5c044d 13 bytes>
                + <hmac:3cc353fc4ca20bfc 14 bytes>
            ~ spec.template.spec.containers[web].env[PASSWORD].value:
                - <hmac:569253805f5c044d 13 bytes>
                + <hmac:3cc353fc4ca20bfc 14 bytes>
    "#]].assert_eq(&crate::support::plain(&renderer().text(&change)));
}

/// All that can be had of a change as text.
fn everything(change: &Change) -> String {
    let json = json_line(&change.with_objects()).unwrap();
    let patch = serde_json::to_string(&change.patch()).unwrap();
    let wide =
        kubediff::render::Renderer { width: 100_000, max_lines: 1000, show_dropped: true, ..renderer() };
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

/// Letters that nothing else is written in: no hash, no field name, no time.
const ALPHABET: &[char] = &['J', 'Q', 'X', 'Z', 'ß', 'ж', '漢', '%', '^', '\u{1b}'];

#[test]
fn no_part_of_a_value_gets_out() {
    let mut rng = seeded("secrets");
    for _ in 0..300 {
        let profile = Profile { secrets: Secrets::with_random_key().unwrap(), ..profile() };
        let value = |rng: &mut fastrand::Rng| -> String {
            (0..rng.usize(4..30)).map(|_| *rng.choice(ALPHABET).unwrap()).collect()
        };
        let values: Vec<String> = (0..6).map(|_| value(&mut rng)).collect();
        let object = |rng: &mut fastrand::Rng, version: &str, values: &[String]| {
            let kind = *rng
                .choice(["Opaque", "kubernetes.io/dockerconfigjson", "kubernetes.io/tls"].iter())
                .unwrap();
            let mut data = json!({ "a": BASE64.encode(&values[0]) });
            if rng.bool() {
                data[".dockerconfigjson"] =
                    BASE64.encode(json!({"auths": {"r": {"auth": values[1]}}}).to_string()).into();
            }
            if rng.bool() {
                data["not base64"] = values[2].clone().into();
            }
            let mut object = json!({"apiVersion": "v1", "kind": "Secret", "type": kind, "data": data,
                "metadata": {"name": "s", "uid": "u", "resourceVersion": version, "annotations": {}}});
            let annotations = &mut object["metadata"]["annotations"];
            if rng.bool() {
                let applied = json!({"data": data, "stringData": {"x": values[1]}}).to_string();
                annotations["kubectl.kubernetes.io/last-applied-configuration"] = applied.into();
            }
            if rng.bool() {
                annotations["copy"] = format!("plain {}", values[0]).into();
            }
            match rng.u32(0..4) {
                0 => object["stringData"] = json!({"b": values[1], "n": 7}),
                1 => object["stringData"] = values[1].clone().into(),
                2 => object["data"] = json!([values[0]]),
                _ => {}
            }
            object
        };
        let (old, new) = (object(&mut rng, "1", &values[..3]), object(&mut rng, "2", &values[3..]));
        let seen = [(None, Some(&new)), (Some(&old), Some(&new)), (Some(&old), None)].map(|(old, new)| {
            let mut profile = profile.clone();
            if fastrand::bool() {
                profile.noise.adjust("none").unwrap();
            }
            change_with(&profile, old, new, &mut Tally::default())
                .map(|change| everything(&change))
                .unwrap_or_default()
        });
        for value in &values {
            let forms = [value.clone(), BASE64.encode(value), value.escape_debug().to_string()];
            for text in &seen {
                // The value's characters are unmistakable; those of its base64 are common, so more of them.
                for (form, window) in forms.iter().zip([4, 8, 9]) {
                    let chars: Vec<char> = form.chars().collect();
                    for part in chars.windows(window) {
                        let part: String = part.iter().collect();
                        assert!(!text.contains(&part), "{part:?} of {value:?} in {text}");
                    }
                }
            }
        }
    }
}

#[test]
fn nothing_that_knows_a_secret_prints_it() {
    let text = format!("{:?} {:?}", Secrets::with_key([0xAB; 32]), profile());
    assert!(!text.contains("171") && !text.to_lowercase().contains("ab, "), "{text}");
    assert!(change(None, Some(&secret("1", "correct horse"))).is_some());
}
