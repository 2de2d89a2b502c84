//! A member of groups whose members order messages themselves.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tramontane_core::ids::SubgroupId;
use tramontane_core::view::Halt;

use super::delivery::{DriverReporter, Names};
use super::meeting::describe;
use super::member::{MemberUnderTest, send_with};
use super::node::{Commands, NodeUnderTest, TICK, answer, answer_unknown, greet, next};
use super::options::AdapterOptions;
use super::payload;
use super::protocol::{Command, Init, Line};
use super::refusal::{StartRefusal, node_id};
use tramontane_local::exit::Failure;
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{self, Forming, Running, SendLargeError, Sender, StartOptions};
use tramontane_runtime::member::{SendError, Stopped};

/// Features claimed for every fabric.
const FEATURES: [&str; 11] = [
    "pause",
    "stats",
    "several-groups",
    "suspension",
    "empty-messages",
    "large-messages",
    "huge-messages",
    "views",
    "crash",
    "leave",
    "join",
];

/// Additional features claimed if the groups are logged. Without a log, nothing survives in
/// storage.
const LOGGED_FEATURES: [&str; 2] = ["restart", "durable"];

/// The factor by which a start may exceed the driver's deadline, because the protocol allows
/// deadlines to be extended on a busy machine.
const DEADLINE_STRETCH: u32 = 20;

/// Maximum time for which one send waits for room. After that, the answer is that the outcome is
/// unknown.
const SEND_LIMIT: Duration = Duration::from_secs(60);

/// Maximum duration of a leave.
const LEAVE_LIMIT: Duration = Duration::from_secs(30);

/// Time that a member without a majority waits for the driver's stop before it answers that it
/// halted: the driver may be stopping all members, in turn.
const NO_MAJORITY_WAIT: Duration = Duration::from_millis(500);

/// Time for which a stopping member waits for messages in flight, such as acknowledgements that
/// others await.
const SETTLE: Duration = Duration::from_millis(500);

/// A member that has joined.
pub(super) struct GroupMember {
    running: Running,
    features: Vec<&'static str>,
    /// The sender of each group, by group name; `None` if this member does not send there.
    groups: HashMap<String, Option<Sender>>,
    pause_ms: Arc<AtomicU64>,
    message_bytes_max: u32,
    /// The time at which this member was first seen to have stopped.
    stopped_since: Option<Instant>,
}

impl GroupMember {
    pub(super) fn join(
        init: &Init,
        arguments: &AdapterOptions,
        interrupts: &Interrupts,
    ) -> Result<Self, StartRefusal> {
        let own = node_id(init, &init.node)?;
        let pause_ms = Arc::new(AtomicU64::new(0));
        let names = Arc::new(Names {
            nodes: init.nodes.iter().map(|node| node.node.clone()).collect(),
            groups: init.groups.iter().map(|group| group.group.clone()).collect(),
        });
        let delivery = DriverReporter::new(Arc::clone(&names), Arc::clone(&pause_ms));
        let mut features = FEATURES.to_vec();
        if arguments.fabric == Carrier::Tcp {
            features.push("network");
        }
        if arguments.logged {
            features.extend(LOGGED_FEATURES);
        }
        let running = start(init, own, arguments, interrupts, delivery, names)?;
        let groups = init.groups.iter().zip(0_u16..);
        let groups = groups
            .map(|(group, index)| (group.group.clone(), running.sender_of(SubgroupId(index))))
            .collect();
        let message_bytes_max = init.limits.message_bytes_max.max(init.limits.huge_bytes_max);
        Ok(Self { running, features, groups, pause_ms, message_bytes_max, stopped_since: None })
    }

    fn multicast(&mut self, message: &str, groups: &[String], bytes: usize) -> Result<(), Failure> {
        let refuse = |code, definite, text: &str| {
            answer(&Line::Error { code, definite, message: Some(message), text })
        };
        let [group] = groups else {
            return refuse("unsupported", true, "a message has exactly one destination group");
        };
        let Some(sender) = self.groups.get_mut(group).and_then(Option::as_mut) else {
            return refuse("not-a-sender", true, &format!("this member does not send in {group}"));
        };
        if bytes > self.message_bytes_max as usize {
            let text = format!(
                "the message has {bytes} bytes, but the limit is {}",
                self.message_bytes_max
            );
            return refuse("too-large", true, &text);
        }
        match send_with(sender, bytes, SEND_LIMIT, |payload| payload::fill(payload, message)) {
            Ok(()) => answer(&Line::Ok { message: Some(message) }),
            // If no slot was free, nothing was sent.
            Err(error) => refuse(code_of(&error), true, &error.to_string()),
        }
    }

