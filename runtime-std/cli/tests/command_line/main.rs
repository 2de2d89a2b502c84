//! The program `tramontane` as its users meet it: real processes, their output and exit statuses.

mod adapter;
mod bench;
mod bench_blocks;
mod bench_blocks_paper;
mod bench_views;
mod cast;
mod copy;
mod copy_failures;
mod copy_kills;
mod copy_losses;
#[cfg(feature = "verbs")]
mod copy_verbs;
mod demo;
mod demo_failures;
mod layout;
mod node;
mod node_forming;
mod node_input;
mod node_large;
mod node_operators;
mod node_refusals;
mod node_restarts;
mod node_returns;
mod node_strangers;
mod node_subgroups;
mod node_trust;
mod plan;
mod readme;
mod support;
mod tcp;
mod terminal;
mod verbs;
#[cfg(feature = "verbs")]
mod verbs_device;
