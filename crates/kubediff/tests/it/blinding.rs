//! A Secret hides its values and nothing else, whatever somebody writes into it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kubediff::{Gvk, Profile, Tally};
use serde_json::{Value, json};

use crate::support::{change_with, deployment, edited, profile};

fn secret(namespace: &str, name: &str, values: &[(&str, &str)]) -> Value {
    let data: serde_json::Map<String, Value> =
        values.iter().map(|(key, value)| ((*key).to_owned(), BASE64.encode(value).into())).collect();
    json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
        "metadata": {"name": name, "namespace": namespace, "uid": name, "resourceVersion": "1"}})
}

fn learn(profile: &Profile, secret: &Value) {
    profile.secrets.learn(&Gvk::new("v1", "Secret"), secret);
}

fn redacted(profile: &Profile, text: &str) -> String {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"},
        "data": {"text": text}});
    profile.secrets.redact(&Gvk::new("v1", "ConfigMap"), map)["data"]["text"].as_str().unwrap().to_owned()
}

/// Attack 1: ordinary words in one Secret.
#[test]
fn k4_ordinary_words_in_a_secret_hide_nothing_elsewhere() {
    let profile = profile();
    let words = [
        ("username", "postgres"),
        ("env", "production"),
        ("x", "kubectl-edit"),
        ("host", "localhost:5432"),
        ("flag", "--log-level=debug"),
        ("on", "true,true"),
        ("tag", "registry.example.com/cart:v1.2"),
        ("name", "cart-sidecar"),
    ];
    learn(&profile, &secret("evil", "words", &words));
    let object = |image: &str| {
        edited(&deployment(), |it| {
            let containers = &mut it["spec"]["template"]["spec"]["containers"];
            containers[0] = json!({"name": "postgres", "image": image, "args": ["--log-level=debug"],
                "env": [{"name": "PGHOST", "value": "localhost:5432"}]});
            let sidecar = json!({"name": "cart-sidecar", "image": "registry.example.com/cart:v1.2"});
            containers.as_array_mut().unwrap().push(sidecar);
            it["metadata"]["labels"]["env"] = "production".into();
            it["metadata"]["managedFields"] = json!([{"manager": "kubectl-edit", "operation": "Update",
                "apiVersion": "apps/v1", "time": "2026-03-01T14:03:21Z", "fieldsType": "FieldsV1", "fieldsV1": {}}]);
        })
    };
    let (old, new) = (object("postgres:15"), object("postgres:16"));
    let change = change_with(&profile, Some(&old), Some(&new), &mut Tally::default()).unwrap();
    assert_eq!(**change.new.as_ref().unwrap(), new, "nothing is hidden");
    let paths = &*change.paths;
    assert_eq!(paths, ["spec.template.spec.containers[postgres].image"]);
    assert_eq!(change.managers[0].manager, "kubectl-edit");
}

/// A name of the cluster that is known before or after the Secret.
#[test]
fn k4_the_clusters_own_words_are_no_secrets() {
    let profile = profile();
    let service = |name: &str| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "shop"}});
    let see = |name: &str| change_with(&profile, None, Some(&service(name)), &mut Tally::default());
    assert!(see("zephyrine-db2x").is_some());
    learn(
        &profile,
        &secret("evil", "names", &[("a", "zephyrine-db2x"), ("b", "quixotic-db3y"), ("c", "zephyrine:5432")]),
    );
    assert_eq!(
        redacted(&profile, "dial zephyrine-db2x or zephyrine:5432"),
        "dial zephyrine-db2x or zephyrine:5432"
    );
    assert!(redacted(&profile, "dial quixotic-db3y").contains("<hmac:"));
    assert!(see("quixotic-db3y").is_some());
    assert_eq!(redacted(&profile, "dial quixotic-db3y"), "dial quixotic-db3y");
}

