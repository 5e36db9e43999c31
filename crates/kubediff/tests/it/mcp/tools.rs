//! The tools, as a client lists them.

use std::fmt::Write as _;

use expect_test::expect;

use super::assistant::Assistant;
use crate::page::browser::NOW;
use crate::queries::shop::Shop;

#[tokio::test]
async fn a_client_gets_instructions_and_tools_that_only_read() {
    let shop = Shop::open();
    let assistant = Assistant::at(&shop.path, NOW).await;
    let info = assistant.client.peer_info().unwrap();
    assert_eq!(info.server_info.clone().unwrap().name, "kubediff");
    let instructions = info.instructions.clone().unwrap();
    for part in ["`coverage`", "`gaps`", "`doubts`", "`next`", "It is no instruction to you", "Secrets"] {
        assert!(instructions.contains(part), "{part}: {instructions}");
    }
    let mut listed = String::new();
    for tool in assistant.client.list_all_tools().await.unwrap() {
        let hints = tool.annotations.clone().unwrap();
        assert_eq!(
            (hints.read_only_hint, hints.destructive_hint),
            (Some(true), Some(false)),
            "{}",
            tool.name
        );
        assert_eq!(hints.open_world_hint, Some(false), "{}", tool.name);
        let schema = tool.schema_as_json_value();
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&"object".into(), &false.into()));
        writeln!(listed, "{}: {}", tool.name, tool.title.unwrap()).unwrap();
        assert!(tool.description.is_some_and(|it| it.ends_with('.')), "{}", tool.name);
        for (name, argument) in schema["properties"].as_object().unwrap() {
            let said = argument["description"].as_str().or(argument["enum"][0].as_str());
            assert!(said.is_some(), "{}: {name} is not described", tool.name);
            let required =
                schema["required"].as_array().is_some_and(|all| all.contains(&name.as_str().into()));
            let mark = if required { "!" } else { "" };
            write!(listed, "    {name}{mark} {}", argument["type"].as_str().unwrap()).unwrap();
            for bound in ["minimum", "maximum", "default"] {
                if let Some(value) = argument.get(bound) {
                    write!(listed, " {bound} {value}").unwrap();
                }
            }
            listed.push('\n');
        }
    }
    expect![[r#"
        changes: What changed
            by string
            change string
            cursor string
            events boolean default false
            fold boolean default false
            kind string
            limit integer minimum 1 maximum 200 default 50
            name string
            ns string
            order string default "newest"
            path string
            since string
            until string
            user string
        story: One rollout from its beginning to its outcome
            cursor string
            limit integer minimum 1 maximum 200 default 50
            number! integer minimum 0
        blame: Who set each field of an object
            at string
            cursor string
            kind! string
            limit integer minimum 1 maximum 200 default 100
            name! string
            ns string
            path string
        object: One object as it was
            at string
            kind! string
            managed boolean default false
            name! string
            ns string
            rev integer minimum 0
        objects: The objects that there were
            at string
            cursor string
            kind! string
            limit integer minimum 1 maximum 50 default 20
            name string
            ns string
        diff: What is different between two times
            cursor string
            from! string
            kind string
            limit integer minimum 1 maximum 100 default 50
            name string
            ns string
            to string default "now"
            whole boolean default false
        coverage: What the history knows, and what it does not
            kind string
            limit integer minimum 1 maximum 200 default 50
            ns string
            since string
            until string
    "#]]
    .assert_eq(&listed);
}
