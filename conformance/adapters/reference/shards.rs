//! The sequencer's state for disjoint groups without views: one order for all entries, all of which
//! are kept.
//!
//! Invariants:
//! - only the sequencer decides the order, and it is never killed, so an entry is stable at once;
//! - a member gets all entries of its groups in order, from the first one on, whenever it joins:
//!   first the earlier ones, which are the state that it takes over, then the others;
//! - a group has one leader at a time, which is connected; its term rises with each leader. A
//!   leader has nothing to do here. A leader that does not acknowledge entries for [`SUSPECT`] is
//!   suspected, and another one leads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use crate::mutants::Wrong;
use crate::sequence::Sequence;
use crate::wire::{self, Down, Entry, Membership, Up};

/// How long a leader may leave entries unacknowledged. A killed leader is noticed at once; this
/// limit is for a suspended one, and must not affect a leader on a busy machine.
const SUSPECT: Duration = Duration::from_secs(1);

/// Interval between checks while something is awaited.
const REST: Duration = Duration::from_millis(25);

/// One order for all entries, and the connected nodes.
pub struct Shards {
    /// All messages sent, in order. An entry's number is its position, from 1.
    pub entries: Vec<Ordered>,
    pub peers: BTreeMap<u64, ShardPeer>,
    pub groups: BTreeMap<String, Shard>,
    /// Whether the run is ending, so that no more leaders are elected.
    ending: bool,
    pub wrong: Wrong,
}

/// An entry, and its line for members.
#[derive(Clone)]
pub struct Ordered {
    pub sender: String,
    pub groups: Vec<String>,
    line: Arc<str>,
}

/// A connection: a member of groups, or a client, which is a member of none.
pub struct ShardPeer {
    outbox: Sender<Arc<str>>,
    /// The node at the other end, once known.
    pub node: Option<String>,
    pub groups: Vec<String>,
    /// The last entry sent to it, and the last one that it has.
    sent: u64,
    have: u64,
    /// The time since which it has acknowledged nothing, if there is something to acknowledge.
    waits_since: Option<Instant>,
}

/// A group.
#[derive(Default)]
pub struct Shard {
    pub members: Vec<String>,
    /// The connection of its leader.
    leader: Option<u64>,
    pub term: u64,
}

impl ShardPeer {
    fn is_late(&self) -> bool {
        self.waits_since.is_some_and(|since| since.elapsed() > SUSPECT)
    }

    /// Returns whether the peer is a member of any of these groups.
    pub fn is_for(&self, groups: &[String]) -> bool {
        self.groups.iter().any(|group| groups.contains(group))
    }
}

impl Sequence for Shards {
    fn is_alone(&self) -> bool {
        self.peers.is_empty()
    }

    fn open(&mut self, connection: u64, outbox: Sender<Arc<str>>) {
        let peer = ShardPeer {
            outbox,
            node: None,
            groups: Vec::new(),
            sent: 0,
            have: 0,
            waits_since: None,
        };
        self.peers.insert(connection, peer);
    }

    fn hear(&mut self, connection: u64, up: Up) {
        let Some(peer) = self.peers.get(&connection) else { return };
        match (up, peer.node.clone()) {
            (Up::Hello { node, groups, .. }, None) => self.admit(connection, &node, groups),
            (Up::Send { message, groups, payload }, Some(sender)) => {
                self.order(sender, groups, payload);
                self.tell(connection, &Down::Taken { message });
            }
            (Up::Have { upto }, Some(_)) => self.acknowledge(connection, upto),
            (Up::Stop, Some(_)) => self.ending = true,
            _ => self.close(connection),
        }
    }

    fn close(&mut self, connection: u64) {
        self.peers.remove(&connection);
        self.elect();
    }

    fn rest(&self) -> Option<Duration> {
        let waits = self.peers.values().any(|peer| peer.waits_since.is_some());
        (waits || self.wrong.waits()).then_some(REST)
    }

    fn wake(&mut self) {
        self.elect();
        self.release();
    }
}

impl Shards {
    /// Creates an order without members.
    pub fn new(wrong: Wrong) -> Self {
        Self {
            entries: Vec::new(),
            peers: BTreeMap::new(),
            groups: BTreeMap::new(),
            ending: false,
            wrong,
        }
    }

