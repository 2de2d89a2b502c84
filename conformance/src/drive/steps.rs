//! The execution of each step of a plan.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::error::{DriveError, Ending};
use super::ledger::only;
use super::lines::What;
use super::member::{MemberOrder, MemberPhase};
use super::names::{group_name, node_name};
use super::plan::{Condition, Step};
use super::process::{Process, ProcessStart};
use super::protocol::{
    Command, DriverLimits, GroupMembers, HUGE_BYTES_MAX, Init, MESSAGE_BYTES_MAX, NodeAddress,
    VERSION, WINDOW,
};
use super::settling::nodes_of;
use super::stage::{Goal, GoalState, Stage};
use crate::history::{EndReason, Event, FaultKind};

/// Time in addition to a member's deadline, for delays between the member and the driver.
const MARGIN: Duration = Duration::from_secs(1);

/// Time limit for reading the remaining output of a killed member.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// Limit of other members' lines that are stored meanwhile.
const STASH_MAX: usize = 100_000;

/// Time limit for processes to exit after their last line.
const EXIT_MAX: Duration = Duration::from_secs(2);

impl Stage<'_> {
    /// Runs the plan; returns true if it ran to its end. If a required condition does not occur,
    /// the remaining steps are skipped, but faults are ended and members are stopped.
    pub(super) fn play(&mut self) -> Result<bool, Ending> {
        let plan = self.plan;
        for step in &plan.steps {
            if let Some(why) = self.perform(step)? {
                self.note(format!("the plan was abandoned: {why}"));
                self.end_faults()?;
                self.settle()?;
                self.stop_all()?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Performs one step. If the plan cannot continue, returns the reason.
    fn perform(&mut self, step: &Step) -> Result<Option<String>, Ending> {
        match step {
            Step::Start(nodes) => self.start(nodes)?,
            Step::Send(list) => {
                for sending in list {
                    self.order(sending.sender, MemberOrder::Multicast(sending.clone()));
                }
            }
            Step::Pause { node, ms } => self.order(*node, MemberOrder::Pause(*ms)),
            Step::Stats(nodes) => {
                nodes.iter().for_each(|node| self.order(*node, MemberOrder::Stats))
            }
            Step::Leave(node) => self.order(*node, MemberOrder::Leave),
            Step::Stop(node) => self.suspend(*node)?,
            Step::Continue(node) => self.resume(*node)?,
            Step::Kill { nodes, gap_us } => {
                self.kill(nodes, Duration::from_micros(*gap_us), false)?;
            }
            Step::CutPower(nodes) => self.kill(nodes, Duration::ZERO, true)?,
            Step::Choose { part, groups } => return Ok(self.choose(*part, groups)),
            Step::ToChosen(deed) => self.do_to_chosen(*deed)?,
            Step::Part(side) => self.part(side)?,
            Step::Cut(links) => self.cut(links)?,
            Step::Slow { node, delay_ms } => self.slow(*node, *delay_ms)?,
            Step::Lose { node, percent } => self.lose(*node, *percent)?,
            Step::Fill(node) => self.fill(*node)?,
            Step::MakeRoom(node) => self.make_room(*node)?,
            Step::Heal => self.heal()?,
            Step::EndFaults => self.end_faults()?,
            Step::Await(condition) => return self.require(condition),
            Step::AwaitAtMost { condition, ms } => {
                self.wait(&Goal::Met(condition), Duration::from_millis(*ms))?;
            }
            Step::Wait { ms } => {
                self.wait(&Goal::Later, Duration::from_millis(*ms))?;
            }
            Step::Settle => self.settle()?,
            Step::StopAll => self.stop_all()?,
        }
        Ok(None)
    }

    fn order(&mut self, node: usize, order: MemberOrder) {
        let member = &mut self.members[node];
        // Requests to a dead member are dropped; those to a starting one wait.
        if member.runs() {
            member.orders.push_back(order);
        }
    }

    /// Starts nodes' processes. All of them are started before the driver waits for any.
    pub(super) fn start(&mut self, nodes: &[usize]) -> Result<(), Ending> {
        let join = self.members.iter().any(|member| member.runs());
        for &node in nodes {
            let member = &self.members[node];
            if member.runs() {
                continue;
            }
            let inc = member.inc + 1;
            let log = self.folder.log(&member.name);
            let command = self.setting.command(node);
            let command = match &self.disks {
                Some(disks) => {
                    disks.restore_power(node);
                    disks.within(node, &command)
                }
                None => command,
            };
            let command = match &self.network {
                Some(network) => network.within(node, &command),
                None => command,
            };
            self.history_file.start(node, inc)?;
            let received = self.to_heard.clone();
            let start = ProcessStart {
                command: &command,
                mark: &self.mark,
                node,
                inc,
                log: &log,
                clock: self.clock,
                received,
            };
            let process = Process::start(start).map_err(|source| DriveError::Adapter {
                command: shell_words::join(self.setting.adapter),
                source,
            })?;
            self.members[node] = self.members[node].restarted(process, join);
            for seen in &mut self.seen {
                *seen &= !only(node);
            }
        }
        for &node in nodes {
            self.send_init(node, join);
        }
        Ok(())
    }

    fn send_init(&self, node: usize, join: bool) {
        let member = &self.members[node];
        let is_there = |node: &&usize| self.members[**node].runs();
        let nodes = self.members.iter();
        let groups: Vec<String> = (0..self.plan.groups.len()).map(group_name).collect();
        let present = |list: &[usize]| -> Vec<&str> {
            list.iter().filter(is_there).map(|node| self.members[*node].name.as_str()).collect()
        };
        let all = |list: &[usize]| -> Vec<&str> {
            list.iter().map(|node| self.members[*node].name.as_str()).collect()
        };
        let groups = groups.iter().zip(&self.plan.groups).map(|(name, group)| GroupMembers {
            group: name,
            members: present(&group.members),
            senders: present(&group.senders),
            all_members: all(&group.members),
        });
        self.send(
            node,
            &Command::Init(Init {
                protocol: VERSION,
                node: &member.name,
                inc: member.inc,
                join,
                nodes: nodes
                    .map(|one| NodeAddress { node: &one.name, address: &one.address })
                    .collect(),
                groups: groups.collect(),
                limits: DriverLimits {
                    message_bytes_max: MESSAGE_BYTES_MAX,
                    huge_bytes_max: HUGE_BYTES_MAX,
                    window: WINDOW,
                    deadline_ms: u64::try_from(self.setting.deadline.as_millis())
                        .unwrap_or(u64::MAX),
                },
                seed: self.setting.seed,
                shared: &self.folder.shared(),
                storage: &self.folder.storage(&member.name),
            }),
        );
    }

    /// Waits for a required condition. If it does not occur, returns the reason why the plan cannot
    /// continue.
    fn require(&mut self, condition: &Condition) -> Result<Option<String>, Ending> {
        let time = match condition {
            Condition::Ready(_) | Condition::ChosenReady => self.setting.deadline + MARGIN,
            _ => self.setting.deadline,
        };
        let state = self.wait_patiently(&Goal::Met(condition), time)?;
        if state == GoalState::Reached {
            return Ok(None);
        }
        match condition {
            Condition::Ready(nodes) if state == GoalState::Open => {
                return Err(self.no_answer(nodes));
            }
            Condition::ChosenReady if state == GoalState::Open => {
                return Err(self.no_answer(&self.leaders.chosen()));
            }
            _ => {}
        }
        let missing = self.missing().map(|missing| format!("; {missing}")).unwrap_or_default();
        let why = if state == GoalState::Hopeless {
            "can no longer happen"
        } else {
            "did not happen in time"
        };
        Ok(Some(format!("the plan waited until {condition}, which {why}{missing}")))
    }

    fn no_answer(&self, nodes: &[usize]) -> Ending {
        let silent = |node: &&usize| self.members[**node].phase == MemberPhase::Starting;
        let node = nodes.iter().find(silent).or(nodes.first()).copied().unwrap_or(0);
        let name = &self.members[node].name;
        let what = format!(
            "{name} did not answer `init` within {} s",
            self.setting.deadline.as_secs_f64()
        );
        self.broken_by(node, what)
    }

    pub(super) fn suspend(&mut self, node: usize) -> Result<(), Ending> {
        self.had_faults = true;
        let member = &mut self.members[node];
        if let Some(process) = member.process.as_ref().filter(|_| member.runs()) {
            process
                .suspend()
                .map_err(|source| DriveError::system("cannot suspend a process", source))?;
            member.suspended = true;
            self.history_file.fault(FaultKind::Stop, &[node], self.clock.now_ns())?;
        }
        Ok(())
    }

    pub(super) fn resume(&mut self, node: usize) -> Result<(), Ending> {
        let member = &mut self.members[node];
        if !std::mem::take(&mut member.suspended) {
            return Ok(());
        }
        member.moved_on = false;
        self.history_file.fault(FaultKind::Continue, &[node], self.clock.now_ns())?;
        if let Some(process) = &member.process {
            process
                .resume()
                .map_err(|source| DriveError::system("cannot resume a process", source))?;
        }
        Ok(())
    }

    /// Kills members in turn, then records the lines that they had written before, followed by the
    /// kills. Also cuts their power if requested.
    pub(super) fn kill(
        &mut self,
        nodes: &[usize],
        gap: Duration,
        with_power: bool,
    ) -> Result<(), Ending> {
        self.had_faults = true;
        let mut victims: Vec<usize> = nodes.to_vec();
        victims.retain(|node| self.members[*node].runs());
        for (place, &node) in victims.iter().enumerate() {
            if place > 0 && !gap.is_zero() {
                std::thread::sleep(gap);
            }
            if let Some(process) = &self.members[node].process {
                match self.disks.as_ref().filter(|_| with_power) {
                    Some(disks) => disks.cut_power(node, || process.strike()),
                    None => process.strike(),
                }
            }
            self.members[node].killed_ns = Some(self.clock.now_ns());
        }
        self.bury(&victims)?;
        for &node in &victims {
            let t_ns = self.members[node].killed_ns.unwrap_or_default();
            let how = with_power.then_some("with its power: what was not synced is lost");
            self.history_file.fault_told(FaultKind::Kill, &[node], t_ns, how)?;
        }
        Ok(())
    }

    /// Handles the lines that members wrote before they were killed, and marks the members as
    /// killed.
    fn bury(&mut self, victims: &[usize]) -> Result<(), Ending> {
        for &node in victims {
            let member = &mut self.members[node];
            member.suspended = false;
            // The output ends after the process has exited, and contains everything written before.
            if let Some(process) = &mut member.process {
                process.kill();
            }
        }
        self.drain(victims)?;
        for &node in victims {
            let member = &mut self.members[node];
            member.process = None;
            member.phase = MemberPhase::Killed;
            member.forget_orders();
        }
        Ok(())
    }

    /// Handles these members' output to its end, and stores the lines of other members.
    fn drain(&mut self, victims: &[usize]) -> Result<(), Ending> {
        let until = Instant::now() + DRAIN_MAX;
        let waiting = std::mem::take(&mut self.stash).into_iter();
        let (theirs, others): (VecDeque<_>, VecDeque<_>) =
            waiting.partition(|received| victims.contains(&received.node));
        self.stash = others;
        for received in theirs {
            self.receive(received)?;
        }
        while victims.iter().any(|node| !self.members[*node].silent) && self.stash.len() < STASH_MAX
        {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(received) = self.received.recv_timeout(left) else { break };
            if victims.contains(&received.node) {
                // The reader stops at an overlong line, so it reports no end of the output
                // afterwards.
                let last = matches!(received.what, What::TooLong(_));
                let node = received.node;
                self.receive(received)?;
                self.members[node].silent |= last;
            } else {
                self.stash.push_back(received);
            }
        }
        Ok(())
    }

    /// Waits until everything has been delivered and no lines arrive, but at most until the
    /// deadline or the end of all members. If anything is missing then, the checker judges it.
    fn settle(&mut self) -> Result<(), Ending> {
        let state = self.wait_patiently(&Goal::Settled, self.setting.deadline)?;
        let silent = self.without_durable();
        if state == GoalState::Open && silent != 0 {
            self.not_durable = Some(format!(
                "the implementation claims durable, but {} delivered messages and wrote no \
                 `durable` line before the deadline",
                nodes_of(silent)
            ));
        }
        if state != GoalState::Reached
            && let Some(missing) = self.missing()
        {
            let when = if state == GoalState::Hopeless {
                "when all members had ended"
            } else {
                "at the deadline"
            };
            self.note(format!("{when}, {missing}"));
        }
        Ok(())
    }

    /// Asks all members to stop. A member that does not stop within the deadline counts as hung.
    fn stop_all(&mut self) -> Result<(), Ending> {
        for node in 0..self.members.len() {
            let member = &mut self.members[node];
            if member.runs() {
                member.stopping = true;
                member.orders.clear();
                let inc = member.inc;
                // The request is recorded before the member can know of it.
                self.history_file.of(node, self.clock.now_ns(), |t_ns, node| Event::Stop {
                    t_ns,
                    node,
                    inc,
                })?;
                self.send(node, &Command::Stop);
            }
        }
        self.wait_patiently(&Goal::Stopped, self.setting.deadline)?;
        for node in 0..self.members.len() {
            if self.members[node].phase == MemberPhase::Starting {
                return Err(self.no_answer(&[node]));
            }
            if self.members[node].phase == MemberPhase::Ready {
                self.end_hung(node)?;
            }
        }
        self.wait_patiently(&Goal::Silent, EXIT_MAX)?;
        for node in 0..self.members.len() {
            let member = &mut self.members[node];
            if member.process.take().is_some() && !member.silent {
                let name = member.name.clone();
                self.note(format!("{name} wrote `halt`, but its process did not end"));
            }
        }
        Ok(())
    }

    fn end_hung(&mut self, node: usize) -> Result<(), Ending> {
        let (inc, name) = (self.members[node].inc, self.members[node].name.clone());
        if let Some(end) = self.log_end(node) {
            self.note(format!("{name} did not stop; its log ends with: {end}"));
        }
        let t_ns = self.clock.now_ns();
        self.members[node].killed_ns = Some(t_ns);
        self.bury(&[node])?;
        self.history_file.end(node, inc, t_ns, EndReason::Hung)?;
        Ok(())
    }
}

impl std::fmt::Display for Condition {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = |nodes: &[usize]| {
            nodes.iter().map(|node| node_name(*node)).collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::Ready(nodes) => write!(out, "{} can accept messages", names(nodes)),
            Self::Answered { node, count } => {
                write!(out, "n{node} answers {count} multicasts")
            }
            Self::Delivered { node, count } => {
                write!(out, "n{node} delivers {count} messages")
            }
            Self::AllDelivered => out.write_str("everything is delivered"),
            Self::Durable(nodes) => {
                write!(out, "durable deliveries are reported by {}", names(nodes))
            }
            Self::Ended(node) => write!(out, "n{node} ends"),
            Self::ViewWithout(nodes) => write!(out, "a view without {} is installed", names(nodes)),
            Self::Resolved(nodes) => {
                write!(out, "{} halts, installs a view or delivers everything", names(nodes))
            }
            Self::DeliveredAlone(node) => {
                write!(out, "n{node} delivers a message that no other node has delivered")
            }
            Self::Led(groups) => {
                let groups: Vec<String> = groups.iter().map(|group| group_name(*group)).collect();
                write!(out, "{} has a leader", groups.join(", "))
            }
            Self::OthersLead => out.write_str("another member leads"),
            Self::ChosenDelivered { count } => {
                write!(out, "the chosen members deliver {count} messages")
            }
            Self::ChosenReady => out.write_str("the chosen members can accept messages"),
        }
    }
}
