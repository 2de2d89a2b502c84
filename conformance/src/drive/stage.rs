//! A running scenario: its members, the messages sent, and the history.
//!
//! One thread makes all decisions. It sends commands within the window, and handles the members'
//! lines in order of arrival. It never waits for a particular member, only for lines, and never
//! longer than a deadline. Every wait ends when the driver is asked to stop.
//!
//! | file | contents |
//! |---|---|
//! | `stage` | the state, sending requests, and waiting |
//! | `steps` | the steps of a plan |
//! | `parting` | network and disk faults |
//! | `settling` | whether everything was delivered |
//! | `leaders` | leaders, and the nodes chosen by role |
//! | `receiving` | handling of members' lines |

use std::collections::VecDeque;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::disks::Disks;
use super::error::{DriveError, Ending};
use super::folder::ScenarioFolder;
use super::history_file::HistoryFile;
use super::interrupt::Interrupts;
use super::leaders::Leaders;
use super::ledger::{Fate, LedgerMessage, NodeSet, SentLedger, set};
use super::lines::{Clock, ReceivedItem};
use super::load_clock::LoadClock;
use super::member::{Asked, Member, MemberOrder, MemberPhase};
use super::names::{group_name, node_name};
use super::network::Network;
use super::options::RunProgress;
use super::parting::Parting;
use super::payload;
use super::plan::{Condition, PlannedSend, RunPlan};
use super::process::Mark;
use super::protocol::{Command, WINDOW};
use crate::history::Event;

/// Interval between checks of signals and clocks.
const TICK: Duration = Duration::from_millis(20);

/// Limit of members' lines in the queue.
const HEARD_MAX: usize = 4096;

/// Number of lines handled before commands are sent again.
const HEARD_AT_ONCE: usize = 256;

/// The nodes' address, unless hosts are named.
const THIS_HOST: &str = "127.0.0.1";

/// The silence after which a scenario is considered over.
const QUIET: Duration = Duration::from_millis(50);

/// The silence required after faults, which may have late consequences.
const QUIET_AFTER_FAULTS: Duration = Duration::from_millis(250);

/// The settings that stay the same during a run.
pub(super) struct Setting<'s> {
    pub(super) load_clock: &'s LoadClock,
    pub(super) adapter: &'s [String],
    pub(super) hosts: &'s [String],
    pub(super) nodes: usize,
    pub(super) seed: u64,
    pub(super) deadline: Duration,
    pub(super) interrupts: &'s Interrupts,
    pub(super) progress: &'s dyn Fn(RunProgress),
}

impl Setting<'_> {
    /// Returns the host of a node that does not have its own network.
    fn host(&self, node: usize) -> &str {
        // The remainder is not computed if there are no hosts.
        let place = node.checked_rem(self.hosts.len());
        place.and_then(|place| self.hosts.get(place)).map_or(THIS_HOST, String::as_str)
    }

    /// Returns the command of a node's adapter.
    pub(super) fn command(&self, node: usize) -> Vec<String> {
        let (name, host) = (node_name(node), self.host(node));
        let words = self.adapter.iter();
        words.map(|word| word.replace("{node}", &name).replace("{host}", host)).collect()
    }
}

/// An implementation's name, version and features, as it reported them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Introduction {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) features: Vec<String>,
}

/// Limit of the wait for a deadline, as a multiple of the deadline.
const WAIT_MAX: u32 = 20;

/// The goal of a wait.
#[derive(Debug)]
pub(super) enum Goal<'p> {
    /// A condition of the plan is met.
    Met(&'p Condition),
    /// Everything has been delivered, and nothing more happens.
    Settled,
    /// All members have written their last line.
    Stopped,
    /// The output of all processes has ended.
    Silent,
    /// Nothing: time is to pass.
    Later,
}

impl Goal<'_> {
    /// Returns whether the goal is a number that a member has to reach.
    fn is_count(&self) -> bool {
        use Condition::{Answered, ChosenDelivered, Delivered, DeliveredAlone};
        matches!(
            self,
            Self::Met(
                Answered { .. } | Delivered { .. } | ChosenDelivered { .. } | DeliveredAlone(_)
            )
        )
    }
}

/// The state of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GoalState {
    Reached,
    Open,
    /// The goal can no longer be reached.
    Hopeless,
}

