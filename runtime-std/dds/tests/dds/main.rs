//! Participants of real groups, as threads of this process.

mod from_a_place;
mod instances;
mod levels;
mod outside;
mod outside_refused;
mod outside_topics;
mod policies;
mod support;
mod topics;
mod types;
