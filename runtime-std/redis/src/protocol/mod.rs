//! The Redis protocol, version 2: what clients send and what they receive.

mod line;
mod reply;
mod request;

pub(crate) use reply::Reply;
pub(crate) use request::{Parsed, RequestLimits, RequestReader};
