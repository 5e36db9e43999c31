//! The plan of a message: the order of its fields and the values of missing ones. As from Go's structures, fields are
//! in the order of their numbers, and missing fields that are not pointers have zero values.

use std::collections::HashMap;
use std::sync::OnceLock;

use serve::wire::{close, varint};

use super::table::{self, Form, Message, is_list, messages, structure};
use crate::schema::Object;

/// The plan of a message.
pub(super) struct Plan {
    /// Its fields and those of inlined messages, sorted by name.
    pub(super) fields: Vec<Field>,
    /// The steps in order.
    pub(super) steps: Vec<Step>,
}

pub(super) enum Step {
    /// A message with this number begins; JSON has its members in the object around it.
    Open(u64),
    Close,
    /// A field, or its value if it is missing.
    Field {
        tag: u64,
        unset: Vec<u8>,
    },
}

pub(super) struct Field {
    pub(super) name: &'static str,
    /// The index of its step.
    pub(super) step: usize,
    pub(super) form: Form,
    pub(super) content: ValuePlan,
    /// Whether it is written even if it is missing.
    always: bool,
}

/// The form of one value of a field.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ValuePlan {
    /// The number and the wire type.
    pub(super) tag: u64,
    pub(super) of: Of,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Of {
    String,
    /// Base64 in JSON.
    Bytes,
    Integer,
    Number,
    Boolean,
    /// The index of its plan.
    Message(usize),
    Time,
    Quantity,
    IntOrString,
    /// JSON text inside a message.
    Json,
    /// A list inside a message.
    Items(Box<ValuePlan>),
    /// One of `JSONSchemaPropsOr...`: an object is a schema, any other value is the alternative.
    Either {
        schema: Box<ValuePlan>,
        other: Box<ValuePlan>,
    },
}

/// The plans of all messages.
pub(super) struct Plans {
    all: Vec<Plan>,
    places: HashMap<&'static str, usize>,
}

