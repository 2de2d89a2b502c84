//! Histories, step by step, in which protocols of this kind lose messages: those that TRM-3 to
//! TRM-7 and TRM-9 name, and one of our own. Each history says which processes reach each other,
//! and until when. Replicas are named by their ranks: `P` for those of the parent, or of the only
//! group, and `C` for those of the child.
//!
//! At the end all processes reach each other, and each message must be delivered everywhere, once
//! and in one order.

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
