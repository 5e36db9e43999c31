//! Problems as the API has them.

use http::StatusCode;
use serve::{Reason, Status};

use crate::ask::AskError;
use crate::web::problem::Problem;

/// The refusal of a question.
pub(super) fn of_problem(problem: Problem) -> Status {
    let reason = match problem.status {
        StatusCode::BAD_REQUEST => Reason::BadRequest,
        StatusCode::UNAUTHORIZED => Reason::Unauthorized,
        StatusCode::FORBIDDEN => Reason::Forbidden,
        StatusCode::NOT_FOUND => Reason::NotFound,
        StatusCode::GONE => Reason::Expired,
        StatusCode::TOO_MANY_REQUESTS => Reason::TooManyRequests,
        StatusCode::GATEWAY_TIMEOUT => Reason::Timeout,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY => Reason::ServiceUnavailable,
        _ => Reason::InternalError,
    };
    let said = [problem.title, problem.detail, problem.hint];
    let said: Vec<&str> =
        said.iter().map(|text| text.trim_end_matches('.')).filter(|it| !it.is_empty()).collect();
    Status::new(reason, said.join(": "))
}

pub(super) fn of_ask(error: AskError) -> Status {
    of_problem(error.into())
}

pub(super) fn of_error(error: kubediff_history::Error) -> Status {
    of_problem(error.into())
}
