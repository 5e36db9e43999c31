//! Types that declare a part of an object, objects that lack some of it, and messages that no server writes.

use std::collections::BTreeMap;

use fuzzing::protobuf::Message;
use informer_protobuf::{Error, Kind, from_slice, scan, to_json};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::files;

fn kind(api_version: &str, kind: &str) -> Kind {
    Kind::of(api_version, kind).expect("a known kind")
}

fn value(kind: Kind, message: Message) -> Result<Value, Error> {
    let raw = message.into_bytes();
    let value = from_slice::<Value>(kind, &raw);
    let json = to_json(kind, &raw).map(|json| serde_json::from_slice::<Value>(&json).unwrap());
    assert_eq!(value, json, "read and written");
    value
}

/// A pod of this spec; returns only the spec as JSON.
fn spec(spec: Message) -> Result<Value, Error> {
    value(kind("v1", "Pod"), Message::new().message(2, spec)).map(|mut pod| pod["spec"].take())
}

fn named(name: &str) -> Message {
    Message::new().bytes(1, name)
}

#[test]
fn a_type_reads_what_it_declares() {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Pod<'a> {
        api_version: &'a str,
        #[serde(borrow)]
        metadata: Metadata<'a>,
        spec: Spec,
        status: Status,
    }

    #[derive(Deserialize)]
    struct Metadata<'a> {
        name: &'a str,
        #[serde(borrow)]
        labels: BTreeMap<&'a str, &'a str>,
        absent: Option<String>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        restart_policy: Policy,
        priority: Option<i32>,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }

    #[derive(Deserialize, Debug, PartialEq)]
    enum Policy {
        Always,
        #[serde(other)]
        Other,
    }

    #[derive(Deserialize)]
    struct Status {
        phase: Phase,
    }

    #[derive(Deserialize, Debug, PartialEq)]
    struct Phase(String);

    let metadata = Message::new().bytes(1, "a").entry(11, "b", "c");
    let spec = Message::new().bytes(3, "Always").bytes(10, "node").number(25, -5);
    let status = Message::new().bytes(1, "Running").bytes(99, "newer");
    let raw =
        Message::new().message(1, metadata).message(2, spec).message(3, status).number(77, 1).into_bytes();
    let pod: Pod<'_> = from_slice(kind("v1", "Pod"), &raw).unwrap();
    assert_eq!((pod.api_version, pod.metadata.name, pod.metadata.labels["b"]), ("v1", "a", "c"));
    assert_eq!(pod.metadata.absent, None);
    assert_eq!((pod.spec.restart_policy, pod.spec.priority), (Policy::Always, Some(-5)));
    assert_eq!(
        pod.spec.rest,
        BTreeMap::from([("containers".into(), Value::Null), ("nodeName".into(), "node".into())])
    );
    assert_eq!(pod.status.phase, Phase("Running".to_owned()));
    assert_eq!(serde_json::from_str::<Policy>("\"Never\"").unwrap(), Policy::Other);
}

#[test]
fn what_json_always_has_is_there() {
    let pod = value(kind("v1", "Pod"), Message::new()).unwrap();
    let expected = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {}, "spec": {"containers": null}, "status": {}});
    assert_eq!(pod, expected);

    let deployment = value(kind("apps/v1", "Deployment"), Message::new()).unwrap();
    let template = json!({"metadata": {}, "spec": {"containers": null}});
    let spec = json!({"selector": null, "template": template, "strategy": {}});
    let head =
        json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {}, "spec": spec, "status": {}});
    assert_eq!(deployment, head);

    // A time that is a value and not a pointer is `null`, an int-or-string 0, a quantity "0", raw JSON `null`.
    let event = value(kind("v1", "Event"), Message::new()).unwrap();
    assert_eq!((&event["firstTimestamp"], &event["eventTime"]), (&Value::Null, &Value::Null));
    let port = Message::new().message(2, Message::new().message(1, Message::new()));
    assert_eq!(value(kind("v1", "Service"), port).unwrap()["spec"]["ports"][0]["targetPort"], json!(0));
    let revision = value(kind("apps/v1", "ControllerRevision"), Message::new()).unwrap();
    assert_eq!((&revision["data"], &revision["revision"]), (&Value::Null, &json!(0)));
}

