//! stub
mod assignment;
mod map;
