//! One process of a block experiment: a member of every group, and the root of one if it sends.
//!
//! # What is timed
//! From just before the root's send to the moment at which a receiver is told that it has the whole message, by the
//! machine's one clock; the last receiver counts. Each says its time in a group of its own back to the root, which sends the next
//! message when it has heard all: this is not part of the time, but it goes on while others still receive.
//! Every receiver then looks at each page of what it has.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tramontane_core::ids::NodeId;
use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::Window;

use super::clock::{mark, now_ns};
use super::hearing::{Ear, Hearing};
use super::pause::{Pause, Pauser, RootPauser};
use super::taking::{Back, Taken, Taking};
use crate::bench::BenchError;
use crate::bench::blocks::disturbance::Link;
use crate::bench::worker::{JOIN_LIMIT, Outcome, Task};
use crate::blocks::{BlockNode, Buffer, CreateError, Ended, Group, GroupOptions};
use crate::cli::options::AlgorithmName;
use crate::join::{JoinOptions, Meeting};
use crate::joined::BlockMemoryError;
use crate::member::Settings;

/// How long one message may take, and the end of a group.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// Why there is no hybrid.
pub(super) const RACKS: &str =
    "--algorithm hybrid needs racks, which one machine has not: take another";

/// Bytes of what a receiver says: a time.
pub(super) const SAID_BYTES: usize = 8;

/// What a member of block groups does; the bytes of a message and how many are measured are the task's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockTask {
    /// How blocks go.
    pub algorithm: AlgorithmName,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// Receives under way at a member.
    pub receives: u16,
    /// Sends under way at a member.
    pub sends: u16,
    /// The first so many members each send in a group of their own.
    pub senders: u16,
    /// Messages before those that are measured.
    pub warm_ups: u64,
    /// Messages of a root that may be under way.
    pub ahead: usize,
    /// Bytes a second that each link takes each way, if it is limited.
    pub link_bytes_per_s: Option<NonZeroU64>,
    /// A link that takes half of that.
    pub slow_link: Option<Link>,
    /// Who is delayed, if anybody.
    pub pause: Option<Pause>,
}

impl BlockTask {
    fn options(&self, message_bytes: usize) -> Result<GroupOptions, BenchError> {
        let algorithm = self.algorithm.of_no_racks();
        let algorithm = algorithm.ok_or_else(|| BenchError::Arguments(RACKS.into()))?;
        Ok(GroupOptions {
            algorithm,
            block_bytes: self.block_bytes,
            message_max: message_bytes,
            window: Window { receives: self.receives, sends: self.sends },
        })
    }

    /// How fast a member may send to each, by rank.
    fn rates(&self, own: u16, nodes: usize) -> Vec<Option<NonZeroU64>> {
        let slow = self.slow_link.and_then(|link| link.peer_of(own)).map(usize::from);
        let half = self.link_bytes_per_s.and_then(|rate| NonZeroU64::new(rate.get() / 2));
        (0..nodes)
            .map(|peer| if slow == Some(peer) { half } else { self.link_bytes_per_s })
            .collect()
    }
}

impl From<CreateError> for BenchError {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Stopped(stopped) => stopped.into(),
            error => Self::Setup(error.to_string()),
        }
    }
}

impl From<BlockMemoryError> for BenchError {
    fn from(error: BlockMemoryError) -> Self {
        Self::Setup(error.to_string())
    }
}

/// Runs one member.
pub(in crate::bench) fn run(task: &Task, part: &BlockTask) -> Result<Outcome, BenchError> {
    let nodes: Vec<NodeId> = task.group.members.iter().copied().map(NodeId).collect();
    let cancel = AtomicBool::new(false);
    let mut meeting = task.place.meeting()?;
    let own =
        task.group.rank_of(task.node).ok_or_else(|| BenchError::Setup("unknown node".into()))?.0;
    if let Meeting::Tcp(network) = &mut meeting {
        network.rates = part.rates(own, nodes.len());
    }
    let options = JoinOptions {
        meeting,
        time_limit: JOIN_LIMIT,
        cancel: &cancel,
        settings: Settings::default(),
    };
    let node = BlockNode::join(&nodes, NodeId(task.node), &options)?;
    let pause = part.pause.filter(|pause| pause.member == own);
    let member = Member { node, nodes, task, part, pauser: pause.map(Pauser::new) };
    let outcome = member.run();
    let _ = member.node.close();
    outcome
}

struct Member<'t> {
    node: BlockNode,
    nodes: Vec<NodeId>,
    task: &'t Task,
    part: &'t BlockTask,
    /// If this is the one that is delayed.
    pauser: Option<Pauser>,
}

