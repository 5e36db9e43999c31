//! The records of folded routes: milestones of stories instead of the changes that belong to them.

use kubediff_history::{ChangeRecord, Error, Number, Reader};

use crate::story::{MilestoneKind, Story};

/// The share of a record in the stories, for folded routes.
pub(super) enum Share {
    /// It belongs to no story, and is told alone.
    Alone,
    /// It is a part of a story, which tells nothing of it.
    Member,
    /// It made a milestone of a story.
    Milestone(Box<Reached>),
}

/// A milestone of a story, as the history has the story now.
pub(super) struct Reached {
    pub(super) story: Story,
    pub(super) tells: MilestoneKind,
    /// The change that it began with, as long as the history has that.
    pub(super) root: Option<Box<ChangeRecord>>,
}

impl Share {
    /// Looks a record up that has got its story.
    pub(super) fn of(reader: &mut Reader, number: Number) -> Result<Self, Error> {
        let member = reader.members(number..=number)?.remove(&number);
        let Some(own) = Story::of_history(reader, member.unwrap_or(number))? else { return Ok(Self::Alone) };
        // The first record of a story may be the end of the one before.
        let former = own.ended.filter(|_| own.id == number && own.milestone(number).is_none());
        let of = match former {
            Some(former) => Story::of_history(reader, former)?,
            None => Some(own),
        };
        let reached = of.and_then(|story| Some((story.milestone(number)?, story)));
        Ok(match (reached, member) {
            (Some((tells, story)), _) => {
                let root = reader.version_of(story.id)?.and_then(|version| version.change);
                Self::Milestone(Box::new(Reached { story, tells, root }))
            }
            (None, Some(_)) => Self::Member,
            // Nothing has followed from it so far.
            (None, None) => Self::Alone,
        })
    }
}
