//! `tramontane cast`: one member of a group as a filter. It reads standard input and prints the
//! group's order.
//!
//! | thread | task |
//! |---|---|
//! | main | joins, then waits until the command has to end |
//! | input | reads lines and sends them; may be blocked in a read when the command ends |
//! | polling | drives the node, and formats the deliveries |
//! | output | writes the formatted deliveries |

mod event;
mod frame;
mod input;
mod output;

use std::io::{self, Write as _};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use clap::Args;
use tramontane_core::fabric::LossCause;
use tramontane_core::ids::SubgroupId;
use tramontane_core::layout::MEMBERS_MAX;

use event::CastEvent;
use frame::{FRAMING, Frame};
use input::InputError;
use output::Format;
use tramontane_local::exit::{Failure, Status};
use tramontane_local::group::LocalError;
use tramontane_local::interrupt::Interrupts;
use tramontane_local::network::{self, NetworkOptions};
use tramontane_local::options::{JoinOption, WindowOption, record_bytes};
use tramontane_local::output::Output;
use tramontane_local::waiting_notice::WaitingNotice;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{
    self, Description, MESSAGE_MAX_DEFAULT, Running, StartError, StartOptions,
};
use tramontane_runtime::member::Stopped;
use tramontane_runtime::shared_memory::GroupName;

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 5] =
    [Status::Input, Status::Resources, Status::Group, Status::PeerLost, Status::Device];

pub(super) const EXAMPLES: &str = "  In three terminals, which all write one log in the same order:
    tramontane cast --group log --id 0 --nodes 3
    tramontane cast --group log --id 1 --nodes 3
    tramontane cast --group log --id 2 --nodes 3
  As a filter, with positions and senders:
    tramontane cast --group log --id 0 --nodes 2 --format jsonl < orders.txt > log.jsonl

  On two hosts with RDMA, with one key for both (openssl rand -hex 32 >key; chmod 600 key):
    tramontane cast --fabric verbs --addresses 10.9.0.1:7000,10.9.0.2:7000 --key-file key \\
        --allow-clear --id 0
    tramontane cast --fabric verbs --addresses 10.9.0.1:7000,10.9.0.2:7000 --key-file key \\
        --allow-clear --id 1

The members are fixed. If one is interrupted or dies, the others report which one and exit with \
status 6. For a group that survives its members, use 'tramontane node'.

A member whose input has ended stays until the input of every member has ended and everything is \
delivered.

A line longer than --message-max is not sent. The member prints its number, continues, and exits \
with status 3 at the end.";

/// Run one member of a group as a filter: read standard input, and print the group's order.
#[derive(Args, Debug)]
pub(super) struct CastOptions {
    /// Name of the group on shared memory; processes on this machine that give the same name form
    /// the group
    #[arg(long, value_name = "NAME")]
    group: Option<GroupName>,
    /// Id of this member, from 0 to one less than the number of members
    #[arg(long, value_name = "K")]
    id: u32,
    /// Number of members [default with --addresses: the number of addresses]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=MEMBERS_MAX as i64))]
    nodes: Option<u32>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Size of the largest record, in bytes; the same for all members
    #[arg(long, value_name = "BYTES", default_value_t = MESSAGE_MAX_DEFAULT,
          value_parser = record_bytes::<FRAMING>)]
    message_max: u32,
    #[command(flatten)]
    window: WindowOption,
    #[command(flatten)]
    join: JoinOption,
    /// Transport for messages
    #[arg(long, value_parser = tramontane_local::options::carrier(),
          default_value_t = Carrier::SharedMemory)]
    fabric: Carrier,
    #[command(flatten)]
    network: NetworkOptions,
    #[command(flatten)]
    device: tramontane_local::options::DeviceArguments,
}

/// The only subgroup.
const ALL: SubgroupId = SubgroupId::ZERO;

/// Interval between checks for signals and of the member's state.
const TICK: Duration = Duration::from_millis(50);

/// Time for which a member that has to give up waits at most for its records to be delivered
/// everywhere.
const SETTLE: Duration = Duration::from_millis(500);

/// Time for which a member stays after losing a peer. By then, all others have noticed the same
/// loss, so they do not mistake this member's exit for its cause.
const AFTERMATH: Duration = Duration::from_secs(1);

/// Time limit for writing delivered records when the command fails.
const DRAIN: Duration = Duration::from_secs(1);

