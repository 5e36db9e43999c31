//! The history through its public interface.

mod file;
mod full;
mod kill;
mod model;
mod questions;
mod random;
mod world;
