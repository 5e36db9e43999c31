//! Reviews: a client creates an object, which the server answers and does not store. Every user may do everything.

use serde_json::{Value, json};
use serve::{Resource, Status};

use crate::object::set_type;
use crate::refusal::method_not_allowed;

/// Answers a review.
pub(super) fn review(resource: &Resource, mut object: Value) -> Result<Value, Status> {
    set_type(resource, &mut object);
    let user =
        json!({ "username": "admin", "uid": "admin", "groups": ["system:masters", "system:authenticated"] });
    object["status"] = match &*resource.plural {
        "selfsubjectaccessreviews" | "subjectaccessreviews" | "localsubjectaccessreviews" => {
            json!({ "allowed": true })
        }
        "selfsubjectrulesreviews" => json!({
            "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }],
            "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
            "incomplete": false,
        }),
        "selfsubjectreviews" => json!({ "userInfo": user }),
        "tokenreviews" => json!({ "authenticated": true, "user": user }),
        _ => return Err(method_not_allowed()),
    };
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    Ok(object)
}