impl Member<'_> {
    fn run(&self) -> Result<Outcome, BenchError> {
        let mut receiving = Vec::new();
        let mut sending = None;
        for root in self.nodes.iter().take(usize::from(self.part.senders)) {
            if *root == self.node.node() {
                sending = Some(self.send_in()?);
            } else {
                receiving.push(self.receive_from(*root)?);
            }
        }
        let mut outcome = match &sending {
            Some(sending) => self.send_all(sending)?,
            None => Outcome::default(),
        };
        for (group, taken) in &receiving {
            let ended = group.wait(LIMIT);
            taken.check(self.task.messages + self.part.warm_ups, ended)?;
        }
        outcome.paused_ns = self.pauser.as_ref().map(Pauser::lasted_ns).unwrap_or_default();
        Ok(outcome)
    }

    /// The members of a root's group, it first.
    fn rotated(&self, root: NodeId) -> Vec<NodeId> {
        let place = self.place(root);
        let (before, after) = self.nodes.split_at(place);
        after.iter().chain(before).copied().collect()
    }

    fn place(&self, node: NodeId) -> usize {
        self.nodes.iter().position(|known| *known == node).unwrap_or(0)
    }

    fn data_number(&self, root: NodeId) -> u16 {
        self.place(root) as u16
    }

    /// The number of the group in which a receiver says when it had a root's message.
    fn said_number(&self, root: NodeId, receiver: NodeId) -> u16 {
        (self.nodes.len() * (1 + self.place(root)) + self.place(receiver)) as u16
    }

    fn said_options() -> GroupOptions {
        GroupOptions {
            algorithm: Algorithm::Sequential,
            block_bytes: 64,
            message_max: SAID_BYTES,
            window: Window::default(),
        }
    }

    fn receive_from(&self, root: NodeId) -> Result<(Group, Arc<Taken>), BenchError> {
        let own = self.node.node();
        let (give, free) = mpsc::channel();
        for _ in 0..self.part.ahead + 1 {
            let _ = give.send(self.node.buffer(SAID_BYTES)?);
        }
        let number = self.said_number(root, own);
        let group = self.node.create(number, &[own, root], Self::said_options(), Back(give))?;
        let taken = Arc::new(Taken::default());
        // Whole blocks come, and of a pipeline's at least two.
        let block_bytes = self.part.block_bytes;
        let bytes = self.task.bytes.next_multiple_of(block_bytes).max(2 * block_bytes);
        let mut buffer = self.node.buffer(bytes)?;
        buffer.fill(1);
        let taking = Taking {
            buffer: Some(buffer),
            taken: Arc::clone(&taken),
            group,
            free,
            warm_ups: self.part.warm_ups,
            pauser: self.pauser.clone(),
        };
        let options = self.part.options(self.task.bytes)?;
        let group =
            self.node.create(self.data_number(root), &self.rotated(root), options, taking)?;
        Ok((group, taken))
    }

    fn send_in(&self) -> Result<Sending, BenchError> {
        let own = self.node.node();
        let hearing = Arc::new(Hearing::new(self.nodes.len() - 1));
        for receiver in self.nodes.iter().filter(|node| **node != own) {
            let ear = Ear::new(Arc::clone(&hearing), self.node.buffer(64)?);
            self.node.create(
                self.said_number(own, *receiver),
                &[*receiver, own],
                Self::said_options(),
                ear,
            )?;
        }
        let (give, free) = mpsc::channel();
        for _ in 0..self.part.ahead {
            let mut buffer = self.node.buffer(self.task.bytes)?;
            buffer.fill(1);
            let _ = give.send(buffer);
        }
        let options = self.part.options(self.task.bytes)?;
        let group =
            self.node.create(self.data_number(own), &self.rotated(own), options, Back(give))?;
        // Behind the numbers of all groups in which something is said.
        let number = (self.nodes.len() * (1 + self.nodes.len())) as u16;
        let pauser = self.pauser.clone();
        let pauser =
            pauser.map(|pauser| RootPauser::new(&self.node, number, pauser)).transpose()?;
        Ok(Sending { group, hearing, free, pauser })
    }

    /// Sends all messages of the own group, and closes it.
    fn send_all(&self, sending: &Sending) -> Result<Outcome, BenchError> {
        let Sending { group, hearing, free, pauser } = sending;
        let total = self.part.warm_ups + self.task.messages;
        let mut sent_ns = Vec::new();
        let mut ends_ns = Vec::new();
        while (ends_ns.len() as u64) < total {
            if (sent_ns.len() as u64) < total && sent_ns.len() - ends_ns.len() < self.part.ahead {
                let buffer = free.recv_timeout(LIMIT);
                let mut buffer = buffer.map_err(|_| said(group.ended().as_ref()))?;
                mark(&mut buffer, sent_ns.len() as u64);
                let is_measured = sent_ns.len() as u64 >= self.part.warm_ups;
                sent_ns.push(now_ns());
                group
                    .send(buffer, self.task.bytes)
                    .map_err(|refused| BenchError::Setup(refused.to_string()))?;
                if let (Some(pauser), true) = (pauser, is_measured) {
                    pauser.pause()?;
                }
            } else {
                let end = hearing.wait(ends_ns.len(), LIMIT, || group.ended().is_some());
                ends_ns.push(end.ok_or_else(|| said(group.ended().as_ref()))?);
            }
        }
        let _ = group.close(LIMIT);
        let first = usize::try_from(self.part.warm_ups).unwrap_or(0).min(sent_ns.len());
        let (sent_ns, ends_ns) = (&sent_ns[first..], &ends_ns[first..]);
        let took = sent_ns.iter().zip(ends_ns).map(|(sent, end)| end.saturating_sub(*sent));
        let span_ns = sent_ns.first().copied().zip(ends_ns.iter().max().copied());
        let latency_ns = took.map(|took| took.try_into().unwrap_or(u32::MAX)).collect();
        Ok(Outcome { latency_ns, span_ns, ..Outcome::default() })
    }
}

pub(super) fn said(ended: Option<&Ended>) -> BenchError {
    let why = ended
        .map_or_else(|| format!("a message was not everywhere after {LIMIT:?}"), Ended::to_string);
    BenchError::Setup(why)
}

/// A group in which this process sends.
struct Sending {
    group: Group,
    hearing: Arc<Hearing>,
    free: Receiver<Buffer>,
    /// If the root is the one that is delayed.
    pauser: Option<RootPauser>,
}
