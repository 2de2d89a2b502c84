//! Writes a good history of any size, to measure the judge with.
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
use good_history::{Shape, write};

/// Writes a history in which everything is right
#[derive(Parser)]
struct Arguments {
    /// About so many records
    #[arg(long, default_value_t = 1_000_000)]
    events: u64,
    /// So many nodes, all of them senders; with clients: three to a group
    #[arg(long, default_value_t = 8)]
    nodes: u32,
    /// So many groups, each with all nodes; messages go to one after the other. With clients: so
    /// many that share no node; messages go to any set of them
    #[arg(long, default_value_t = 1)]
    groups: u32,
    /// So many senders that are members of no group
    #[arg(long, default_value_t = 0)]
    clients: u32,
    /// Groups have views, which change ten times
    #[arg(long)]
    views: bool,
    /// All records of one node, then all of the next
    #[arg(long)]
    grouped_by_node: bool,
    /// The last node is killed after a hundredth of the records; with clients: one of each group,
    /// which comes back
    #[arg(long)]
    kill: bool,
    /// The killed node starts again when half is over, and repeats what it had delivered
    #[arg(long, requires = "kill")]
    restart: bool,
    /// Nodes tell what is durable
    #[arg(long)]
    durable: bool,
    /// Where to write; standard output if this is missing
    #[arg(long)]
    output: Option<PathBuf>,
}

/// So many nodes a group has where there are clients.
const REPLICAS: u32 = 3;

fn main() -> io::Result<()> {
    let arguments = Arguments::parse();
    match &arguments.output {
        Some(path) => make(&arguments, &mut BufWriter::new(File::create(path)?)),
        None => make(&arguments, &mut BufWriter::new(io::stdout().lock())),
    }
}

fn make(arguments: &Arguments, output: &mut impl Write) -> io::Result<()> {
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
    let shape = Shape {
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