    /// Returns the reason that this member has stopped, or `None` if it has not.
    fn given_up(&mut self) -> Option<Stopped> {
        let stopped = self.running.stopped()?;
        let patience = match stopped {
            // A stopped member ends without notice, and its group ends with it.
            Stopped::Halted { why: Halt::NoMajority, .. } => NO_MAJORITY_WAIT,
            _ => Duration::ZERO,
        };
        let since = *self.stopped_since.get_or_insert_with(Instant::now);
        (since.elapsed() >= patience).then_some(stopped)
    }

    /// Leaves the groups permanently.
    fn leave(&mut self) -> Result<(), Failure> {
        let running = &self.running;
        // Accepted messages are delivered before this member leaves, unless others send without
        // pause.
        let _ = running.settle(LEAVE_LIMIT / 4);
        running.ask_to_leave();
        let started = Instant::now();
        let stopped = loop {
            match running.stopped() {
                Some(stopped) => break stopped,
                None if started.elapsed() > LEAVE_LIMIT => break Stopped::Closed,
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        match stopped {
            Stopped::Left => answer(&Line::Halt { reason: "left", text: "" }),
            stopped => {
                answer(&Line::Halt { reason: "halted", text: &stopped.to_string() })?;
                Err(stopped.into())
            }
        }
    }

    fn stop(&mut self) -> Result<(), Failure> {
        if !self.running.settle(SETTLE) {
            tracing::info!("stopped with something under way");
        }
        answer(&Line::Halt { reason: "done", text: "" })
    }
}

impl NodeUnderTest for GroupMember {
    fn serve(
        mut self: Box<Self>,
        commands: &Commands,
        interrupts: &Interrupts,
    ) -> Result<(), Failure> {
        greet(&self.features)?;
        loop {
            match next(commands, interrupts, TICK)? {
                Some(Ok(Command::Multicast { message, groups, bytes })) => {
                    self.multicast(&message, &groups, bytes)?;
                }
                Some(Ok(Command::Pause { ms })) => {
                    self.pause_ms.store(ms, Ordering::Relaxed);
                    answer(&Line::Ok { message: None })?;
                }
                Some(Ok(Command::Stats)) => answer(&Line::Stats { posts: self.running.writes() })?,
                Some(Ok(Command::Leave)) => return self.leave(),
                Some(Ok(Command::Stop)) => return self.stop(),
                Some(Ok(Command::Init(_) | Command::Unknown)) => answer_unknown()?,
                Some(Err(failure)) => return Err(failure),
                None => {}
            }
            if let Some(stopped) = self.given_up() {
                answer(&Line::Halt { reason: "halted", text: &stopped.to_string() })?;
                return Err(stopped.into());
            }
        }
    }
}

/// Returns the protocol's code for an error.
fn code_of(error: &SendLargeError) -> &'static str {
    match error {
        SendLargeError::Send(SendError::Stopped(_)) => "stopped",
        SendLargeError::Send(SendError::TimedOut(_)) | SendLargeError::Memory(_) => "full",
        SendLargeError::Send(SendError::TooLarge { .. })
        | SendLargeError::TooLarge { .. }
        | SendLargeError::NotAllowed => "too-large",
        // Retrying would not help.
        _ => "stopped",
    }
}

/// Becomes a member of groups with changing membership, at the start or later.
fn start(
    init: &Init,
    own: u32,
    arguments: &AdapterOptions,
    interrupts: &Interrupts,
    delivery: DriverReporter,
    names: Arc<Names>,
) -> Result<Running, StartRefusal> {
    let description = describe(init, arguments.fabric, arguments.logged)?;
    let members =
        description.subgroups.iter().map(|subgroup| subgroup.members().to_vec()).collect();
    let options = StartOptions {
        device: arguments.device.options(),
        // The driver decides when a start has taken too long for the machine's speed.
        time_limit: Duration::from_millis(init.limits.deadline_ms) * DEADLINE_STRETCH,
        cancel: interrupts.flag(),
        // A later start finds its earlier membership in its folder, and resumes that membership.
        forming: Forming { new_group: !arguments.logged || init.inc == 1, ..Forming::default() },
        data: arguments.logged.then(|| init.storage.clone()),
        ..StartOptions::new(own)
    };
    let member = MemberUnderTest::new(delivery, names, members, arguments.logged);
    let started = group::start(description, options, member);
    interrupts.check()?;
    Ok(started.map_err(Failure::from)?)
}