impl Plans {
    pub(super) fn get() -> &'static Self {
        static PLANS: OnceLock<Plans> = OnceLock::new();
        PLANS.get_or_init(|| {
            let names: Vec<&'static str> = messages().keys().copied().collect();
            let places = names.iter().enumerate().map(|(at, name)| (*name, at)).collect();
            let mut plans = Self { all: Vec::new(), places };
            plans.all = names.iter().map(|name| plans.plan(name)).collect();
            for place in 0..plans.all.len() {
                for step in plans.unset(place) {
                    if let Step::Field { unset, .. } = &mut plans.all[place].steps[step.0] {
                        *unset = step.1;
                    }
                }
            }
            plans
        })
    }

    /// The encoded values of missing fields, by their steps.
    fn unset(&self, place: usize) -> Vec<(usize, Vec<u8>)> {
        let always = self.at(place).fields.iter().filter(|field| field.always);
        always.map(|field| (field.step, self.zero(&field.content))).collect()
    }

    fn zero(&self, content: &ValuePlan) -> Vec<u8> {
        let mut out = Vec::new();
        varint(content.tag, &mut out);
        match content.of {
            Of::Number => out.extend_from_slice(&[0; 8]),
            Of::Message(place) => {
                let begin = out.len();
                let unset: HashMap<_, _> = self.unset(place).into_iter().collect();
                let mut open = Vec::new();
                for (at, step) in self.at(place).steps.iter().enumerate() {
                    match step {
                        Step::Open(tag) => {
                            varint(*tag, &mut out);
                            open.push(out.len());
                        }
                        Step::Close => open.pop().into_iter().for_each(|begin| close(begin, &mut out)),
                        Step::Field { .. } => out.extend(unset.get(&at).into_iter().flatten()),
                    }
                }
                close(begin, &mut out);
            }
            _ => out.push(0),
        }
        out
    }

    pub(super) fn find(&self, message: &str) -> Option<usize> {
        self.places.get(message).copied()
    }

    pub(super) fn at(&self, place: usize) -> &Plan {
        // An index is always valid, because it is made together with its plan.
        &self.all[place]
    }

    fn plan(&self, name: &str) -> Plan {
        let mut plan = Plan { fields: Vec::new(), steps: Vec::new() };
        if let Some(message) = messages().get(name) {
            self.add(message, structure(name), &mut plan);
        }
        plan.fields.sort_by_key(|field| field.name);
        plan
    }

    /// `outer` is the type of the JSON object that has these members.
    fn add(&self, message: &Message, outer: Option<&Object>, plan: &mut Plan) {
        for (number, field) in message {
            if let (Form::Inline, table::Of::Message(inner)) = (field.form, field.of) {
                plan.steps.push(Step::Open(*number << 3 | 2));
                if let Some(message) = messages().get(inner) {
                    self.add(message, outer, plan);
                }
                plan.steps.push(Step::Close);
                continue;
            }
            let content = self.content(*number, field.of);
            let always = is_always_there(field, outer);
            let (step, tag) = (plan.steps.len(), content.tag);
            plan.fields.push(Field { name: field.name, step, form: field.form, content, always });
            plan.steps.push(Step::Field { tag, unset: Vec::new() });
        }
    }

    fn content(&self, number: u64, of: table::Of) -> ValuePlan {
        let (wire, of) = match of {
            table::Of::String => (2, Of::String),
            table::Of::Bytes => (2, Of::Bytes),
            table::Of::Integer => (0, Of::Integer),
            table::Of::Boolean => (0, Of::Boolean),
            table::Of::Number => (1, Of::Number),
            table::Of::Message(name) => (2, self.message(name)),
        };
        ValuePlan { tag: number << 3 | wire, of }
    }

    /// Some types have a special form in JSON.
    fn message(&self, name: &str) -> Of {
        // Every message that a field names is in the table, which a test shows.
        let Some((message, place)) = messages().get(name).zip(self.find(name)) else { return Of::Json };
        let field = |wanted: fn(&str) -> bool| {
            let found = message.iter().find(|(_, field)| wanted(field.name));
            found.map(|(number, field)| Box::new(self.content(*number, field.of)))
        };
        match name.rsplit('.').next().unwrap_or_default() {
            "Time" | "MicroTime" => Of::Time,
            "Quantity" => Of::Quantity,
            "IntOrString" => Of::IntOrString,
            "RawExtension" | "JSON" | "FieldsV1" => Of::Json,
            either if either.starts_with("JSONSchemaPropsOr") => {
                match (field(|name| name == "schema"), field(|name| name != "schema")) {
                    (Some(schema), Some(other)) => Of::Either { schema, other },
                    _ => Of::Message(place),
                }
            }
            _ if is_list(name, message) => field(|_| true).map_or(Of::Message(place), Of::Items),
            _ => Of::Message(place),
        }
    }
}

/// Fields that are never pointers in Go structures; for times OpenAPI does not show this.
const ALWAYS_THERE: [&str; 10] = [
    "metadata",
    "creationTimestamp",
    "eventTime",
    "firstTimestamp",
    "lastTimestamp",
    "lastHeartbeatTime",
    "lastObservedTime",
    "lastProbeTime",
    "lastTransitionTime",
    "lastUpdateTime",
];

/// Whether the field is no pointer in its structure, and is therefore always written. Fields whose type does not show
/// this are listed by name.
fn is_always_there(field: &table::Field, outer: Option<&Object>) -> bool {
    let known = outer.and_then(|outer| outer.fields.get(field.name));
    match (field.form, field.of) {
        (Form::List | Form::Map | Form::Inline, _) | (_, table::Of::Bytes) => false,
        (Form::One, table::Of::Message(_)) => {
            known.is_some_and(|known| known.default.as_ref().is_some_and(serde_json::Value::is_object))
                || ALWAYS_THERE.contains(&field.name)
        }
        (Form::One, _) => !known.is_some_and(|known| known.pointer),
    }
}
