//! Refusals of writes, with the messages of the real server.

use serve::{About, Reason, Resource, Status, StatusCause};

/// An error in one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldError {
    field: String,
    reason: &'static str,
    message: String,
}

impl FieldError {
    pub(crate) fn required(field: impl Into<String>, why: &str) -> Self {
        let message = if why.is_empty() { "Required value".into() } else { format!("Required value: {why}") };
        Self { field: field.into(), reason: "FieldValueRequired", message }
    }

    /// `value` as JSON writes it: a string in quotes.
    pub(crate) fn invalid(field: impl Into<String>, value: impl std::fmt::Display, why: &str) -> Self {
        let message = format!("Invalid value: {value}: {why}");
        Self { field: field.into(), reason: "FieldValueInvalid", message }
    }

    /// A value of the wrong type.
    pub(crate) fn type_invalid(field: impl Into<String>, value: impl std::fmt::Display, why: &str) -> Self {
        Self { reason: "FieldValueTypeInvalid", ..Self::invalid(field, value, why) }
    }

    pub(crate) fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self { field: field.into(), reason: "FieldValueForbidden", message: format!("Forbidden: {why}") }
    }

    pub(crate) fn unsupported(
        field: impl Into<String>,
        value: impl std::fmt::Display,
        valid: &[&str],
    ) -> Self {
        let valid: Vec<String> = valid.iter().map(|value| format!("{value:?}")).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", valid.join(", "));
        Self { field: field.into(), reason: "FieldValueNotSupported", message }
    }

    pub(crate) fn too_long(field: impl Into<String>, why: &str) -> Self {
        Self { field: field.into(), reason: "FieldValueTooLong", message: format!("Too long: {why}") }
    }

    pub(crate) fn too_many(field: impl Into<String>, count: usize, most: usize) -> Self {
        let message = format!("Too many: {count}: must have at most {most} items");
        Self { field: field.into(), reason: "FieldValueTooMany", message }
    }
}

/// 422: errors in fields of an object of this group and kind.
pub(crate) fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Status {
    let mut words: Vec<String> = Vec::new();
    for error in errors {
        let word = format!("{}: {}", error.field, error.message);
        if !words.contains(&word) {
            words.push(word);
        }
    }
    let words = if words.len() == 1 { words.concat() } else { format!("[{}]", words.join(", ")) };
    let qualified = if group.is_empty() { kind.to_string() } else { format!("{kind}.{group}") };
    let mut status = Status::new(Reason::Invalid, format!("{qualified} {name:?} is invalid: {words}"))
        .about(group, kind, name);
    status.causes = errors.iter().map(FieldError::cause).collect();
    status
}

impl FieldError {
    fn cause(&self) -> StatusCause {
        StatusCause { reason: self.reason.into(), message: self.message.clone(), field: self.field.clone() }
    }
}

/// 422: errors in the options of a request.
pub(crate) fn invalid_options(kind: &str, errors: &[FieldError]) -> Status {
    invalid("meta.k8s.io", kind, "", errors)
}

/// 409: the object has changed meanwhile.
pub(crate) fn modified(resource: &Resource, name: &str) -> Status {
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    conflict(&resource.group, &resource.plural, name, why)
}

/// 409: `kind` is a plural name or a kind.
pub(crate) fn conflict(group: &str, kind: &str, name: &str, why: &str) -> Status {
    let qualified = if group.is_empty() { kind.to_string() } else { format!("{kind}.{group}") };
    Status::new(Reason::Conflict, format!("Operation cannot be fulfilled on {qualified} {name:?}: {why}"))
        .about(group, kind, name)
}

/// 409: the name is taken.
pub(crate) fn already_exists(resource: &Resource, name: &str, being_deleted: bool) -> Status {
    let before = if being_deleted { "object is being deleted: " } else { "" };
    let message = format!("{before}{} {name:?} already exists", resource.qualified_name());
    Status::new(Reason::AlreadyExists, message).about(&resource.group, &resource.plural, name)
}

/// 403, by the server's own rules.
pub(crate) fn forbidden(resource: &Resource, name: &str, why: &str) -> Status {
    let message = format!("{} {name:?} is forbidden: {why}", resource.qualified_name());
    Status::new(Reason::Forbidden, message).about(&resource.group, &resource.plural, name)
}

/// 405.
pub(crate) fn method_not_allowed() -> Status {
    let mut status = Status::new(
        Reason::MethodNotAllowed,
        "the server does not allow this method on the requested resource",
    );
    status.about = Some(About::default());
    status
}

/// 415: `accepted` lists the supported media types.
pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Status {
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    );
    Status::new(Reason::UnsupportedMediaType, message)
}

/// 415 for the content type of no patch.
pub(crate) fn unsupported_patch() -> Status {
    let mut status = Status::new(Reason::UnsupportedMediaType, "415: Unsupported Media Type");
    status.about = Some(About::default());
    status
}

/// 500 without a reason, as for errors that the server does not classify.
pub(crate) fn unknown(message: impl Into<String>) -> Status {
    Status::new(Reason::Unknown, message)
}