    fn admit(&mut self, connection: u64, node: &str, memberships: Vec<Membership>) {
        // An earlier incarnation of the node is dead, even if that was not noticed yet.
        self.peers.retain(|_, peer| peer.node.as_deref() != Some(node));
        let Some(peer) = self.peers.get_mut(&connection) else { return };
        peer.node = Some(node.to_owned());
        peer.groups = memberships.iter().map(|of| of.group.clone()).collect();
        for Membership { group, members } in memberships {
            self.groups.entry(group).or_default().members = members;
        }
        let state = self.entries.len() as u64;
        self.tell(connection, &Down::Welcome { state });
        let peer = &self.peers[&connection];
        let is_for = |number: &u64| peer.is_for(&self.entries[*number as usize - 1].groups);
        let numbers: Vec<u64> = (1..=state).filter(is_for).skip(self.forgotten()).collect();
        for number in numbers {
            self.give(connection, number);
        }
        self.tell(connection, &Down::Current);
        self.elect();
    }

    fn acknowledge(&mut self, connection: u64, upto: u64) {
        if let Some(peer) = self.peers.get_mut(&connection) {
            peer.have = upto;
            peer.waits_since = (peer.have < peer.sent).then(Instant::now);
        }
    }

    /// Assigns a message the next position in the order.
    fn order(&mut self, sender: String, groups: Vec<String>, payload: String) {
        let number = self.entries.len() as u64 + 1;
        let entry = Entry::Message { sender: sender.clone(), groups: groups.clone(), payload };
        let line = wire::line(&Down::Entry { number, entry }).into();
        let to = self.peers.iter().filter(|(_, peer)| peer.is_for(&groups));
        let to: Vec<u64> = to.map(|(connection, _)| *connection).collect();
        self.entries.push(Ordered { sender, groups, line });
        for (connection, number) in self.misdirect(number, to) {
            self.give(connection, number);
        }
    }

    /// Sends a stable entry to a member.
    pub fn give(&mut self, connection: u64, number: u64) {
        let line = Arc::clone(&self.entries[number as usize - 1].line);
        if let Some(peer) = self.peers.get_mut(&connection) {
            peer.sent = number.max(peer.sent);
            peer.waits_since.get_or_insert_with(Instant::now);
            // If a member cannot be reached, it is gone, and its connection will show that.
            let _ = peer.outbox.send(line);
        }
        self.tell(connection, &Down::Stable { upto: number });
    }

    fn tell(&self, connection: u64, down: &Down) {
        if let Some(peer) = self.peers.get(&connection) {
            let _ = peer.outbox.send(wire::line(down).into());
        }
    }

    /// Elects a leader for each group without a responsive one. The first election waits until all
    /// members have connected, so that it does not depend on timing.
    fn elect(&mut self) {
        if self.ending {
            return;
        }
        for group in self.groups.keys().cloned().collect::<Vec<_>>() {
            let shard = &self.groups[&group];
            let leads =
                |connection: u64| self.peers.get(&connection).is_some_and(|peer| !peer.is_late());
            let here: Vec<u64> =
                shard.members.iter().filter_map(|member| self.connection(member)).collect();
            let is_first = shard.term == 0;
            if shard.leader.is_some_and(leads) || is_first && here.len() < shard.members.len() {
                continue;
            }
            let Some(next) = here.into_iter().find(|connection| leads(*connection)) else {
                continue;
            };
            self.enthrone(&group, next);
        }
    }

    fn enthrone(&mut self, group: &str, next: u64) {
        let Some(shard) = self.groups.get_mut(group) else { return };
        shard.term += 1;
        shard.leader = Some(next);
        let term = shard.term;
        self.tell(next, &Down::Leads { group: group.to_owned(), term });
        for (connection, number) in self.doubled(group) {
            self.give(connection, number);
        }
    }

    fn connection(&self, node: &str) -> Option<u64> {
        let found = self.peers.iter().find(|(_, peer)| peer.node.as_deref() == Some(node));
        found.map(|(connection, _)| *connection)
    }
}