/// A label with a value that a Secret has already is no word of the cluster.
#[test]
fn k3_a_label_does_not_give_a_secret_away() {
    let profile = profile();
    learn(&profile, &secret("shop", "db", &[("password", "x7Kq-29fQ-mmz")]));
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "shop", "labels": {"password": "x7Kq-29fQ-mmz"}}});
    let change = change_with(&profile, None, Some(&pod), &mut Tally::default()).unwrap();
    assert!(!format!("{change:?}").contains("x7Kq"));
    assert!(!redacted(&profile, "it is x7Kq-29fQ-mmz").contains("x7Kq"));
    // The third attack: the label is there first.
    let profile = self::profile();
    let labelled = |labels: Value| {
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "namespace": "evil", "labels": labels}});
        change_with(&profile, None, Some(&pod), &mut Tally::default()).unwrap();
    };
    labelled(json!({"tok": "u8jzp9de0igx4x", "x7Kq-29fQ-mmz": "a"}));
    let values = [("password", "x7Kq-29fQ-mmz"), ("token", "u8jzp9de0igx4x")];
    learn(&profile, &secret("shop", "db", &values));
    assert_eq!(redacted(&profile, "x7Kq-29fQ-mmz u8jzp9de0igx4x").matches("<hmac:").count(), 2);
    labelled(json!({"tok": "u8jzp9de0igx4x", "x7Kq-29fQ-mmz": "b"}));
    assert_eq!(redacted(&profile, "x7Kq-29fQ-mmz u8jzp9de0igx4x").matches("<hmac:").count(), 2);
}