#[test]
fn zero_is_left_out_of_values_and_kept_for_pointers() {
    let zeros = Message::new().bytes(3, "").number(4, 0).number(11, 0).number(25, 0).number(30, 0);
    let expected = json!({
        "containers": null, "terminationGracePeriodSeconds": 0, "priority": 0, "enableServiceLinks": false
    });
    assert_eq!(spec(zeros).unwrap(), expected);
}

#[test]
fn the_zero_time_is_left_out_or_null() {
    let zero = || Message::new().number(1, -62_135_596_800_i64).number(2, 0);
    for time in [Message::new(), zero()] {
        let metadata = named("a").message(8, time.clone()).message(9, time);
        let pod = value(kind("v1", "Pod"), Message::new().message(1, metadata)).unwrap();
        assert_eq!(pod["metadata"], json!({"name": "a", "deletionTimestamp": null}));
    }
    let metadata = named("a").message(8, Message::new().number(1, 1).number(2, 999_999_999));
    let pod = value(kind("v1", "Pod"), Message::new().message(1, metadata)).unwrap();
    assert_eq!(pod["metadata"]["creationTimestamp"], "1970-01-01T00:00:01Z");
    let renewed = Message::new().message(4, Message::new().number(1, 1).number(2, 7_999));
    let lease = value(kind("coordination.k8s.io/v1", "Lease"), Message::new().message(2, renewed)).unwrap();
    assert_eq!(lease["spec"]["renewTime"], "1970-01-01T00:00:01.000007Z");
}

#[test]
fn a_value_given_twice_is_the_last_one() {
    let twice = Message::new().bytes(3, "Never").number(25, 1).bytes(3, "Always").number(25, 2);
    let expected = json!({"containers": null, "restartPolicy": "Always", "priority": 2});
    assert_eq!(spec(twice).unwrap(), expected);
    // An error in the first one is not found.
    let twice = Message::new().bytes(3, [0xff]).number(25, 1).bytes(3, "Always").number(25, 2);
    assert_eq!(spec(twice).unwrap(), expected);
}

#[test]
fn the_order_of_fields_does_not_matter() {
    let order = Message::new().number(25, 1).bytes(3, "Always").message(2, named("a"));
    let ordered = Message::new().message(2, named("a")).bytes(3, "Always").number(25, 1);
    let pod = kind("v1", "Pod");
    let json = |spec| to_json(pod, &Message::new().message(2, spec).into_bytes()).unwrap();
    assert_eq!(json(order), json(ordered));
}

#[test]
fn an_interrupted_list_or_map_is_whole() {
    let lists = Message::new()
        .message(2, named("a"))
        .bytes(3, "Always")
        .entry(7, "x", "1")
        .message(2, named("b"))
        .message(1, named("v"))
        .entry(7, "y", "2")
        .message(2, named("c"));
    let container = |name: &str| json!({"name": name, "resources": {}});
    let expected = json!({
        "volumes": [{"name": "v"}],
        "containers": [container("a"), container("b"), container("c")],
        "restartPolicy": "Always",
        "nodeSelector": {"x": "1", "y": "2"},
    });
    assert_eq!(spec(lists).unwrap(), expected);
}

#[test]
fn a_message_given_twice_is_refused() {
    let twice =
        Message::new().message(14, Message::new().number(2, 1)).message(14, Message::new().number(3, 1));
    let error = spec(twice).unwrap_err();
    assert!(error.is_malformed());
    assert!(error.to_string().starts_with("a message is repeated (`spec`, byte"), "{error}");
    // Nor in an inlined one.
    let source = || Message::new().message(2, Message::new());
    let volume = named("v").message(2, source()).message(2, source());
    assert!(spec(Message::new().message(1, volume)).unwrap_err().is_malformed());
}

