//! Text from the cluster, safe and fit for a terminal.

mod escape;
mod flow;
mod say;

pub(crate) use escape::{
    cut, escape, is_unsafe, shorten, shorten_part, thousands, width, without_common_start, wrap,
};
pub(crate) use flow::flow;
pub(crate) use say::{say, speak_of};
