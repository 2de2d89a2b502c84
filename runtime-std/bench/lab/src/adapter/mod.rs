//! `tramontane-lab adapter`: one member, driven by the conformance suite over its standard input and
//! output.
//!
//! | thread | what it does |
//! |---|---|
//! | main | carries out commands, one after the other; a multicast waits for room |
//! | input | reads commands; sits in a read when the program ends |
//! | polling | drives the node, and writes what is delivered |

mod delivery;
mod group_member;
mod meeting;
mod member;
mod payload;
mod protocol;
mod refusal;
mod shards;

use std::io::{self, BufRead as _};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use clap::Args;

use delivery::write_line;
use group_member::Member;
use protocol::{Answer, Command, Init, VERSION};
use refusal::{Refusal, not_understood};
use tramontane_local::exit::Failure;
use tramontane_local::group::LocalError;
use tramontane_local::interrupt::Interrupts;
use tramontane_local::shard_trees::Tree;
use tramontane_runtime::carrier::Carrier;

pub(super) const EXAMPLES: &str =
    "  tramontane-conformance run --adapter 'tramontane-lab adapter' --nodes 3
  tramontane-conformance run --adapter 'tramontane-lab adapter --logged' --nodes 3
  tramontane-conformance run --adapter 'tramontane-lab adapter --shards' --nodes 11

The suite starts this command once for each member; do not start it by hand. The protocol is in \
conformance/docs/adapter-protocol.md.";

/// Be one member of a group under the conformance suite
#[derive(Args, Debug)]
pub(super) struct AdapterOptions {
    /// The fabric of the group
    #[arg(long, value_parser = tramontane_local::options::carrier(),
          default_value_t = Carrier::SharedMemory)]
    fabric: Carrier,
    /// Be a replica of a group of shards, or a client, instead of a member of groups with views.
    /// The groups form the first part of this tree
    #[arg(long, value_name = "TREE", num_args = 0..=1, default_missing_value = "base")]
    shards: Option<Tree>,
    /// With --shards: refer to messages of so many bytes or more, as references_from of an overlay
    /// file says [default: none, leaders copy all]
    #[arg(long, value_name = "BYTES", requires = "shards")]
    references_from: Option<u32>,
    /// Log what is delivered in the node's storage folder, so that it survives restarts
    #[arg(long, conflicts_with = "shards")]
    logged: bool,
    #[command(flatten)]
    device: tramontane_local::options::DeviceArguments,
}

/// Between two looks at signals and at the member's state.
const TICK: Duration = Duration::from_millis(20);

/// Runs the adapter.
pub(super) fn run(arguments: &AdapterOptions) -> Result<(), Failure> {
    let interrupts = Interrupts::watch()?;
    let commands = read_commands()?;
    let init = loop {
        match next(&commands, &interrupts, TICK)? {
            Some(Ok(Command::Init(init))) => break init,
            Some(Ok(Command::Stop)) => return answer(&Answer::Halt { reason: "done", text: None }),
            Some(Ok(_)) => return Err(not_understood("the first command is not \"init\"")),
            Some(Err(failure)) => return Err(failure),
            None => {}
        }
    };
    match join(&init, arguments, &interrupts) {
        Ok(node) => node.serve(&commands, &interrupts),
        Err(Refusal::Unsupported(text)) => {
            answer(&Answer::Error { code: "unsupported", definite: true, message: None, text })?;
            answer(&Answer::Halt { reason: "done", text: None })
        }
        Err(Refusal::Failed(failure)) => {
            let text = failure.text().to_owned();
            answer(&Answer::Error { code: "init", definite: true, message: None, text })?;
            Err(failure)
        }
    }
}

/// A node that can be asked to send.
trait NodeUnderTest {
    /// Carries out commands until the last.
    fn serve(self: Box<Self>, commands: &Commands, interrupts: &Interrupts) -> Result<(), Failure>;
}

/// Becomes what `init` says.
fn join(
    init: &Init,
    arguments: &AdapterOptions,
    interrupts: &Interrupts,
) -> Result<Box<dyn NodeUnderTest>, Refusal> {
    if init.protocol != VERSION {
        let what = format!("version {} of the adapter protocol; this is {VERSION}", init.protocol);
        return Err(Refusal::Unsupported(what));
    }
    if let (true, Some(option)) = (arguments.fabric != Carrier::Verbs, arguments.device.given()) {
        return Err(Failure::from(LocalError::NoDevice(option)).into());
    }
    match arguments.shards {
        None => Ok(Box::new(Member::join(init, arguments, interrupts)?)),
        Some(tree) => {
            let setting = shards::Setting {
                tree,
                fabric: arguments.fabric,
                device: arguments.device.options(),
                references_from: arguments.references_from,
            };
            shards::join(init, setting, interrupts)
        }
    }
}

/// Says that multicasts can be taken, and what is claimed.
fn greet(features: &[&str]) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    answer(&Answer::InitOk { name: "tramontane", version, features })
}

/// To a command that makes no sense here.
fn answer_unknown() -> Result<(), Failure> {
    let text = "this member cannot do that".to_owned();
    answer(&Answer::Error { code: "unsupported", definite: true, message: None, text })
}

fn answer(answer: &Answer<'_>) -> Result<(), Failure> {
    write_line(answer).map_err(|error| Failure::output(&error))
}

/// Commands as they come; the end of the input is a stop.
type Commands = Receiver<Result<Command, Failure>>;

/// Reads commands in a thread that no other thread waits for: a read cannot be cancelled.
fn read_commands() -> Result<Commands, Failure> {
    let (sender, commands) = mpsc::channel();
    let read = move || {
        for line in io::stdin().lock().lines() {
            let command = line
                .map_err(|error| Failure::system("cannot read commands", &error))
                .and_then(|line| {
                    serde_json::from_str(&line)
                        .map_err(|error| not_understood(format_args!("{error}: {line}")))
                });
            if sender.send(command).is_err() {
                return;
            }
        }
        // The program may be over already.
        let _ = sender.send(Ok(Command::Stop));
    };
    let spawned = std::thread::Builder::new().name("tramontane-read".into()).spawn(read);
    spawned.map_err(|error| Failure::system("cannot start a thread", &error))?;
    Ok(commands)
}

/// The next command, if one comes in time.
fn next(
    commands: &Commands,
    interrupts: &Interrupts,
    patience: Duration,
) -> Result<Option<Result<Command, Failure>>, Failure> {
    interrupts.check()?;
    match commands.recv_timeout(patience) {
        Ok(command) => Ok(Some(command)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Ok(Some(Ok(Command::Stop))),
    }
}