impl CastOptions {
    /// Returns the number of members.
    fn nodes(&self) -> Result<u32, Failure> {
        let addresses = self.network.addresses.len();
        let wrong = |what: &str, advice| Err(Failure::usage(what, advice));
        match (self.fabric, self.nodes) {
            (Carrier::Tcp | Carrier::Verbs, _) if addresses == 0 => wrong(
                "--addresses is missing",
                "give the address of each member: HOST:PORT,HOST:PORT",
            ),
            (Carrier::Tcp | Carrier::Verbs, nodes) => match u32::try_from(addresses) {
                Ok(count)
                    if addresses <= MEMBERS_MAX && nodes.is_none_or(|nodes| nodes == count) =>
                {
                    Ok(count)
                }
                _ => {
                    let what = match nodes {
                        Some(nodes) => format!(
                            "{addresses} addresses were given for {nodes} \
                                                members"
                        ),
                        None => {
                            format!(
                                "{addresses} addresses were given, but a group has at most \
                                 {MEMBERS_MAX} members"
                            )
                        }
                    };
                    wrong(&what, "give one address for each member")
                }
            },
            (Carrier::SharedMemory, Some(nodes)) => Ok(nodes),
            (Carrier::SharedMemory, None) if self.group.is_none() => wrong(
                "--group and --nodes are missing",
                "give the name of the group and the number of members",
            ),
            (Carrier::SharedMemory, None) => {
                wrong("--nodes is missing", "give the number of members")
            }
        }
    }

    /// Describes the group, identically on all members.
    fn describe(&self, nodes: u32) -> Result<Description, Failure> {
        let wrong = |what: &str, advice| Err(Failure::usage(what, advice));
        let mut group = Description::builder(self.group.as_ref().map_or("cast", GroupName::as_str));
        match (self.fabric, &self.group) {
            (Carrier::Tcp | Carrier::Verbs, Some(_)) => {
                return wrong(
                    "--group applies only to shared memory",
                    "omit it, because --addresses identifies the members",
                );
            }
            (Carrier::SharedMemory | Carrier::Tcp, _) if self.device.given().is_some() => {
                let option = self.device.given().unwrap_or_default();
                return Err(LocalError::NoDevice(option).into());
            }
            (Carrier::SharedMemory, _) if self.network.given().is_some() => {
                let option = self.network.given().unwrap_or_default();
                return wrong(
                    &format!("{option} applies only to members on a network"),
                    "omit it, or give --fabric tcp or --fabric verbs",
                );
            }
            (Carrier::SharedMemory, None) => {
                return wrong("--group is missing", "give all members of the group the same name");
            }
            (Carrier::SharedMemory, Some(_)) => group = group.nodes(nodes),
            (Carrier::Tcp | Carrier::Verbs, None) => {
                group = self.network.describe(group.fabric(self.fabric));
            }
        }
        let message_max = self.message_max + FRAMING;
        Ok(group.window(self.window.window).message_max(message_max).fixed().build()?)
    }
}

/// Runs a member.
pub(super) fn run(arguments: &CastOptions) -> Result<(), Failure> {
    let id = arguments.id;
    let nodes = arguments.nodes()?;
    if id >= nodes {
        let what = format_args!("member {id} is not in a group of {nodes}");
        return Err(Failure::usage(
            what,
            "ids start at 0; give a smaller --id or a larger --nodes",
        ));
    }
    let group = arguments.describe(nodes)?;
    let interrupts = Interrupts::watch()?;
    let (sender, events) = mpsc::channel();
    let failed = sender.clone();
    let output = Output::start(None, move |error| {
        // The command may have ended already, so that no thread receives the event.
        let _ = failed.send(CastEvent::OutputFailed(error));
    });
    let output = output.map_err(|error| cannot_start(&error))?;
    let receiver = output::Receiver::new(output.clone(), arguments.format, sender.clone(), nodes);
    let options = StartOptions {
        device: arguments.device.options(),
        time_limit: arguments.join.join_timeout,
        cancel: interrupts.flag(),
        ..StartOptions::new(id)
    };
    let waiting = match group.fabric {
        Carrier::SharedMemory => WaitingNotice::begin(&options.root),
        Carrier::Tcp | Carrier::Verbs => None,
    };
    let started = group::start(group, options, receiver);
    drop(waiting);
    // A member that is asked to end while waiting does not report the missing members.
    interrupts.check()?;
    let running = started.map_err(not_started)?;
    let mut cast = Cast { running, output, events, all_ended: false, has_refused: false };
    let outcome = cast
        .start_input(arguments.message_max, sender)
        .and_then(|()| cast.wait_for_end(&interrupts));
    cast.end(outcome, &interrupts)
}

/// Explains in terms of the command line why the group did not form.
fn not_started(error: StartError) -> Failure {
    match error {
        StartError::ControlEndpoints(error) => network::not_permitted(error),
        StartError::OtherConfiguration { node, .. } => {
            let what = format_args!("member {node} was started with a different configuration");
            Failure::group(what, "give all members the same options")
        }
        error => error.into(),
    }
}

fn cannot_start(error: &io::Error) -> Failure {
    Failure::system("cannot start a thread", error)
}

/// A member that has joined, with its input, its output and its events.
struct Cast {
    running: Running,
    output: Output,
    events: Receiver<CastEvent>,
    /// The output is complete.
    all_ended: bool,
    /// Whether any input line was refused.
    has_refused: bool,
}