/// The third attack: a Secret that begins as a text of others does hides the rest of that text.
#[test]
fn k4_a_text_that_only_begins_as_a_value_changes_visibly() {
    let header = format!("#!/bin/bash\n{}", "# All rights reserved, as of 2024.\n".repeat(10));
    let script = |line: &str| format!("{header}{line}\nexit 0\n{}", "# the end\n".repeat(60));
    let profile = profile();
    learn(&profile, &secret("evil", "copy", &[("run.sh", &script("echo one"))]));
    let map = |text: String| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"},
            "data": {"run.sh": text}})
    };
    let lines = ["echo one", "rm -rf /data", "rm -rf /date"];
    for (before, after) in lines.iter().zip(&lines[1..]) {
        let (old, new) = (map(script(before)), map(script(after)));
        let change = change_with(&profile, Some(&old), Some(&new), &mut Tally::default());
        assert_eq!(*change.expect(after).paths, [r#"data["run.sh"]"#], "{after}");
    }
}

/// Attack 1: the mark of a value is of the object's namespace.
#[test]
fn k3_marks_of_namespaces_differ() {
    let profile = profile();
    learn(&profile, &secret("shop", "db", &[("password", "x7Kq-29fQ-mmz")]));
    let mark = |namespace: &str| {
        let secret = secret(namespace, "guess", &[("password", "x7Kq-29fQ-mmz")]);
        profile.secrets.redact(&Gvk::new("v1", "Secret"), secret)["data"]["password"].to_string()
    };
    assert_ne!(mark("evil"), mark("shop"));
    assert_eq!(mark("shop").trim_matches('"'), redacted(&profile, "x7Kq-29fQ-mmz"));
}

/// Parts of values: what applications mention of them.
#[test]
fn k3_parts_of_values_are_recognised() {
    let docker =
        json!({"auths": {"r.example.com": {"auth": BASE64.encode("robot:dQ7-docker-pw"), "email": "a@b.c"}}});
    let cases: [(&str, String); 34] = [
        ("json", json!({"db": {"password": "dQ7-json-pw"}}).to_string()),
        ("yaml", "db:\n  password: dQ7-yaml-pw\n".to_owned()),
        ("properties", "a=b\ndb.password = dQ7-prop-pw\n".to_owned()),
        ("dsn", "host=db port=5432 password=dQ7-libpq-pw sslmode=require".to_owned()),
        ("ado", "Server=db;Password=dQ7-ado-pw;".to_owned()),
        ("url", "postgres://cart:dQ7-url%21pw@db:5432/cart?sslmode=require".to_owned()),
        ("docker", docker.to_string()),
        ("base64", BASE64.encode("dQ7-inner-pw")),
        ("colons", "user:root\npassword:dQ7-colon-pw\n".to_owned()),
        ("words", "user root\npassword dQ7-word-pw\n".to_owned()),
        ("netrc", "machine db login root password dQ7-netrc-pw".to_owned()),
        ("pgpass", "db:5432:cart:root:dQ7-pgpass-pw\n*:*:*:a:b\n".to_owned()),
        ("xml", "<server><user>root</user><password>dQ7-xml-pw</password></server>".to_owned()),
        ("attribute", "<server user=\"root\" password=\"dQ7-attribute-pw\"/>".to_owned()),
        ("go", "cart:dQ7-go-pw@tcp(db:3306)/cart".to_owned()),
        ("bearer", "Bearer dQ7-bearer-pw".to_owned()),
        ("header", format!("Authorization: Basic {}", BASE64.encode("root:dQ7-basic-pw"))),
        ("cdata", "<a>\n<b><![CDATA[dQ7<cdata&pw]]></b></a>".to_owned()),
        ("entities", "<a><b>dQ7&lt;text&#x26;pw</b></a>".to_owned()),
        ("attribute-entities", "<a b=\"dQ7&lt;attr&amp;pw\"/>".to_owned()),
        ("attribute-blanks", "<x:a xmlns:x=\"u\" x:pw = \"dQ7-blank-pw\"></x:a>".to_owned()),
        ("folded", BASE64.encode("dQ7-folded-pw".repeat(9)).replace('Q', "Q\n")),
        ("url-safe", "ZFE3LXVybD8_c2FmZS1wdw".to_owned()),
        ("odbc", "Driver={X};PWD={dQ7;odbc-pw};X=1".to_owned()),
        ("libpq", "host=h password='dQ7\\'libpq-pw' user=u".to_owned()),
        ("continued", "a=b\ndb.pw=dQ7-\\\n    continued-pw\n".to_owned()),
        ("unicode", "db.pw=\\u0064Q7-unicode-pw\n".to_owned()),
        ("words-quoted", "user root\nsecret_key \"dQ7-quoted-pw\"\n".to_owned()),
        ("crlf", "a=b\r\ndb.pw=dQ7-\\\r\n    crlf-pw\r\n".to_owned()),
        ("sql", "ALTER USER app PASSWORD 'dQ7-sql-pw';".to_owned()),
        ("blanks", "Server = h ; Password = dQ7-blanks-pw ;".to_owned()),
        ("curl", "curl -H 'Authorization: Bearer dQ7-curl-pw' https://x".to_owned()),
        ("after-password", "the password dQ7-said-pw, please".to_owned()),
        ("shell", "P=\"dQ7\\\"shell\\$pw\"\n".to_owned()),
    ];
    let profile = profile();
    for (name, value) in &cases {
        learn(&profile, &secret("shop", name, &[("value", value)]));
    }
    let mentions = [
        "dQ7-json-pw",
        "dQ7-yaml-pw",
        "dQ7-prop-pw",
        "dQ7-libpq-pw",
        "dQ7-ado-pw",
        "dQ7-url!pw",
        "dQ7-url%21pw",
        "dQ7-docker-pw",
        "dQ7-inner-pw",
        "dQ7-colon-pw",
        "dQ7-word-pw",
        "dQ7-netrc-pw",
        "dQ7-pgpass-pw",
        "dQ7-xml-pw",
        "dQ7-attribute-pw",
        "dQ7-go-pw",
        "dQ7-bearer-pw",
        "dQ7-basic-pw",
        "dQ7<cdata&pw",
        "dQ7<text&pw",
        "dQ7<attr&pw",
        "dQ7-blank-pw",
        &"dQ7-folded-pw".repeat(9),
        "dQ7-url??safe-pw",
        "dQ7;odbc-pw",
        "dQ7'libpq-pw",
        "dQ7-continued-pw",
        "dQ7-quoted-pw",
        "dQ7-crlf-pw",
        "dQ7-sql-pw",
        "dQ7-blanks-pw",
        "dQ7-curl-pw",
        "dQ7-said-pw",
        "dQ7-unicode-pw",
        "dQ7\"shell$pw",
    ];
    for mention in mentions {
        for text in [format!("pw {mention}."), mention.to_owned(), BASE64.encode(format!("pw: {mention}"))] {
            let shown = redacted(&profile, &text);
            assert!(shown.contains("<hmac:") && !shown.contains("dQ7"), "{text}: {shown}");
        }
    }
    assert_eq!(redacted(&profile, "cart at db:5432, r.example.com"), "cart at db:5432, r.example.com");
}

/// Forms that were visible: escapes twice, base64 of an escaped text, manifests in comments and without a kind.
#[test]
fn k3_nested_forms_are_recognised() {
    let profile = profile();
    let value = "dQ7 \"a&b\" <pw>";
    learn(&profile, &secret("shop", "db", &[("password", value)]));
    let percent = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let html = |text: &str| {
        text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&#62;")
    };
    let texts = [
        percent(value),
        percent(&percent(value)),
        html(value),
        html(&html(value)),
        BASE64.encode(json!({"pw": value}).to_string()),
        BASE64.encode(BASE64.encode(value)),
        json!({"a": BASE64.encode(value).as_bytes().chunks(8).map(|line| str::from_utf8(line).unwrap()).collect::<Vec<_>>()
            .join("\n")})
        .to_string(),
        "# kind: Secret\n# stringData:\n#   other: dQ7-not-known\na: b\n".to_owned(),
        "// kind: Secret\n// stringData:\n//   other: dQ7-not-known\na: b\n".to_owned(),
        "stringData:\n  other: dQ7-not-known\n".to_owned(),
        "foo: 1 # {kind: Secret, data: {p: dQ7-not-known}}\nbar: 2 # more\n".to_owned(),
        "foo: 1  # stringData: {p: dQ7-not-known}\nbar: 2  # not: {yaml\n".to_owned(),
        "; kind: Secret\n; data:\n;   p: dQ7-not-known\n".to_owned(),
        "-- kind: Secret\n-- data:\n--   p: dQ7-not-known\n".to_owned(),
        "rem kind: Secret\nrem data:\nrem   p: dQ7-not-known\n".to_owned(),
        r#"{"\u006bind":"\u0053ecret","data":{"p":"dQ7-not-known"}}"#.to_owned(),
        "\"\\x6bind\": Secret\ndata: {p: dQ7-not-known}\n".to_owned(),
        "/// kind: Secret\n/// data:\n///   p: dQ7-not-known\n".to_owned(),
        "\"ki\\\n  nd\": Secret\ndata: {p: dQ7-not-known}\n".to_owned(),
        "kubectl patch secret x -p '{\"stringData\":{\"p\":\"dQ7-not-known\"}}'".to_owned(),
        r#"x: '{"\u006bind":"\u0053ecret","data":{"p":"dQ7-not-known"}}'"#.to_owned(),
    ];
    for text in texts {
        let shown = redacted(&profile, &text);
        assert!(
            shown.contains("<hmac:") && !shown.contains("dQ7") && !shown.contains("%44%51"),
            "{text}: {shown}"
        );
    }
}

/// Attack 7: texts and values that were made for a search without an end. The text is hidden as a whole.
#[test]
fn k5_a_search_that_takes_too_long_hides_the_text() {
    let profile = profile();
    let values: Vec<String> = (1..=248).map(|n| format!("aaaaaaaa{}", "b".repeat(n))).collect();
    let values: Vec<(&str, &str)> = values.iter().map(|value| (value.as_str(), value.as_str())).collect();
    learn(&profile, &secret("evil", "slow", &values));
    let text = "a".repeat(900_000);
    let shown = redacted(&profile, &text);
    // One class of characters: none of these values looks secret.
    assert_eq!(shown, text);
    let values: Vec<String> = (1..=248).map(|n| format!("aaaaaaaa{}", "7".repeat(n))).collect();
    let values: Vec<(&str, &str)> = values.iter().map(|value| (value.as_str(), value.as_str())).collect();
    learn(&profile, &secret("evil", "slow", &values));
    let shown = redacted(&profile, &text);
    assert!(shown.starts_with("<hmac:") && shown.ends_with(" 900000 bytes>"), "{} bytes", shown.len());
    assert_eq!(redacted(&profile, "other texts are searched"), "other texts are searched");
}

/// Attack 7: values of one tenant push out nobody else's.
#[test]
fn k5_many_values_of_one_namespace_are_bounded_and_counted() {
    let profile = profile();
    learn(&profile, &secret("shop", "db", &[("password", "x7Kq-29fQ-mmz")]));
    learn(&profile, &secret("shop", "db", &[("password", "x7Kq-new-value")]));
    let many = |from: usize| -> Vec<(String, String)> {
        (from..from + 300).map(|n| (format!("k{n}"), format!("evil-Value-{n:08}"))).collect()
    };
    for at in 0..60 {
        let many = many(at * 300);
        let values: Vec<_> = many.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let secret = secret("evil", &format!("s{at}"), &values);
        learn(&profile, &secret);
    }
    // 256 of each Secret, and 10,000 of the namespace.
    assert_eq!(profile.secrets.over_bounds(), 60 * 300 - 10_000);
    for mention in ["x7Kq-29fQ-mmz", "x7Kq-new-value"] {
        assert!(redacted(&profile, mention).starts_with("<hmac:"), "{mention}");
    }
}

/// A path as `log` writes it for a list whose keys the schema names.
#[test]
fn k3_a_path_with_keys_of_the_schema_hides_what_it_leads_to() {
    let gate = json!({"apiVersion": "example.com/v1", "kind": "Gate", "metadata": {"name": "g", "namespace": "shop"},
    "spec": {"routes": [
        {"host": "example.com", "path": "/cart", "weight": 1, "token": "first"},
        {"host": "example.com", "path": "/", "weight": 1, "token": "second"},
        {"host": "b.example.com", "path": "/cart", "weight": 2, "token": "third"},
    ]}});
    for (path, hidden) in [
        ("spec.routes[example.com,/cart].token", [true, false, false]),
        ("spec.routes[b.example.com].token", [false, false, true]),
        ("spec.routes[example.com,*].token", [true, true, false]),
        ("spec.routes[none].token", [false; 3]),
    ] {
        let mut profile = profile();
        profile.secrets.hide("gates".parse().unwrap(), path.parse().unwrap());
        let shown = profile.secrets.redact(&Gvk::new("example.com/v1", "Gate"), gate.clone());
        let is_hidden =
            |at: usize| shown["spec"]["routes"][at]["token"].as_str().unwrap().starts_with("<hmac:");
        assert_eq!([0, 1, 2].map(is_hidden), hidden, "{path}");
    }
}

const VALUE: &str = "p@$/\"w0rQ<9x&zK+\\e=";

/// The value in other forms. Each is another text for whoever reads the object.
fn written() -> Vec<String> {
    let url = VALUE.replace('%', "%25").replace('@', "%40").replace('<', "%3C").replace('+', "%2B");
    let url = url.replace('"', "%22").replace('&', "%26").replace('\\', "%5C").replace('$', "%24");
    let html = VALUE.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    let json = VALUE.replace('\\', "\\\\").replace('"', "\\\"");
    let base64 = BASE64.encode(VALUE);
    vec![
        VALUE.to_owned(),
        url.to_lowercase().replace("w0rq", "w0rQ").replace("zk", "zK"),
        url.replace('%', "%25"),
        url,
        html.replace('&', "&amp;"),
        html,
        json.replace('\\', "\\\\"),
        json.replace('<', "\\u003c"),
        json,
        base64.trim_end_matches('=').to_owned(),
        base64.replace('+', "-").replace('/', "_"),
        format!("{}\n{}", &base64[..8], &base64[8..]),
        BASE64.encode(format!("a{VALUE}")),
        BASE64.encode(format!("b{VALUE}")),
        base64,
    ]
}

/// A third attack: what is shown of each form was the same, and the change of one into another was no change.
#[test]
fn k1_another_way_to_write_a_value_is_another_text() {
    let profile = profile();
    learn(&profile, &secret("shop", "db", &[("password", VALUE)]));
    let written: std::collections::BTreeSet<String> = written().into_iter().collect();
    let shown: std::collections::BTreeSet<String> =
        written.iter().map(|text| redacted(&profile, text)).collect();
    assert_eq!(shown.len(), written.len(), "{shown:#?}");
    assert!(shown.is_disjoint(&written) && shown.iter().all(|text| text.contains("<hmac:")), "{shown:#?}");
    // As names of fields, too: none takes the place of another.
    let cart = |fields: Value| {
        json!({"apiVersion": "shop.example.com/v1", "kind": "Cart", "spec": {"m": fields},
            "metadata": {"name": "c", "namespace": "shop"}})
    };
    let fields: serde_json::Map<String, Value> =
        written.iter().map(|text| (text.clone(), json!(1))).collect();
    let gvk = Gvk::new("shop.example.com/v1", "Cart");
    let shown = profile.secrets.redact(&gvk, cart(fields.into()));
    assert_eq!(shown["spec"]["m"].as_object().unwrap().len(), written.len(), "{shown:#}");
}

/// A third attack: a value was replaced by its mark, which everybody may read, and no record was made.
#[test]
fn k1_a_mark_in_the_cluster_is_a_text() {
    let profile = profile();
    learn(&profile, &secret("shop", "db", &[("password", VALUE)]));
    let with = |text: &str| {
        edited(&deployment(), |it| {
            it["spec"]["template"]["spec"]["containers"][0]["env"] = json!([{"name": "P", "value": text}]);
            it["metadata"]["annotations"][text] = json!(1);
        })
    };
    let shown = |before: &str, after: &str| {
        let change = change_with(&profile, Some(&with(before)), Some(&with(after)), &mut Tally::default());
        let change = change.unwrap_or_else(|| panic!("{after} instead of {before} is no change"));
        let new = change.new.as_ref().unwrap();
        new["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"].as_str().unwrap().to_owned()
    };
    let mark = shown("", VALUE);
    assert!(mark.starts_with("<hmac:"), "{mark}");
    let text = shown(VALUE, &mark);
    assert_eq!(text, mark.replace("<hmac:", "<text hmac:"));
    assert_eq!(
        shown(&mark, &text),
        mark.replace("<hmac:", "<text text hmac:"),
        "nor is what this is written as"
    );
    assert_eq!(shown(&text, VALUE), mark);
    assert_eq!(shown("", "ahmac: text hmac:"), "ahmac: text hmac:");

    // The fourth attack: a value that looks like a mark, or like a part of one, is a value, and no part of the marks of others.
    let part = mark.trim_start_matches('<').trim_end_matches(" bytes>");
    for value in ["Aa1<hmac:kQ93", "Zz9Q<text hmac:Rk8Tq", &mark, part] {
        learn(&profile, &secret("evil", "s", &[("k", value)]));
        let text = shown("", &format!("x={value};"));
        assert!(text.starts_with("x=<hmac:") && text.ends_with("bytes>;"), "{value}: {text}");
        assert_eq!(shown("", VALUE), mark, "{value}");
    }

    // In Secrets, in base64 and in manifests, whatever escapes they have.
    let of_secret = |value: &str| {
        let object = secret("shop", "other", &[("k", value)]);
        let change = change_with(&profile, None, Some(&object), &mut Tally::default()).unwrap();
        change.new.as_ref().unwrap()["data"]["k"].as_str().unwrap().to_owned()
    };
    let other = of_secret("an0ther-Value");
    assert_ne!(of_secret(&other), other);
    let in_manifest = |value: &str| {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"},
            "data": {"text": format!("kind: Secret\nstringData: {{k: \"{value}\"}}\n")}});
        let change = change_with(&profile, None, Some(&map), &mut Tally::default()).unwrap();
        change.new.as_ref().unwrap()["data"]["text"].as_str().unwrap().to_owned()
    };
    let other = in_manifest("an0ther-Value");
    let mark = &other[other.find("<hmac:").unwrap()..=other.find('>').unwrap()];
    for escaped in [mark.to_owned(), mark.replace('<', "\\x3c"), mark.replace("hmac", "hm\\x61c")] {
        assert_ne!(in_manifest(&escaped), other, "{escaped}");
    }
}
