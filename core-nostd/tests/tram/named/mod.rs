//! The histories by which protocols of this kind lose messages, step by step: those that TRM-3 to
//! TRM-7 and TRM-9 name, and one of our own. Each says who reaches whom, and how far that goes.
//! Replicas are named by their ranks: `P` for the parent's, or the only group's, and `C` for the
//! child's.
//!
//! At the end all reach all, and each message must be delivered everywhere, once and in one order.

mod behind;
mod bodies;
mod campaigns;
mod candidates;
mod carrying;
mod children;
mod clients;
mod counts;
mod fetching;
mod leaving;
mod logs;
mod passing_on;
mod references;
mod script;
mod snapshots;
mod streams;
