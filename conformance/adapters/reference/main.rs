//! The reference adapter: a small, correct atomic multicast, and mutants of it that are wrong.
//!
//! The adapter shows the obligations of an implementation, and that the checks tell correct from
//! wrong. It shares no code with the suite and is written from `docs/adapter-protocol.md` only. One
//! trusted process, the sequencer, assigns every entry its position in one order, so there is no
//! election and no agreement protocol here.
//!
//! | module | contents |
//! |---|---|
//! | [`protocol`] | the driver's commands and the member's lines |
//! | [`wire`] | messages between members and the sequencer |
//! | [`order`] | the sequencer's state: the one order, views, and when an entry is stable |
//! | [`shards`] | the same for disjoint groups without views, with clients |
//! | [`sequence`] | the common part of both |
//! | [`sequencer`] | the sequencer's process |
//! | [`member`] | a member's threads |
//! | [`greeting`], [`step`] | a member's claims, and its steps |
//! | [`delivery`] | a member's deliveries, replays and durability |
//! | [`storage`] | the log that survives a member |
//! | [`mutants`] | planted defects |

mod delivery;
mod greeting;
mod member;
mod mutants;
mod order;
#[path = "../protocol.rs"]
mod protocol;
mod sequence;
mod sequencer;
mod shards;
mod step;
mod storage;
mod wire;

use std::process::ExitCode;

use clap::Parser;

/// A member of the reference multicast; it speaks the adapter protocol on standard input and output
#[derive(Parser)]
#[command(version)]
struct ReferenceArguments {
    /// The defect to inject
    #[arg(long, value_name = "NAME")]
    mutant: Option<mutants::Mutant>,
    /// The node with the defect, for mutants that affect only one node [default: the last]
    #[arg(long, value_name = "NODE", requires = "mutant")]
    at: Option<String>,
    /// List the mutants: name, the check that must detect it, a scenario that exposes it with 4
    /// nodes (for shards: with --shards and 11 nodes), the node that must have the defect there,
    /// and a description
    #[arg(long)]
    list_mutants: bool,
    /// Run without views: members are replicas of disjoint groups without storage, and other nodes
    /// are clients
    #[arg(long)]
    shards: bool,
    /// Serve the working folder of this process
    #[arg(long, hide = true)]
    sequencer: bool,
}

fn main() -> ExitCode {
    let arguments = ReferenceArguments::parse();
    if arguments.list_mutants {
        print!("{}", mutants::list());
        return ExitCode::SUCCESS;
    }
    let mutation = arguments.mutant.map(|mutant| mutants::Mutation::new(mutant, arguments.at));
    let ran = if arguments.sequencer {
        sequencer::serve(arguments.shards, mutation)
    } else {
        member::run(arguments.shards, mutation)
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tramontane-reference: {error}");
            ExitCode::FAILURE
        }
    }
}