#[test]
fn what_is_inlined_is_among_the_others() {
    // The last field of the inlined message has the number of the next field outside of it.
    let common = named("debug").bytes(2, "image");
    let container = Message::new().message(1, common).bytes(2, "web");
    let expected =
        json!([{"name": "debug", "image": "image", "resources": {}, "targetContainerName": "web"}]);
    assert_eq!(spec(Message::new().message(34, container)).unwrap()["ephemeralContainers"], expected);
    // Twice inlined.
    let rule = Message::new().bytes(1, "").bytes(2, "v1").bytes(3, "pods");
    let rule = Message::new().bytes(1, "CREATE").message(2, rule);
    let policy = Message::new().message(
        2,
        Message::new().message(2, Message::new().message(3, Message::new().bytes(1, "a").message(2, rule))),
    );
    let policy = value(kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"), policy).unwrap();
    let rules = &policy["spec"]["matchConstraints"]["resourceRules"];
    let expected = json!([{
        "resourceNames": ["a"], "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]
    }]);
    assert_eq!(*rules, expected);
}

#[test]
fn an_inlined_list_ends_with_what_is_inlined() {
    // Behind the groups comes a field of the same number that is not one of them.
    let rule = |groups: Message| Message::new().message(2, groups).bytes(1, "CREATE");
    let read = |groups| {
        let hook = Message::new().message(3, rule(groups));
        let of = kind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration");
        value(of, Message::new().message(2, hook)).map(|mut it| it["webhooks"][0]["rules"][0].take())
    };
    let expected = json!({"operations": ["CREATE"], "apiGroups": ["apps"]});
    assert_eq!(read(Message::new().bytes(1, "apps")).unwrap(), expected);
    let interrupted = Message::new().bytes(1, "apps").bytes(2, "v1").bytes(1, "batch");
    let expected = json!({"operations": ["CREATE"], "apiGroups": ["apps", "batch"], "apiVersions": ["v1"]});
    assert_eq!(read(interrupted).unwrap(), expected);
}

#[test]
fn numbers_of_a_list_may_be_packed() {
    let groups =
        |security| spec(Message::new().message(14, security)).map(|mut it| it["securityContext"].take());
    let plain = Message::new().number(4, 1).number(4, -1).number(4, 300);
    let packed =
        Message::new().number(4, 1).bytes(4, "").bytes(4, [[0xff; 9].as_slice(), &[1, 0xac, 2]].concat());
    let expected = json!({"supplementalGroups": [1, -1, 300]});
    assert_eq!(groups(plain).unwrap(), expected);
    assert_eq!(groups(packed).unwrap(), expected);
    assert!(groups(Message::new().bytes(4, [0xff])).unwrap_err().is_malformed());
}

#[test]
fn a_watch_event_has_an_object_in_its_envelope() {
    let event = |api_version: &str, kind: &str| {
        let meta = Message::new().bytes(1, api_version).bytes(2, kind);
        let unknown = Message::new().message(1, meta).message(2, Message::new().message(1, named("a")));
        let envelope = [b"k8s\0", unknown.as_ref()].concat();
        Message::new().bytes(1, "ADDED").message(2, Message::new().bytes(1, envelope))
    };
    let of = kind("v1", "WatchEvent");
    let object = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}});
    assert_eq!(value(of, event("v1", "Secret")).unwrap(), json!({"type": "ADDED", "object": object}));
    assert!(value(of, event("example.com/v1", "Custom")).unwrap_err().is_unknown_kind());
}

#[test]
fn a_list_is_read_like_any_other_kind() {
    let items = Message::new()
        .message(1, Message::new().bytes(2, "7"))
        .message(2, Message::new().message(1, named("a")));
    let list = value(kind("v1", "SecretList"), items).unwrap();
    let items = json!([{"metadata": {"name": "a"}}]);
    assert_eq!(
        list,
        json!({"kind": "SecretList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": items})
    );
    let partial = Message::new()
        .message(1, Message::new().bytes(2, "7"))
        .message(2, Message::new().message(1, named("a")));
    let partial = value(kind("meta.k8s.io/v1", "PartialObjectMetadataList"), partial).unwrap();
    assert_eq!(partial["items"], json!([{"metadata": {"name": "a"}}]));
}

