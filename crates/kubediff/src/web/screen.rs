//! The screens: each makes the context of its template from the answers.

mod about;
mod change;
mod diff;
mod histogram;
mod instant;
mod manifest;
mod object;
mod story;
mod strip;
mod timeline;

pub(super) use about::{about, help};
pub(super) use change::change;
pub(super) use diff::diff;
pub(super) use histogram::parts;
pub(super) use instant::{instant, moment};
pub(super) use object::{Named, find, object};
pub(super) use story::{markdown, story};
pub(super) use timeline::{WORK, shown as shown_period, timeline};
