//! What the driver knows of a member.

use std::collections::{HashSet, VecDeque};

use super::ledger::NodeSet;
use super::plan::Sending;
use super::process::Process;

/// Where a member is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Never started.
    #[default]
    Absent,
    /// Started, and has not answered `init`.
    Starting,
    /// Takes messages.
    Ready,
    /// Said its last line.
    Ended,
    /// Was killed.
    Killed,
}

/// Something that a member is to be asked.
#[derive(Debug)]
pub(super) enum MemberOrder {
    Multicast(Sending),
    Pause(u64),
    Stats,
    Leave,
}

/// A request without a message that a member has not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Pause,
    Stats,
    Leave,
}

/// A node: what it was asked, and what it reported, in its last start.
#[derive(Debug, Default)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) process: Option<Process>,
    /// Which start this is, from 1; 0 before the first.
    pub(super) inc: u32,
    pub(super) phase: Phase,
    pub(super) suspended: bool,
    /// Whether it was asked to stop.
    pub(super) stopping: bool,
    /// Whether it was started into running groups.
    pub(super) joined: bool,
    /// Whether its output ended.
    pub(super) silent: bool,
    /// When it was killed.
    pub(super) killed_ns: Option<u64>,
    /// Commands that the driver has still to send to it, in order.
    pub(super) orders: VecDeque<MemberOrder>,
    /// Messages, by their place in the ledger, that it was asked to send and has not answered.
    pub(super) unanswered: HashSet<usize>,
    pub(super) asked: Vec<Asked>,
    /// How many multicasts it has answered.
    pub(super) answered: u64,
    /// How many messages it has delivered, those of nobody included.
    pub(super) delivered: u64,
    /// How many messages it was asked to send.
    pub(super) sent: u64,
    /// How many messages had been sent by all when it could take some.
    pub(super) ready_at: usize,
    /// Whether it installed a view since it was last resumed or connected again.
    pub(super) moved_on: bool,
    /// Its last view of each group.
    pub(super) views: Vec<Option<NodeSet>>,
}

impl Member {
    /// A node that has not been started.
    pub(super) fn new(name: String, address: String, groups: usize) -> Self {
        Self { name, address, views: vec![None; groups], ..Self::default() }
    }

    /// The same node with its next process.
    pub(super) fn restarted(&self, process: Process, joined: bool) -> Self {
        let fresh = Self::new(self.name.clone(), self.address.clone(), self.views.len());
        Self { process: Some(process), inc: self.inc + 1, phase: Phase::Starting, joined, ..fresh }
    }

    /// Whether its process is there and has not come to its end.
    pub(super) fn runs(&self) -> bool {
        matches!(self.phase, Phase::Starting | Phase::Ready)
    }

    /// Takes an open question of that kind off the list; false if there is none.
    pub(super) fn take_asked(&mut self, kind: Asked) -> bool {
        let found = self.asked.iter().position(|asked| *asked == kind);
        found.map(|place| self.asked.remove(place)).is_some()
    }

    /// Forgets what it was to be asked and what it was to answer.
    pub(super) fn forget_orders(&mut self) {
        self.orders.clear();
        self.unanswered.clear();
        self.asked.clear();
    }

    /// A name for its next message.
    pub(super) fn next_message(&mut self) -> String {
        let name = format!("{}/{}/{}", self.name, self.inc, self.sent);
        self.sent += 1;
        name
    }
}