/// A running scenario.
pub(super) struct Stage<'s> {
    pub(super) setting: &'s Setting<'s>,
    pub(super) plan: &'s RunPlan,
    pub(super) folder: &'s ScenarioFolder,
    pub(super) network: Option<Network>,
    pub(super) disks: Option<Disks>,
    pub(super) members: Vec<Member>,
    pub(super) ledger: SentLedger,
    pub(super) history_file: HistoryFile,
    pub(super) clock: Clock,
    pub(super) received: Receiver<ReceivedItem>,
    pub(super) to_heard: SyncSender<ReceivedItem>,
    /// The items that arrived while the driver listened to only one member.
    pub(super) stash: VecDeque<ReceivedItem>,
    pub(super) last_heard: Instant,
    /// For each group, the highest view that any member installed.
    pub(super) highest: Vec<Option<(u64, NodeSet)>>,
    /// For each group, the nodes that were in any of its views since their last start.
    pub(super) seen: Vec<NodeSet>,
    /// The nodes that have reported, in any incarnation, that deliveries are durable.
    pub(super) durable: NodeSet,
    /// The members that claimed to report durable deliveries, but did not before the deadline.
    pub(super) not_durable: Option<String>,
    pub(super) leaders: Leaders,
    pub(super) introduction: Option<Introduction>,
    /// The current network faults.
    pub(super) parting: Parting,
    pub(super) had_faults: bool,
    pub(super) notes: Vec<String>,
    /// The reason why the machine was too slow for a deadline, if it was.
    pub(super) starved: Option<String>,
    /// Maximum number of lines from a member; above it, the member counts as flooding.
    pub(super) lines_max: u64,
    /// The mark of the remaining processes that members have started. As the last field, it is
    /// dropped after the members.
    pub(super) mark: Mark,
}

impl<'s> Stage<'s> {
    /// Creates a stage without members, and begins its history, which records the scenario's name.
    ///
    /// # Errors
    /// Fails if the history cannot be written.
    pub(super) fn set(
        setting: &'s Setting<'s>,
        scenario: &str,
        adapter: Option<&str>,
        plan: &'s RunPlan,
        folder: &'s ScenarioFolder,
        (network, disks): (Option<Network>, Option<Disks>),
    ) -> Result<Self, DriveError> {
        let clock = Clock::start();
        let names: Vec<String> = (0..setting.nodes).map(node_name).collect();
        let mut history_file = HistoryFile::begin(&folder.history(), clock, names.clone())?;
        history_file.run(scenario, setting.seed, adapter)?;
        for (group, of) in plan.groups.iter().enumerate() {
            history_file.group(&group_name(group), of)?;
        }
        let address = |node| match network {
            Some(_) => Network::address(node),
            None => setting.host(node).to_owned(),
        };
        let members = names.into_iter().enumerate();
        let members = members
            .map(|(node, name)| Member::new(name, address(node), plan.groups.len()))
            .collect();
        let (to_heard, received) = sync_channel(HEARD_MAX);
        Ok(Self {
            setting,
            plan,
            folder,
            network,
            disks,
            members,
            ledger: SentLedger::default(),
            history_file,
            clock,
            received,
            to_heard,
            stash: VecDeque::new(),
            last_heard: Instant::now(),
            highest: vec![None; plan.groups.len()],
            seen: vec![0; plan.groups.len()],
            durable: 0,
            not_durable: None,
            leaders: Leaders::new(plan.groups.len()),
            introduction: None,
            parting: Parting::default(),
            had_faults: false,
            notes: Vec::new(),
            starved: None,
            lines_max: 100_000 + 64 * plan.messages() as u64,
            mark: Mark::new(),
        })
    }

    /// Sends commands and handles lines until the goal is reached, becomes hopeless, or `time` has
    /// passed.
    pub(super) fn wait(&mut self, goal: &Goal<'_>, time: Duration) -> Result<GoalState, Ending> {
        let until = Instant::now() + time;
        self.wait_while(goal, |_| until.saturating_duration_since(Instant::now()))
    }

    /// Waits as long as `time` lasts on an idle machine. If the machine does not grant this time
    /// within [`WAIT_MAX`] times its length, missing events prove nothing.
    pub(super) fn wait_patiently(
        &mut self,
        goal: &Goal<'_>,
        time: Duration,
    ) -> Result<GoalState, Ending> {
        let (began, granted) = (Instant::now(), self.setting.load_clock.now());
        let until = began + time * WAIT_MAX;
        let state = self.wait_while(goal, |stage| {
            let left = time.saturating_sub(stage.setting.load_clock.now().saturating_sub(granted));
            left.min(until.saturating_duration_since(Instant::now()))
        })?;
        let had = self.setting.load_clock.now().saturating_sub(granted);
        if state == GoalState::Open && had < time && self.starved.is_none() {
            self.starved = Some(format!(
                "a deadline of {} s passed while the machine granted the run only {:.2} s in {:.0} s; reduce the machine's load or raise --deadline",
                time.as_secs_f64(),
                had.as_secs_f64(),
                began.elapsed().as_secs_f64()
            ));
        }
        Ok(state)
    }

