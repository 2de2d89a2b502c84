//! The driver's view of a member.

use std::collections::{HashSet, VecDeque};

use super::ledger::NodeSet;
use super::plan::PlannedSend;
use super::process::Process;

/// The phase of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum MemberPhase {
    /// Never started.
    #[default]
    Absent,
    /// The member has started, but has not answered `init`.
    Starting,
    /// Accepts messages.
    Ready,
    /// The member has written its last line.
    Ended,
    /// Was killed.
    Killed,
}

/// A request to be sent to a member.
#[derive(Debug)]
pub(super) enum MemberOrder {
    Multicast(PlannedSend),
    Pause(u64),
    Stats,
    Leave,
}

/// An unanswered request that is not about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Pause,
    Stats,
    Leave,
}

/// A node's requests and reports in its last incarnation.
#[derive(Debug, Default)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) process: Option<Process>,
    /// The number of the incarnation, from 1; 0 before the first.
    pub(super) inc: u32,
    pub(super) phase: MemberPhase,
    pub(super) suspended: bool,
    /// Whether the member was asked to stop.
    pub(super) stopping: bool,
    /// Whether the member was started into running groups.
    pub(super) joined: bool,
    /// Whether the member's output has ended.
    pub(super) silent: bool,
    /// The time at which the driver killed the member.
    pub(super) killed_ns: Option<u64>,
    /// Commands that the driver has not sent yet, in order.
    pub(super) orders: VecDeque<MemberOrder>,
    /// The unanswered messages, by their index in the ledger.
    pub(super) unanswered: HashSet<usize>,
    pub(super) asked: Vec<Asked>,
    /// Number of answered multicasts.
    pub(super) answered: u64,
    /// Number of delivered messages, including those that no node sent.
    pub(super) delivered: u64,
    /// Whether the member has reported that deliveries are durable.
    pub(super) durable: bool,
    /// Number of messages that the member was asked to send.
    pub(super) sent: u64,
    /// Number of messages that all members had sent when this one became ready.
    pub(super) ready_at: usize,
    /// Whether the member has installed a view since it was last resumed or reconnected.
    pub(super) moved_on: bool,
    /// The id and the members of the member's last view of each group.
    pub(super) views: Vec<Option<(u64, NodeSet)>>,
}

impl Member {
    /// Creates a node that has not been started.
    pub(super) fn new(name: String, address: String, groups: usize) -> Self {
        Self { name, address, views: vec![None; groups], ..Self::default() }
    }

    /// Returns the same node with its next process.
    pub(super) fn restarted(&self, process: Process, joined: bool) -> Self {
        let fresh = Self::new(self.name.clone(), self.address.clone(), self.views.len());
        Self {
            process: Some(process),
            inc: self.inc + 1,
            phase: MemberPhase::Starting,
            joined,
            ..fresh
        }
    }

    /// Returns whether the member has a process that has not exited.
    pub(super) fn runs(&self) -> bool {
        matches!(self.phase, MemberPhase::Starting | MemberPhase::Ready)
    }

    /// Removes an open question of this kind; returns false if there is none.
    pub(super) fn take_asked(&mut self, kind: Asked) -> bool {
        let found = self.asked.iter().position(|asked| *asked == kind);
        found.map(|place| self.asked.remove(place)).is_some()
    }

    /// Forgets requests that were not sent or not answered.
    pub(super) fn forget_orders(&mut self) {
        self.orders.clear();
        self.unanswered.clear();
        self.asked.clear();
    }

    /// Returns the name of the member's next message.
    pub(super) fn next_message(&mut self) -> String {
        let name = format!("{}/{}/{}", self.name, self.inc, self.sent);
        self.sent += 1;
        name
    }
}
