//! The program `tramontane` as its users meet it: real processes, their output and exit statuses.

mod adapter;
mod bench;
mod bench_blocks;
mod bench_blocks_paper;
mod bench_views;
mod cast;
mod copy;
mod copy_failures;
mod copy_losses;
#[cfg(feature = "verbs")]
mod copy_verbs;
mod demo;
mod demo_failures;
mod layout;
mod node;
mod node_forming;
mod node_large;
mod node_operators;
mod node_refusals;
mod node_returns;
mod node_subgroups;
mod plan;
mod support;
mod tcp;
mod verbs;
#[cfg(feature = "verbs")]
mod verbs_device;
