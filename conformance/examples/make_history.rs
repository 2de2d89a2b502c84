//! Writes a valid history of any size, to measure the judge.
//!
//! ```text
//! cargo run --release -p tramontane-conformance --example make_history -- --events 1000000 --nodes 8 --output calm.jsonl
//! cargo run --release -p tramontane-conformance -- check calm.jsonl
//! ```

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::Parser;

#[path = "good_history/mod.rs"]
mod good_history;

use good_history::shards::{self, Shards};
use good_history::{HistoryShape, write};

/// Writes a valid history
#[derive(Parser)]
struct HistoryArguments {
    /// Approximate number of records
    #[arg(long, default_value_t = 1_000_000)]
    events: u64,
    /// Number of nodes, all of them senders; with clients, three per group
    #[arg(long, default_value_t = 8)]
    nodes: u32,
    /// Number of groups, each with all nodes; messages go to the groups in turn. With clients:
    /// number of disjoint groups; messages go to any set of them
    #[arg(long, default_value_t = 1)]
    groups: u32,
    /// Number of senders that are members of no group
    #[arg(long, default_value_t = 0)]
    clients: u32,
    /// Groups have views, which change ten times
    #[arg(long)]
    views: bool,
    /// Write all records of one node before those of the next
    #[arg(long)]
    grouped_by_node: bool,
    /// Kill the last node after a hundredth of the records; with clients: one node of each group,
    /// which comes back
    #[arg(long)]
    kill: bool,
    /// Restart the killed node halfway; it replays its deliveries
    #[arg(long, requires = "kill")]
    restart: bool,
    /// Nodes report durable deliveries
    #[arg(long)]
    durable: bool,
    /// The output file; standard output if not given
    #[arg(long)]
    output: Option<PathBuf>,
}

/// Number of nodes per group in a history with clients.
const REPLICAS: u32 = 3;

fn main() -> io::Result<()> {
    let arguments = HistoryArguments::parse();
    match &arguments.output {
        Some(path) => make(&arguments, &mut BufWriter::new(File::create(path)?)),
        None => make(&arguments, &mut BufWriter::new(io::stdout().lock())),
    }
}

fn make(arguments: &HistoryArguments, output: &mut impl Write) -> io::Result<()> {
    if arguments.clients > 0 {
        let shards = Shards {
            deliveries: arguments.events,
            groups: arguments.groups.max(1),
            replicas: REPLICAS,
            clients: arguments.clients,
            kills: arguments.kill,
            exchanged: None,
        };
        shards::write(&shards, output)?;
        return output.flush();
    }
    let shape = HistoryShape {
        events: arguments.events,
        nodes: arguments.nodes.max(1),
        groups: arguments.groups.max(1),
        views: arguments.views,
        grouped_by_node: arguments.grouped_by_node,
        kill: arguments.kill,
        restart: arguments.restart,
        durable: arguments.durable,
    };
    write(&shape, output)?;
    output.flush()
}
