//! Questions that have no answer: each says what to do.

use expect_test::expect;
use serde_json::{Value, json};

use super::assistant::Assistant;
use crate::page::browser::NOW;
use crate::queries::shop::Shop;

#[tokio::test]
async fn a_question_without_an_answer_says_what_to_do() {
    let shop = Shop::open();
    let assistant = Assistant::at(&shop.path, NOW).await;
    let cart = |more: Value| {
        let mut asked = json!({"kind": "deploy", "ns": "shop", "name": "cart"});
        asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        asked
    };
    let page = assistant.ask("changes", json!({"limit": 2})).await;
    let mut said = String::new();
    for (tool, arguments) in [
        ("changes", json!({"kind": "dragons"})),
        ("changes", json!({"since": "soon"})),
        ("changes", json!({"since": "14:30", "until": "14:10"})),
        ("changes", json!({"path": "a["})),
        ("changes", json!({"change": "broken"})),
        ("changes", json!({"order": "sideways"})),
        ("changes", json!({"limit": 100_000})),
        ("changes", json!({"limit": -1})),
        ("changes", json!({"cursor": "7"})),
        ("changes", json!({"ns": "shop", "cursor": page["next"]})),
        ("changes", json!({"namespace": "shop"})),
        ("changes", json!({"kind": ["pods"]})),
        ("changes", json!({"name": "x".repeat(5_000)})),
        ("story", json!({})),
        ("story", json!({"number": 1})),
        ("story", json!({"number": "one"})),
        ("story", json!({"number": 5, "cursor": "99"})),
        ("blame", cart(json!({"cursor": "x"}))),
        ("blame", json!({"kind": "deploy", "ns": "shop", "name": "nobody"})),
        ("object", json!({"kind": "deploy", "ns": "shop"})),
        ("object", cart(json!({"at": "2020-01-01"}))),
        ("object", cart(json!({"rev": 1_000_000}))),
        ("objects", json!({"ns": "shop"})),
        ("objects", json!({"kind": "pods", "at": "2030-01-01"})),
        ("diff", json!({})),
        ("diff", json!({"from": "14:10", "to": "14:05"})),
        ("diff", json!({"from": "14:00", "cursor": "999"})),
    ] {
        let refusal = assistant.refusal(tool, arguments.clone()).await;
        let text = |name: &str| refusal[name].as_str().unwrap_or_default().to_owned();
        let mut asked = arguments.to_string();
        asked.truncate(60);
        said.push_str(&format!("{tool} {asked}\n"));
        for part in ["title", "detail", "hint"].map(text).iter().filter(|part| !part.is_empty()) {
            said.push_str(&format!("    {part}\n"));
        }
    }
    expect![[r#"
        changes {"kind":"dragons"}
            The parameter `kind` cannot be understood
            there is no resource `dragons`: it is not built in, and the history has configmaps, customresourcedefinitions.apiextensions.k8s.io, deployments.apps, nodes, offers.example.com, pods, secrets
            Write this argument as the schema of the tool describes it.
        changes {"since":"soon"}
            The parameter `since` cannot be understood
            `soon` is no time; write 2026-11-23T14:05:00Z, 2026-11-23 14:05, 2026-11-23, 14:05, yesterday 14:05, -2h, 1d12h ago, or now
            Write this argument as the schema of the tool describes it.
        changes {"since":"14:30","until":"14:10"}
            The parameter `until` cannot be understood
            the time from 2026-03-01 14:30:00 to 2026-03-01 14:10:00 is empty: it ends before it begins
            Write this argument as the schema of the tool describes it.
        changes {"path":"a["}
            The parameter `path` cannot be understood
            `a[` is not a path: the bracket does not end at character 2 (expected for example `spec.containers[*].image`)
            Write this argument as the schema of the tool describes it.
        changes {"change":"broken"}
            The parameter `change` cannot be understood
            `broken` is none of added, updated, deleted, recreated
            Write this argument as the schema of the tool describes it.
        changes {"order":"sideways"}
            The parameter `order` cannot be understood
            The orders are newest and oldest.
            Write this argument as the schema of the tool describes it.
        changes {"limit":100000}
            The argument `limit` cannot be understood
            `100000` is no number from 1 to 200.
            Write such a number. For more, go on with the `next` of the answer as `cursor`.
        changes {"limit":-1}
            The argument `limit` cannot be understood
            `-1` is no number from 1 to 200.
            Write such a number. For more, go on with the `next` of the answer as `cursor`.
        changes {"cursor":"7"}
            The parameter `cursor` cannot be understood
            the cursor is not one of this question; ask without it
            Write this argument as the schema of the tool describes it.
        changes {"cursor":"1.17..d1fba762150c532c","ns":"shop"}
            The parameter `cursor` cannot be understood
            the cursor is not one of this question; ask without it
            Write this argument as the schema of the tool describes it.
        changes {"namespace":"shop"}
            The argument `namespace` cannot be understood
            `changes` has no such argument.
            Leave it out; there are by, change, cursor, events, fold, kind, limit, name, ns, order, path, since, until, user.
        changes {"kind":["pods"]}
            The argument `kind` cannot be understood
            It is a list or an object.
            Write a string.
        changes {"name":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
            The argument `name` cannot be understood
            It has 5000 bytes.
            Write at most 4096.
        story {}
            The argument `number` cannot be understood
            It is missing.
            `story` needs it.
        story {"number":1}
            There is no story #1
            Look for it with `changes` (for stories, with `fold`) or `objects`; `coverage` says which time the history knows.
        story {"number":"one"}
            The argument `number` cannot be understood
            `one` is no number from 0 to 18446744073709551615.
            Write such a number.
        story {"cursor":"99","number":5}
            There is no story #5
            Look for it with `changes` (for stories, with `fold`) or `objects`; `coverage` says which time the history knows.
        blame {"cursor":"x","kind":"deploy","name":"cart","ns":"shop"}
            The argument `cursor` cannot be understood
            It is no `next` of an answer.
            Ask without it, from the beginning.
        blame {"kind":"deploy","name":"nobody","ns":"shop"}
            The history has no such thing
            the history has no deployments.apps/nobody in namespace shop; the history covers 2026-03-01 13:59:00 to 2026-03-01 14:50:00
            Look for it with `changes` (for stories, with `fold`) or `objects`; `coverage` says which time the history knows.
        object {"kind":"deploy","ns":"shop"}
            The argument `name` cannot be understood
            It is missing.
            `object` needs it.
        object {"at":"2020-01-01","kind":"deploy","name":"cart","ns":"shop"
            The history has no state of deployments.apps/cart in namespace shop at 2020-01-01 00:00:00
            Its first state here is of 2026-03-01 14:00:00.
            Without `at` and `rev`, the answer is the newest state.
        object {"kind":"deploy","name":"cart","ns":"shop","rev":1000000}
            The history has no state of deployments.apps/cart in namespace shop of change #1000000
            Its first state here is of 2026-03-01 14:00:00.
            Without `at` and `rev`, the answer is the newest state.
        objects {"ns":"shop"}
            The argument `kind` cannot be understood
            It is missing.
            `objects` needs it.
        objects {"at":"2030-01-01","kind":"pods"}
            The parameter `at` cannot be understood
            The time is in the future: nothing is known of it.
            Write this argument as the schema of the tool describes it.
        diff {}
            The argument `from` cannot be understood
            It is missing.
            `diff` needs it.
        diff {"from":"14:10","to":"14:05"}
            The parameter `from` cannot be understood
            the time from 2026-03-01 14:10:00 to 2026-03-01 14:05:00 is empty: it ends before it begins
            Write this argument as the schema of the tool describes it.
        diff {"cursor":"999","from":"14:00"}
            The argument `cursor` cannot be understood
            A difference goes to 1000 objects.
            Choose a kind, a namespace or a shorter time.
    "#]].assert_eq(&said);

    // Another tool is an error of the protocol, which names those that there are.
    let request = rmcp::model::CallToolRequestParams::new("delete_everything");
    let error = assistant.client.call_tool(request).await.unwrap_err().to_string();
    assert!(error.contains("changes, story, blame, object, objects, diff, coverage"), "{error}");
    // Numbers and flags may be written as texts, and null is no argument.
    let asked = json!({"limit": "2", "fold": "false", "kind": null, "ns": ""});
    assert_eq!(assistant.ask("changes", asked).await["answer"], page["answer"]);
}
