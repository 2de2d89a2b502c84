//! The program `tramontane` as its users see it: real processes, their output, and their exit
//! statuses.

mod advice;
mod cast;
mod client_support;
mod clients;
mod clients_durable;
mod clients_history;
mod clients_refused;
mod demo;
mod demo_failures;
mod layout;
mod log;
mod node;
mod node_addresses;
mod node_crowd;
mod node_damaged_disks;
mod node_durable;
mod node_durable_refusals;
mod node_durable_returns;
mod node_forming;
mod node_input;
mod node_large;
mod node_links;
mod node_log_files;
mod node_lost_disks;
mod node_operators;
mod node_random_lives;
mod node_refusals;
mod node_removed_files;
mod node_restarts;
mod node_returns;
mod node_strangers;
mod node_subgroups;
mod node_total_restart;
mod node_trust;
mod readme;
mod shards;
mod shards_crowd;
mod shards_durable;
mod shards_random_lives;
mod support;
mod tcp;
mod terminal;
mod verbs;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_tramontane");