#[test]
fn errors_say_where_and_never_what() {
    #[derive(Deserialize, Debug)]
    struct Strict {
        #[expect(dead_code, reason = "it cannot be read")]
        data: BTreeMap<String, u8>,
    }

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    struct Empty {}

    #[derive(Deserialize, Debug)]
    struct Chosen {
        #[serde(rename = "type")]
        #[expect(dead_code, reason = "it cannot be read")]
        kind: Choice,
    }

    #[derive(Deserialize, Debug)]
    enum Choice {
        Opaque,
    }

    #[derive(Deserialize, Debug)]
    struct Lacking {
        #[expect(dead_code, reason = "it cannot be read")]
        lacking: u8,
    }

    let secret = kind("v1", "Secret");
    let raw = Message::new()
        .message(1, named("hidden"))
        .entry(2, "hidden", "hidden")
        .bytes(3, "hidden")
        .into_bytes();
    let errors = [
        from_slice::<Strict>(secret, &raw).unwrap_err(),
        from_slice::<Empty>(secret, &raw).unwrap_err(),
        from_slice::<Chosen>(secret, &raw).unwrap_err(),
        from_slice::<Lacking>(secret, &raw).unwrap_err(),
        from_slice::<u8>(secret, &raw).unwrap_err(),
    ];
    let texts = errors.map(|error| {
        assert!(error.is_mismatch() && !error.is_malformed());
        assert!(!format!("{error:?}").contains("hidden"));
        error.to_string()
    });
    assert_eq!(
        texts,
        [
            "expected u8, found a string (`data`, byte 10)",
            "expected one of the type's members, found another one",
            "expected one of the type's variants, found another string (`type`, byte 28)",
            "`lacking` is missing",
            "expected u8, found an object",
        ]
    );

    let broken = Message::new().message(1, Message::new().bytes(1, b"hidden\xff")).into_bytes();
    let error = scan(&broken).unwrap_err();
    assert_eq!(error.to_string(), "a string is not UTF-8 (byte 4)");
    assert!(error.is_malformed());
    let wrong = Message::new().message(2, Message::new().number(3, 1));
    assert!(value(kind("v1", "Pod"), wrong).unwrap_err().is_malformed());
}

#[test]
fn bytes_that_are_no_text_are_read_as_replacement_characters() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Event {
        message: String,
        reason: String,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is never read")]
    struct Lent<'a> {
        message: &'a str,
    }

    let event = kind("v1", "Event");
    // As a client leaves it that cuts a message after so many bytes.
    let raw = Message::new()
        .message(1, Message::new().bytes(1, "a").entry(12, "note", b"caf\xc3").entry(11, "l", b"\xff"))
        .bytes(3, "Killing")
        .bytes(4, b"caf\xc3 \xe2\x82!")
        .into_bytes();
    let message = "caf\u{fffd} \u{fffd}\u{fffd}!";
    let read = from_slice::<Event>(event, &raw).unwrap();
    assert_eq!((read.message.as_str(), read.reason.as_str()), (message, "Killing"));
    let value = from_slice::<Value>(event, &raw).unwrap();
    assert_eq!(value["message"], message);
    assert_eq!(value["metadata"]["annotations"]["note"], "caf\u{fffd}");
    let json = to_json(event, &raw).unwrap();
    assert!(json.is_ascii(), "as Go's encoder, which escapes it");
    assert_eq!(serde_json::from_slice::<Value>(&json).unwrap(), value);
    let metadata = scan(&raw).unwrap();
    assert_eq!(metadata.annotation("note").unwrap().unwrap(), "caf\u{fffd}");
    assert_eq!(metadata.labels().map(|label| label.unwrap().1).collect::<Vec<_>>(), ["\u{fffd}"]);
    assert!(from_slice::<Lent<'_>>(event, &raw).unwrap_err().is_mismatch(), "it cannot be lent");
    // In a name, and in JSON that the object carries.
    let map = Message::new().message(2, Message::new().bytes(1, b"k\xff").bytes(2, "v")).into_bytes();
    assert_eq!(from_slice::<Value>(kind("v1", "ConfigMap"), &map).unwrap()["data"]["k\u{fffd}"], "v");
    let fields = Message::new().bytes(1, b"{\"f:\xff\":{}}");
    let managed = Message::new().message(7, fields);
    let pod = Message::new().message(1, Message::new().bytes(1, "a").message(17, managed)).into_bytes();
    let value = from_slice::<Value>(kind("v1", "Pod"), &pod).unwrap();
    assert_eq!(value["metadata"]["managedFields"][0]["fieldsV1"], serde_json::json!({"f:\u{fffd}": {}}));
}