    /// Waits as long as there is time left.
    fn wait_while(
        &mut self,
        goal: &Goal<'_>,
        time_left: impl Fn(&Self) -> Duration,
    ) -> Result<GoalState, Ending> {
        loop {
            self.give_orders()?;
            let state = self.goal_state(goal);
            let left = time_left(self);
            if state != GoalState::Open || left.is_zero() {
                return Ok(state);
            }
            if let Some(signal) = self.setting.interrupts.signal() {
                return Err(DriveError::Interrupted(signal).into());
            }
            // A fault that is planned for a count must happen at exactly that count, not some lines
            // later.
            self.listen(left.min(TICK), if goal.is_count() { 1 } else { HEARD_AT_ONCE })?;
            self.show_progress();
        }
    }

    /// Handles at most `lines` of the waiting lines, and waits at most `time` if there are none.
    fn listen(&mut self, time: Duration, lines: usize) -> Result<(), Ending> {
        let first = match self.stash.pop_front() {
            Some(received) => received,
            None => match self.received.recv_timeout(time) {
                Ok(received) => received,
                // This end also holds a sender, so the channel is never disconnected.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(()),
            },
        };
        self.last_heard = Instant::now();
        self.receive(first)?;
        for _ in 1..lines {
            let Some(received) = self.stash.pop_front().or_else(|| self.received.try_recv().ok())
            else {
                break;
            };
            self.receive(received)?;
        }
        Ok(())
    }

    fn show_progress(&self) {
        let (done, of) = (self.ledger.len() as u64, self.plan.messages() as u64);
        (self.setting.progress)(RunProgress::Sent {
            done,
            of,
            deliveries: self.ledger.deliveries(),
        });
    }

    /// Sends members the requests that the window allows, in turn.
    fn give_orders(&mut self) -> Result<(), DriveError> {
        let mut any = true;
        while std::mem::take(&mut any) {
            for node in 0..self.members.len() {
                if let Some(order) = self.next_order(node) {
                    self.give(node, order)?;
                    any = true;
                }
            }
        }
        Ok(())
    }

    fn next_order(&mut self, node: usize) -> Option<MemberOrder> {
        let member = &mut self.members[node];
        let full = member.unanswered.len() >= WINDOW;
        let waits = full && matches!(member.orders.front(), Some(MemberOrder::Multicast(_)));
        if member.phase != MemberPhase::Ready || member.stopping || waits {
            return None;
        }
        member.orders.pop_front()
    }

    fn give(&mut self, node: usize, order: MemberOrder) -> Result<(), DriveError> {
        let (command, asked) = match order {
            MemberOrder::Multicast(sending) => return self.give_multicast(sending),
            MemberOrder::Pause(ms) => (Command::Pause { ms }, Asked::Pause),
            MemberOrder::Stats => (Command::Stats, Asked::Stats),
            MemberOrder::Leave => (Command::Leave, Asked::Leave),
        };
        if asked == Asked::Leave {
            let inc = self.members[node].inc;
            // Like a multicast, the request is recorded before the member can know of it.
            self.history_file.of(node, self.clock.now_ns(), |t_ns, node| Event::Leave {
                t_ns,
                node,
                inc,
            })?;
        }
        self.members[node].asked.push(asked);
        self.send(node, &command);
        Ok(())
    }

    fn give_multicast(&mut self, sending: PlannedSend) -> Result<(), DriveError> {
        let PlannedSend { sender, groups, bytes } = sending;
        let member = &mut self.members[sender];
        let (name, inc) = (member.next_message(), member.inc);
        let group_names: Vec<String> = groups.iter().map(|group| group_name(*group)).collect();
        let digest = payload::digest(&name, bytes);
        // The request is recorded before the member can know of it.
        self.history_file.of(sender, self.clock.now_ns(), |t_ns, node| Event::Multicast {
            t_ns,
            node,
            inc,
            msg: name.as_str().into(),
            groups: group_names.iter().map(|group| group.as_str().into()).collect(),
            bytes: Some(bytes),
            digest: digest.as_deref().map(Into::into),
        })?;
        let group_names = group_names.iter().map(String::as_str).collect();
        self.send(sender, &Command::Multicast { message: &name, groups: group_names, bytes });
        let message =
            LedgerMessage { name, sender, inc, groups, bytes, fate: Fate::Asked, delivered: 0 };
        let place = self.ledger.ask(message);
        self.members[sender].unanswered.insert(place);
        Ok(())
    }

