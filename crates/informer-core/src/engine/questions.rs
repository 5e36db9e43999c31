//! Questions about the writer's state. Their answers wait until user code returns the writer.

use super::reach::Reach;
use super::{Command, Engine};
use crate::{Checkpoint, Scope};

/// Identifies a question. The owner chooses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QuestionId(pub u64);

/// A question to an engine that runs.
#[derive(Debug)]
pub enum Question {
    /// The content to save.
    Checkpoint,
    /// How far this scope has come.
    Reach(Scope),
}

/// The answer to a [`Question`].
#[derive(Debug)]
pub enum Answer {
    /// The content to save, and the schema with which it was read ([`Engine::content_schema`]).
    Checkpoint(Box<Checkpoint>, String),
    /// How far the scope has come; `None` where it has not started, or was removed.
    Reach(Option<Reach>),
}

impl Engine {
    /// Answers the questions, unless user code has the writer.
    pub(super) fn answer(&mut self) {
        for (id, question) in std::mem::take(&mut self.questions) {
            let answer = match &question {
                Question::Checkpoint => self.checkpoint().map(|checkpoint| {
                    Answer::Checkpoint(Box::new(checkpoint), self.content_schema().to_owned())
                }),
                Question::Reach(scope) => self.reach(scope).map(Answer::Reach),
            };
            match answer {
                Ok(answer) => self.commands.push_back(Command::Answer(id, answer)),
                Err(super::Lent) => self.questions.push((id, question)),
            }
        }
    }
}
