//! `tramontane-lab adapter`: one member, driven by the conformance suite over its standard input
//! and output.
//!
//! | thread | task |
//! |---|---|
//! | main | carries out commands in sequence; a multicast waits for room |
//! | input | reads commands; it is blocked in a read when the program ends |
//! | polling | drives the node, and writes its deliveries |

mod delivery;
mod group_member;
mod meeting;
mod member;
mod node;
mod options;
mod payload;
// The adapters in Rust share the protocol, and no code with the suite, which judges this program.
#[path = "../../../../../conformance/adapters/protocol.rs"]
mod protocol;
mod refusal;
mod shards;

use group_member::GroupMember;
use node::{NodeUnderTest, TICK, answer, next, read_commands};
pub(super) use options::AdapterOptions;
use protocol::{Command, Init, Line, VERSION};
use refusal::{StartRefusal, not_understood};
use tramontane_local::exit::{Failure, Status};
use tramontane_local::group::LocalError;
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::carrier::Carrier;

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 4] =
    [Status::Input, Status::Resources, Status::Group, Status::Out];

pub(super) const EXAMPLES: &str =
    "  tramontane-conformance run --adapter 'tramontane-lab adapter' --nodes 3
  tramontane-conformance run --adapter 'tramontane-lab adapter --logged' --nodes 3
  tramontane-conformance run --adapter 'tramontane-lab adapter --shards' --nodes 11

The suite starts this command once for each member; do not start it by hand. The protocol is in \
conformance/docs/adapter-protocol.md.";

/// Runs the adapter.
pub(super) fn run(arguments: &AdapterOptions) -> Result<(), Failure> {
    let interrupts = Interrupts::watch()?;
    let commands = read_commands()?;
    let init = loop {
        match next(&commands, &interrupts, TICK)? {
            Some(Ok(Command::Init(init))) => break init,
            Some(Ok(Command::Stop)) => {
                return answer(&Line::Halt { reason: "done", text: "" });
            }
            Some(Ok(_)) => return Err(not_understood("the first command is not \"init\"")),
            Some(Err(failure)) => return Err(failure),
            None => {}
        }
    };
    match join(&init, arguments, &interrupts) {
        Ok(node) => node.serve(&commands, &interrupts),
        Err(StartRefusal::Unsupported(text)) => {
            answer(&Line::Error {
                code: "unsupported",
                definite: true,
                message: None,
                text: &text,
            })?;
            answer(&Line::Halt { reason: "done", text: "" })
        }
        Err(StartRefusal::Failed(failure)) => {
            let text = failure.text();
            answer(&Line::Error { code: "init", definite: true, message: None, text })?;
            Err(failure)
        }
    }
}

/// Joins as `init` specifies.
fn join(
    init: &Init,
    arguments: &AdapterOptions,
    interrupts: &Interrupts,
) -> Result<Box<dyn NodeUnderTest>, StartRefusal> {
    if init.protocol != VERSION {
        let what = format!(
            "the driver uses version {} of the adapter protocol, but this adapter supports only \
             version {VERSION}; use versions that match",
            init.protocol
        );
        return Err(StartRefusal::Unsupported(what));
    }
    if let (true, Some(option)) = (arguments.fabric != Carrier::Verbs, arguments.device.given()) {
        return Err(Failure::from(LocalError::NoDevice(option)).into());
    }
    match arguments.shards {
        None => Ok(Box::new(GroupMember::join(init, arguments, interrupts)?)),
        Some(tree) => {
            let setting = shards::Setting {
                tree,
                fabric: arguments.fabric,
                device: arguments.device.options(),
                references_from: arguments.references_from,
                durable: arguments.logged,
            };
            shards::join(init, setting, interrupts)
        }
    }
}
