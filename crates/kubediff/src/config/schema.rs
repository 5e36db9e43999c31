//! The JSON schema is that of the types.

use expect_test::expect_file;
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};

use super::Config;
use super::value::{Secret, Text};
use crate::Glob;

/// Types that a configuration has as strings.
macro_rules! strings {
    ($($head:tt)+) => {
        $($head)+ {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                String::schema_name()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                String::json_schema(generator)
            }
        }
    };
}

strings!(impl JsonSchema for Glob);
strings!(impl<T> JsonSchema for Text<T>);

impl JsonSchema for Secret {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let place = |name: &str, about: &str| {
            json_schema!({
                "type": "object",
                "properties": {name: {"type": "string", "description": about}},
                "required": [name],
                "additionalProperties": false,
            })
        };
        json_schema!({
            "description": "A secret, or where it is. One that stands here is accepted, with a warning.",
            "anyOf": [
                place("env", "The name of an environment variable."),
                place("file", "The path of a file."),
                {"type": "string"},
            ],
        })
    }
}

/// The kinds of changes.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(dead_code, reason = "it stands for a type of another crate")]
pub(super) enum Verb {
    /// It was not there before.
    Added,
    /// It is another state of the same object.
    Updated,
    /// It is gone.
    Deleted,
    /// It is another object of the same name.
    Recreated,
}

/// The milestones of stories that are told: all of them, or these.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "it stands for a type with two forms")]
pub(super) enum Fold {
    /// All, or none.
    Switch(bool),
    /// These.
    Milestones(Vec<crate::story::MilestoneKind>),
}

/// How a change became known.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(dead_code, reason = "it stands for a type of another crate")]
pub(super) enum Origin {
    /// An event of a watch.
    Watch,
    /// A list differed from the known state; states in between may be missing.
    List,
    /// It happened while kubediff did not run.
    Restart,
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    let schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<Config>();
    // Comments have lines, sentences do not.
    let text = serde_json::to_string_pretty(&schema).unwrap().replace("\\n", " ") + "\n";
    expect_file!["kubediff.schema.json"].assert_eq(&text);
}
