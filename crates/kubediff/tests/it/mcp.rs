//! Issue 23: `kubediff mcp`, as the client of an assistant asks it.

mod assistant;
mod bounds;
mod lines;
mod mistakes;
mod places;
mod tools;
mod transcript;