    /// Sends a command to a member.
    pub(super) fn send(&self, node: usize, command: &Command<'_>) {
        if let Some(process) = &self.members[node].process {
            process.send(command.line());
        }
    }

    fn goal_state(&mut self, goal: &Goal<'_>) -> GoalState {
        let reached = match goal {
            Goal::Met(condition) => return self.condition_state(condition),
            Goal::Settled => {
                let quiet = if self.had_faults { QUIET_AFTER_FAULTS } else { QUIET };
                let reached = self.last_heard.elapsed() >= quiet
                    && self.is_delivered()
                    && self.without_durable() == 0;
                if !reached && self.have_ended() && self.are_silent() {
                    return GoalState::Hopeless;
                }
                reached
            }
            Goal::Stopped => self.have_ended(),
            Goal::Silent => self.are_silent(),
            Goal::Later => false,
        };
        if reached { GoalState::Reached } else { GoalState::Open }
    }

    /// Returns whether no member is running.
    fn have_ended(&self) -> bool {
        !self.members.iter().any(Member::runs)
    }

    /// Returns whether the output of all processes has ended.
    fn are_silent(&self) -> bool {
        self.members.iter().all(|member| member.process.is_none() || member.silent)
    }

    fn condition_state(&mut self, condition: &Condition) -> GoalState {
        let (reached, hopeless) = match condition {
            Condition::Ready(nodes) => self.are_ready(nodes),
            Condition::ChosenDelivered { count } => {
                let chosen = self.leaders.chosen();
                let mut members = chosen.iter().map(|node| &self.members[*node]);
                (
                    members.clone().all(|member| member.delivered >= *count),
                    !members.all(|member| member.runs()),
                )
            }
            Condition::ChosenReady => self.are_ready(&self.leaders.chosen()),
            Condition::Led(groups) => {
                (groups.iter().all(|group| self.leader_now(*group).is_some()), false)
            }
            Condition::OthersLead => (self.others_lead(), false),
            Condition::Answered { node, count } => {
                (self.members[*node].answered >= *count, !self.members[*node].runs())
            }
            Condition::Delivered { node, count } => {
                (self.members[*node].delivered >= *count, !self.members[*node].runs())
            }
            Condition::AllDelivered => (self.is_delivered(), false),
            Condition::Durable(nodes) => (
                nodes.iter().all(|node| self.members[*node].durable),
                nodes.iter().any(|node| !self.members[*node].runs()),
            ),
            Condition::Ended(node) => (!self.members[*node].runs(), false),
            Condition::Resolved(nodes) => (self.are_resolved(nodes), false),
            Condition::DeliveredAlone(node) => {
                (self.ledger.any_only_by(*node), !self.members[*node].runs())
            }
            Condition::ViewWithout(nodes) => (self.have_views_without(set(nodes)), false),
        };
        match (reached, hopeless) {
            (true, _) => GoalState::Reached,
            (false, true) => GoalState::Hopeless,
            (false, false) => GoalState::Open,
        }
    }

    /// Returns whether all of these nodes can accept messages, and whether any of them never will.
    fn are_ready(&self, nodes: &[usize]) -> (bool, bool) {
        let phases = || nodes.iter().map(|node| self.members[*node].phase);
        let over =
            |phase| matches!(phase, MemberPhase::Ended | MemberPhase::Killed | MemberPhase::Absent);
        (phases().all(|phase| phase == MemberPhase::Ready), phases().any(over))
    }

    /// Returns the end of a member's log, for people.
    pub(super) fn log_end(&self, node: usize) -> Option<String> {
        if let Some(process) = &self.members[node].process {
            process.await_log();
        }
        last_lines(&self.folder.log(&self.members[node].name))
    }
}

/// Number of bytes shown of a log's end.
const LOG_END_BYTES: u64 = 1000;

/// Returns the last lines of a file, if it has any.
fn last_lines(path: &Path) -> Option<String> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = std::fs::File::open(path).ok()?;
    let size = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(LOG_END_BYTES))).ok()?;
    let mut end = Vec::new();
    file.take(LOG_END_BYTES).read_to_end(&mut end).ok()?;
    let text = String::from_utf8_lossy(&end).trim().to_owned();
    (!text.is_empty()).then_some(text)
}
