//! Parameters that are refused, in the words of the real server.

use serde_json::json;

use crate::client::{PODS, WIDGETS, accepting, get, serve, serve_with};
use crate::model::World;

#[tokio::test(start_paused = true)]
async fn parameters_that_cannot_be_read_are_bad_requests() {
    let serve = serve(&World::new());
    for (query, message) in [
        ("limit=x", "strconv.ParseInt: parsing \"x\": invalid syntax"),
        ("limit=", "strconv.ParseInt: parsing \"\": invalid syntax"),
        (
            "limit=99999999999999999999",
            "strconv.ParseInt: parsing \"99999999999999999999\": value out of range",
        ),
        ("timeoutSeconds=1s", "strconv.ParseInt: parsing \"1s\": invalid syntax"),
        (
            "resourceVersion=abc",
            "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": \
             invalid syntax",
        ),
        (
            "resourceVersion=9999999999999999999999",
            "invalid resource version: resourceVersion: Invalid value: \"9999999999999999999999\": \
             strconv.ParseUint: parsing \"9999999999999999999999\": value out of range",
        ),
        ("labelSelector=a%3D%3D%3Db", "unable to parse requirement: found '=', expected: identifier"),
        ("labelSelector=a+in+b", "unable to parse requirement: found 'b' expected: '('"),
        ("labelSelector=!", "unable to parse requirement: found '', expected: identifier"),
        (
            "labelSelector=-a%3Db",
            "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist of alphanumeric \
             characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or \
             'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
        ("labelSelector=a%3Db%20c", "found 'c', expected: ',' or 'end of string'"),
        (
            "labelSelector=a%3Ex",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must \
             be an integer",
        ),
        (
            "labelSelector=a%3D-b",
            "unable to parse requirement: values[0][a]: Invalid value: \"-b\": a valid label must be an empty string \
             or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
             character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
             '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
        ("fieldSelector=a", "invalid selector: 'a'; can't understand 'a'"),
        ("fieldSelector=metadata.name%3D%5Cx", "invalid field selector: invalid escape sequence: \\x"),
        ("fieldSelector=spec.x%3D1", "field label not supported: spec.x"),
    ] {
        let refused = get(&serve, &format!("{PODS}?{query}")).await;
        let expected = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": "BadRequest", "code": 400 });
        assert_eq!(refused.json(), expected, "{query}");
        assert_eq!(refused.code, 400, "{query}");
    }
    let unknown = get(&serve, "/api/v1/configmaps?fieldSelector=spec.x%3D1").await;
    assert_eq!(
        unknown.message(),
        "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    );
    let unknown = get(&serve, &format!("{WIDGETS}?fieldSelector=spec.x%3D1")).await;
    assert_eq!(unknown.message(), "field label not supported: spec.x");
    let unknown = get(&serve, "/api/v1/nodes?fieldSelector=metadata.namespace%3Dx").await;
    assert_eq!(unknown.message(), "field label not supported: metadata.namespace");
}

#[tokio::test(start_paused = true)]
async fn parameters_that_do_not_fit_together_are_invalid() {
    let serve = serve(&World::new());
    let forbidden = |field: &str, message: &str| json!({ "reason": "FieldValueForbidden", "message": format!("Forbidden: {message}"), "field": field });
    let matching =
        |message: &str| forbidden("resourceVersionMatch", &format!("resourceVersionMatch {message}"));
    let unsupported = |value: &str, supported: &str| {
        json!({ "reason": "FieldValueNotSupported",
        "message": format!("Unsupported value: \"{value}\": supported values: {supported}"), "field": "resourceVersionMatch" })
    };
    for (query, causes) in [
        ("resourceVersionMatch=Exact", vec![matching("is forbidden unless resourceVersion is provided")]),
        (
            "resourceVersionMatch=Foo&resourceVersion=3",
            vec![unsupported("Foo", "\"Exact\", \"NotOlderThan\", \"\"")],
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            vec![matching("\"exact\" is forbidden for resourceVersion \"0\"")],
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=3&continue=x",
            vec![matching("is forbidden when continue is provided")],
        ),
        (
            "sendInitialEvents=true",
            vec![forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")],
        ),
        (
            "sendInitialEvents=x",
            vec![forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")],
        ),
        (
            "watch=1&sendInitialEvents=true",
            vec![forbidden(
                "resourceVersionMatch",
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            )],
        ),
        (
            "watch=1&resourceVersionMatch=NotOlderThan",
            vec![matching("is forbidden for watch unless sendInitialEvents is provided")],
        ),
        ("watch=1&continue=abc", vec![matching("is forbidden when continue is provided")]),
        (
            "watch=1&resourceVersionMatch=Exact&sendInitialEvents=1&continue=x",
            vec![
                forbidden(
                    "resourceVersionMatch",
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                ),
                unsupported("Exact", "\"NotOlderThan\""),
                matching("is forbidden when continue is provided"),
            ],
        ),
    ] {
        let refused = get(&serve, &format!("{PODS}?{query}")).await;
        let said: Vec<String> = causes
            .iter()
            .map(|cause| {
                format!("{}: {}", cause["field"].as_str().unwrap(), cause["message"].as_str().unwrap())
            })
            .collect();
        let said = if said.len() == 1 { said[0].clone() } else { format!("[{}]", said.join(", ")) };
        assert_eq!(
            refused.json(),
            json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": format!("ListOptions.meta.k8s.io \"\" is invalid: {said}"), "reason": "Invalid",
                "details": { "group": "meta.k8s.io", "kind": "ListOptions", "causes": causes }, "code": 422 }),
            "{query}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_lists_forbids_them() {
    let serve = serve_with(&World::new(), |options| options.streaming_lists = false);
    let refused =
        get(&serve, &format!("{PODS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"))
            .await;
    assert_eq!(
        refused.message(),
        "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for \
         watch unless the WatchList feature gate is enabled"
    );
}

#[tokio::test(start_paused = true)]
async fn watches_refuse_at_the_door_what_cannot_be_read() {
    let serve = serve(&World::new());
    let refused = get(&serve, &format!("{PODS}?watch=1&resourceVersion=abc")).await;
    assert_eq!(
        (refused.code, refused.message().as_str()),
        (500, "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax")
    );
    let refused = get(&serve, "/api/v1/watch/namespaces/shop/pods/a?fieldSelector=metadata.name%3Db").await;
    assert_eq!(
        (refused.code, refused.message().as_str()),
        (400, "fieldSelector metadata.name doesn't match requested name")
    );
}

#[tokio::test(start_paused = true)]
async fn of_several_faults_the_one_that_the_server_meets_first_is_said() {
    let serve = serve(&World::new());
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for (query, code, begin) in [
        ("limit=x&timeoutSeconds=y&labelSelector=!", 400, "strconv.ParseInt: parsing \"y\""),
        ("limit=x&labelSelector=!&fieldSelector=q", 400, "strconv.ParseInt: parsing \"x\""),
        ("labelSelector=!&fieldSelector=q&resourceVersionMatch=Exact", 400, "unable to parse requirement"),
        ("fieldSelector=q&resourceVersionMatch=Exact", 400, "invalid selector"),
        ("fieldSelector=spec.q%3D1&resourceVersionMatch=Exact", 422, "ListOptions.meta.k8s.io"),
        ("fieldSelector=spec.q%3D1&resourceVersion=x", 400, "field label not supported"),
        ("watch=1&fieldSelector=spec.q%3D1&resourceVersion=x", 400, "field label not supported"),
    ] {
        let refused = accepting(&serve, &format!("{PODS}?{query}&includeObject=X"), table).await;
        assert_eq!(refused.code, code, "{query}");
        assert!(refused.message().starts_with(begin), "{query}: {}", refused.message());
    }
    let refused = accepting(&serve, &format!("{PODS}?labelSelector=!"), "text/plain").await;
    assert_eq!(refused.code, 406);
    for (uri, code) in [("?resourceVersion=x&includeObject=X", 400), ("?resourceVersion=900", 504)] {
        for accept in [table, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"] {
            let refused = accepting(&serve, &format!("{PODS}{uri}"), accept).await;
            assert_eq!(refused.code, code, "{uri} {accept}");
            assert!(!refused.message().contains("includeObject"), "{uri} {accept}");
        }
    }
    let refused = accepting(&serve, &format!("{PODS}/nope?includeObject=X"), table).await;
    assert_eq!(refused.code, 404);
}