impl Cast {
    /// Reads and sends in a thread that is never joined, because a read cannot be cancelled.
    fn start_input(&self, limit: u32, events: Sender<CastEvent>) -> Result<(), Failure> {
        let mut sender =
            self.running.sender_of(ALL).ok_or_else(|| Failure::silent(Status::Other))?;
        let spawned = std::thread::Builder::new().name("tramontane-read".into()).spawn(move || {
            let refused = |why| {
                // The command may have ended already.
                let _ = events.send(CastEvent::Refused(why));
            };
            let event =
                match input::send_lines(io::stdin().lock(), limit as usize, &mut sender, refused) {
                    Ok(()) => CastEvent::InputEnded,
                    Err(InputError::Failed(failure)) => CastEvent::InputFailed(failure),
                    Err(InputError::Stopped(stopped)) => {
                        tracing::debug!(%stopped, "the rest of the input is not read");
                        return;
                    }
                };
            // The command may have ended already.
            let _ = events.send(event);
        });
        spawned.map(drop).map_err(|error| cannot_start(&error))
    }

    /// Waits until this member has to end. Succeeds once all records from all members have been
    /// delivered everywhere.
    fn wait_for_end(&mut self, interrupts: &Interrupts) -> Result<(), Failure> {
        loop {
            interrupts.check()?;
            // Checked before the events are taken, so that they include all that the member
            // delivered before it stopped.
            let stopped = self.running.stopped();
            self.take_events(if stopped.is_some() { Duration::ZERO } else { TICK })?;
            if let Some(stopped) = stopped {
                return self.judge(stopped);
            }
            if self.all_ended {
                return self.complete(interrupts);
            }
        }
    }

    /// Handles the pending events. Waits for the first one for at most `timeout`.
    fn take_events(&mut self, timeout: Duration) -> Result<(), Failure> {
        let mut next = self.events.recv_timeout(timeout);
        loop {
            match next {
                Ok(CastEvent::InputEnded) => tracing::debug!("the input ended"),
                Ok(CastEvent::AllEnded) => self.all_ended = true,
                Ok(CastEvent::Refused(why)) => {
                    self.has_refused = true;
                    // If standard error fails, there is nowhere else to write.
                    let _ = writeln!(io::stderr(), "tramontane: {why}");
                }
                Ok(CastEvent::InputFailed(failure)) => return Err(failure),
                Ok(CastEvent::OutputFailed(error)) => return Err(Failure::output(&error)),
                Ok(CastEvent::NotUnderstood(node)) => {
                    let what = format_args!(
                        "member {node} sent a message that 'tramontane cast' never sends"
                    );
                    return Err(Failure::group(what, "run the same version on all members"));
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(()),
            }
            next = self.events.recv_timeout(Duration::ZERO);
        }
    }

    /// Decides what to report when this member is no longer part of the group.
    fn judge(&self, stopped: Stopped) -> Result<(), Failure> {
        match stopped {
            // A peer leaves only after all members have delivered everything.
            Stopped::PeerLost { cause: LossCause::Left, .. } if self.all_ended => Ok(()),
            stopped => Err(stopped.into()),
        }
    }

    /// Called after the end of all input. Sends that this member is complete, and waits until that
    /// message has been delivered everywhere. By then, all members have delivered the end, so each
    /// may leave.
    fn complete(&mut self, interrupts: &Interrupts) -> Result<(), Failure> {
        let mut sender =
            self.running.sender_of(ALL).ok_or_else(|| Failure::silent(Status::Other))?;
        match input::send(&mut sender, Frame::Complete) {
            Ok(()) => {}
            Err(InputError::Failed(failure)) => return Err(failure),
            Err(InputError::Stopped(stopped)) => return self.judge(stopped),
        }
        while !self.running.settle(TICK) {
            interrupts.check()?;
            self.take_events(Duration::ZERO)?;
            if let Some(stopped) = self.running.stopped() {
                return self.judge(stopped);
            }
        }
        self.take_events(Duration::ZERO)
    }

    /// Leaves the group, writes the remaining output, and returns the command's outcome.
    fn end(self, outcome: Result<(), Failure>, interrupts: &Interrupts) -> Result<(), Failure> {
        let Self { running, output, events, has_refused, .. } = self;
        let started = Instant::now();
        let Err(failure) = outcome else {
            // All records have been delivered. Only the output remains to be written.
            close(running);
            while !output.drain(TICK) {
                interrupts.check()?;
                if let Ok(CastEvent::OutputFailed(error)) = events.try_recv() {
                    return Err(Failure::output(&error));
                }
            }
            // Each refused line has already been reported.
            return if has_refused { Err(Failure::silent(Status::Input)) } else { Ok(()) };
        };
        if failure.status == Status::Input {
            // Records that were sent before the bad one are still delivered.
            let _ = running.settle(SETTLE);
        }
        output.drain(DRAIN);
        if failure.status == Status::PeerLost {
            std::thread::sleep(AFTERMATH.saturating_sub(started.elapsed()));
        }
        // If the output were not discarded, a poller that waits for room in it would never leave.
        output.discard();
        close(running);
        Err(failure)
    }
}

fn close(running: Running) {
    let (stopped, _) = running.close();
    tracing::debug!(%stopped, "the member ended");
}
