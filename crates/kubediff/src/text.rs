//! Texts for people: terminals, tables, times, failures of the server in words, suggestions for misspelt names.

pub(crate) mod alike;
pub(crate) mod clock;
pub(crate) mod table;
pub(crate) mod terminal;
pub(crate) mod words;