#[test]
fn nesting_has_an_end() {
    let definition = |levels: u32| {
        let leaf = Message::new().bytes(5, "string");
        let nested = (0..levels).fold(leaf, |schema, _| Message::new().entry(29, "a", schema));
        let version = Message::new().bytes(1, "v1").message(4, Message::new().message(1, nested));
        Message::new().message(2, Message::new().message(7, version))
    };
    let of = kind("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    assert!(value(of, definition(60)).is_ok());
    for levels in [61, 100, 5_000] {
        let error = value(of, definition(levels)).unwrap_err();
        assert!(error.is_malformed());
        assert!(error.to_string().starts_with("the object is nested too deep"), "{error}");
    }
    // `null` is no level, so that an object that is nested too deep can be skipped.
    let raw = definition(100).into_bytes();
    assert!(from_slice::<serde::de::IgnoredAny>(of, &raw).is_ok());
}

#[test]
fn json_inside_nests_no_deeper_than_what_is_around_it_leaves_room_for() {
    let in_data = |json: String| Message::new().message(2, Message::new().bytes(1, json));
    let in_metadata = |json: String| {
        let fields = Message::new().bytes(6, "FieldsV1").message(7, Message::new().bytes(1, json));
        Message::new().message(1, Message::new().message(17, fields))
    };
    let of = kind("apps/v1", "ControllerRevision");
    let lists = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    // An object around it; and two objects, a list and another object.
    assert!(value(of, in_data(lists(126))).is_ok());
    assert!(value(of, in_metadata(lists(123))).is_ok());
    for too_deep in [in_data(lists(127)), in_data(lists(5_000)), in_metadata(lists(124))] {
        let error = value(of, too_deep).unwrap_err();
        assert!(error.to_string().starts_with("the object is nested too deep"), "{error}");
    }
    // Brackets in a string, or side by side, add no level.
    let wide = format!("[{}{{\"a\\\"{{\\\\\":\"{}\"}},{}]", "[],".repeat(200), "[".repeat(200), lists(125));
    assert!(value(of, in_data(wide.clone())).is_ok());
    assert!(value(of, in_metadata(wide)).unwrap_err().is_malformed());
}

#[test]
fn five_fields_of_the_largest_pod_can_be_borrowed() {
    #[derive(Deserialize)]
    struct Pod<'a> {
        #[serde(borrow)]
        metadata: BTreeMap<&'a str, serde::de::IgnoredAny>,
    }

    let test = "five_fields_of_the_largest_pod_can_be_borrowed";
    let Some(pairs) = files::head_or_skip(test) else { return };
    let pair = files::one(&pairs, "core.v1.Pod");
    let pod: Pod<'_> = from_slice(kind("v1", "Pod"), pair.envelope().raw).unwrap();
    let expected: Value = serde_json::from_slice(&pair.json).unwrap();
    let names = expected["metadata"].as_object().unwrap().keys();
    assert!(pod.metadata.keys().copied().eq(names.map(String::as_str)));
}
