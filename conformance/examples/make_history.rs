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

use good_history::{Shape, write};

/// Writes a history in which everything is right
#[derive(Parser)]
struct Arguments {
    /// About so many records
    #[arg(long, default_value_t = 1_000_000)]
    events: u64,
    /// So many nodes, all of them senders
    #[arg(long, default_value_t = 8)]
    nodes: u32,
    /// So many groups, each with all nodes; messages go to one after the other
    #[arg(long, default_value_t = 1)]
    groups: u32,
    /// Groups have views, which change ten times
    #[arg(long)]
    views: bool,
    /// All records of one node, then all of the next
    #[arg(long)]
    grouped_by_node: bool,
    /// The last node is killed after a hundredth of the records
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

fn main() -> io::Result<()> {
    let arguments = Arguments::parse();
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
    match arguments.output {
        Some(path) => write(&shape, &mut BufWriter::new(File::create(path)?)),
        None => {
            let mut output = BufWriter::new(io::stdout().lock());
            write(&shape, &mut output)?;
            output.flush()
        }
    }
}
