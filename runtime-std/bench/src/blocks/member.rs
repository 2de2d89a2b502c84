//! One process of a block experiment: a member of every group, and the root of one if it sends.
//!
//! # Measured time
//! Measures the time from just before the root's send until a receiver learns that it has the whole
//! message, by the machine's single clock; the last receiver counts. Each receiver reports its time
//! to the root in a group of its own, and the root sends the next message when it has all reports.
//! This is not part of the measured time, but it happens while others are still receiving.
//! Afterwards every receiver checks each page of the message.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use tramontane_core::ids::NodeId;
use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::Window;

use super::completions::{Completions, REPORT_BYTES, ReportReader};
use super::mark::mark;
use super::receiving::{Receiving, ReturnBuffers, RootMessages};
use super::task::{BlockOutcome, BlockTask, LIMIT, Span, ended_early};
use crate::error::BenchError;
use crate::experiment::{self, Experiment, Kind};
use tramontane_local::clock::now_ns;
use tramontane_runtime::blocks::{BlockNode, Buffer, Group, GroupOptions};
use tramontane_runtime::group::Running;

impl Experiment for BlockTask {
    const KIND: Kind = Kind::Blocks;
    type Outcome = BlockOutcome;

    fn run(
        &self,
        own: &experiment::ExperimentMember,
    ) -> Result<(BlockOutcome, Option<Running>), BenchError> {
        let (group, options) = own.start()?;
        let nodes: Vec<NodeId> = group.nodes.iter().map(|node| NodeId(node.id)).collect();
        let node = BlockNode::start(group, options)?;
        let member = BlockMember { node, nodes, task: self };
        let outcome = member.run();
        let _ = member.node.close();
        Ok((outcome?, None))
    }
}

struct BlockMember<'t> {
    node: BlockNode,
    nodes: Vec<NodeId>,
    task: &'t BlockTask,
}

impl BlockMember<'_> {
    fn run(&self) -> Result<BlockOutcome, BenchError> {
        let mut receiving = Vec::new();
        let mut sending = None;
        for root in self.nodes.iter().take(usize::from(self.task.senders)) {
            if *root == self.node.node() {
                sending = Some(self.send_in()?);
            } else {
                receiving.push(self.receive_from(*root)?);
            }
        }
        let outcome = match &sending {
            Some(sending) => self.send_all(sending)?,
            None => BlockOutcome::default(),
        };
        for (group, received) in &receiving {
            let ended = group.wait(LIMIT);
            received.check(self.task.messages + self.task.warm_ups, ended)?;
        }
        Ok(outcome)
    }

    /// Returns the members of a root's group, the root first.
    fn rotated(&self, root: NodeId) -> Vec<NodeId> {
        let place = self.place(root);
        let (before, after) = self.nodes.split_at(place);
        after.iter().chain(before).copied().collect()
    }

    fn place(&self, node: NodeId) -> usize {
        self.nodes.iter().position(|known| *known == node).unwrap_or(0)
    }

    fn data_number(&self, root: NodeId) -> u64 {
        self.place(root) as u64
    }

    /// Returns the number of the group in which a receiver reports that it has a root's message.
    fn report_number(&self, root: NodeId, receiver: NodeId) -> u64 {
        (self.nodes.len() * (1 + self.place(root)) + self.place(receiver)) as u64
    }

    fn report_options() -> GroupOptions {
        GroupOptions {
            algorithm: Algorithm::Sequential,
            block_bytes: 64,
            message_max: REPORT_BYTES,
            window: Window::default(),
        }
    }

    fn receive_from(&self, root: NodeId) -> Result<(Group, Arc<RootMessages>), BenchError> {
        let own = self.node.node();
        let (give, free) = mpsc::channel();
        for _ in 0..self.task.ahead + 1 {
            let _ = give.send(self.node.buffer(REPORT_BYTES)?);
        }
        let number = self.report_number(root, own);
        let group =
            self.node.create(number, &[own, root], Self::report_options(), ReturnBuffers(give))?;
        let received = Arc::new(RootMessages::default());
        // Blocks arrive whole, and in a pipeline there are at least two.
        let block_bytes = self.task.block_bytes;
        let bytes = self.task.message_bytes.next_multiple_of(block_bytes).max(2 * block_bytes);
        let mut buffer = self.node.buffer(bytes)?;
        buffer.fill(1);
        let receiving =
            Receiving { buffer: Some(buffer), received: Arc::clone(&received), group, free };
        let options = self.task.options()?;
        let group =
            self.node.create(self.data_number(root), &self.rotated(root), options, receiving)?;
        Ok((group, received))
    }

    fn send_in(&self) -> Result<SendingGroup, BenchError> {
        let own = self.node.node();
        let completions = Arc::new(Completions::new(self.nodes.len() - 1));
        for receiver in self.nodes.iter().filter(|node| **node != own) {
            let reader = ReportReader::new(Arc::clone(&completions), self.node.buffer(64)?);
            self.node.create(
                self.report_number(own, *receiver),
                &[*receiver, own],
                Self::report_options(),
                reader,
            )?;
        }
        let (give, free) = mpsc::channel();
        for _ in 0..self.task.ahead {
            let mut buffer = self.node.buffer(self.task.message_bytes)?;
            buffer.fill(1);
            let _ = give.send(buffer);
        }
        let options = self.task.options()?;
        let group = self.node.create(
            self.data_number(own),
            &self.rotated(own),
            options,
            ReturnBuffers(give),
        )?;
        Ok(SendingGroup { group, completions, free })
    }

    /// Sends all messages of the local group, and closes it.
    fn send_all(&self, sending: &SendingGroup) -> Result<BlockOutcome, BenchError> {
        let SendingGroup { group, completions, free } = sending;
        let total = self.task.warm_ups + self.task.messages;
        let mut sent_ns = Vec::new();
        let mut ends_ns = Vec::new();
        while (ends_ns.len() as u64) < total {
            if (sent_ns.len() as u64) < total && sent_ns.len() - ends_ns.len() < self.task.ahead {
                let buffer = free.recv_timeout(LIMIT);
                let mut buffer = buffer.map_err(|_| ended_early(group.ended().as_ref()))?;
                mark(&mut buffer, sent_ns.len() as u64);
                sent_ns.push(now_ns());
                group
                    .send(buffer, self.task.message_bytes)
                    .map_err(|refused| BenchError::Setup(refused.to_string()))?;
            } else {
                let end = completions.wait(ends_ns.len(), LIMIT, || group.ended().is_some());
                ends_ns.push(end.ok_or_else(|| ended_early(group.ended().as_ref()))?);
            }
        }
        let _ = group.close(LIMIT);
        let first = usize::try_from(self.task.warm_ups).unwrap_or(0).min(sent_ns.len());
        let (sent_ns, ends_ns) = (&sent_ns[first..], &ends_ns[first..]);
        let took = sent_ns.iter().zip(ends_ns).map(|(sent, end)| end.saturating_sub(*sent));
        let span = sent_ns.first().zip(ends_ns.iter().max());
        let span = span.map(|(begin, end)| Span { begin_ns: *begin, end_ns: *end });
        let latency_ns = took.map(|took| took.try_into().unwrap_or(u32::MAX)).collect();
        Ok(BlockOutcome { latency_ns, span })
    }
}

/// A group in which this process sends.
struct SendingGroup {
    group: Group,
    completions: Arc<Completions>,
    free: Receiver<Buffer>,
}
