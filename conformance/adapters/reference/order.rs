//! The sequencer's state: one order for all entries of all groups.
//!
//! Invariants:
//! - an entry goes exactly to the nodes that are members of its groups at its position in the
//!   order;
//! - an entry is stable when each member to which it was sent has it or is gone, and all entries
//!   before it are stable. No member acts on an entry before it is stable. Therefore all members
//!   have what any member delivered, even after a kill;
//! - a view is an entry like any other. Therefore all members that go from one view to the next
//!   deliver the same messages in between;
//! - a member that is suspended for [`SILENCE_MAX`] is lost, like one whose connection ends;
//! - a view's id is never used twice, even by a later sequencer of the same folder;
//! - a group that has lost its majority within [`GATHER`] gets no next view: the remaining members
//!   are told to halt.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use crate::mutants::Mutation;
use crate::sequence::Sequence;
use crate::wire::{self, Down, Entry, Membership, Up};

/// Joins, leaves and losses within this time are combined into one change of views.
const GATHER: Duration = Duration::from_millis(50);

/// Time without acknowledgement after which a suspended member is lost. A member that only waits
/// for its machine is not lost: slow machines must not remove members from their groups. Time in
/// which the sequencer itself did not run does not count either.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// The most time that counts between two checks.
const LOOK_MAX: Duration = Duration::from_millis(40);

/// The file of view ids in the shared folder.
const VIEW_IDS: &str = "sequencer.views";

/// One order for all entries.
pub struct EntryOrder {
    next: u64,
    /// The entries that are not stable, in order.
    pending: VecDeque<Pending>,
    connections: BTreeMap<u64, ReferenceConnection>,
    /// Each group's members, in the order in which they joined.
    members: BTreeMap<String, Vec<String>>,
    view_ids: BTreeMap<String, u64>,
    change: ViewDifference,
    /// How long the sequencer has run, and the time of its last check.
    ran: Duration,
    looked: Instant,
    mutation: Option<Mutation>,
}

/// A member's connection.
struct ReferenceConnection {
    outbox: Sender<Arc<str>>,
    /// The node at the other end and its process, once the peer has sent them.
    node: Option<String>,
    pid: u32,
}

/// An entry that is not stable.
struct Pending {
    number: u64,
    to: Vec<u64>,
    lacking: BTreeSet<u64>,
    /// The sequencer's running time when the entry was appended.
    since: Duration,
    /// The connection from which it came, and its name there.
    sent: Option<(u64, String)>,
}

/// The differences between the current and the next views.
#[derive(Default)]
struct ViewDifference {
    due: Option<Instant>,
    /// The joining nodes, and the groups that name each of them.
    coming: Vec<(String, Vec<String>)>,
    leaving: Vec<(u64, String)>,
    lost: Vec<String>,
}

impl ViewDifference {
    /// Starts to gather changes, if it has not started yet.
    fn begin(&mut self) {
        self.due.get_or_insert_with(|| Instant::now() + GATHER);
    }

    /// Returns the members of a view that remain in the next one.
    fn stay(&self, before: &[String]) -> Vec<String> {
        let leaves = |node: &&String| self.leaving.iter().any(|(_, leaver)| leaver == *node);
        before.iter().filter(|node| !self.lost.contains(node) && !leaves(node)).cloned().collect()
    }

    /// Returns the number of a view's members that are lost.
    fn lost_of(&self, before: &[String]) -> usize {
        before.iter().filter(|node| self.lost.contains(node)).count()
    }

    /// Iterates over the nodes that join a group and were not lost again.
    fn come(&self, group: &String) -> impl Iterator<Item = String> {
        let comes = |(node, groups): &&(String, Vec<String>)| {
            groups.contains(group) && !self.lost.contains(node)
        };
        self.coming.iter().filter(comes).map(|(node, _)| node.clone())
    }
}

impl Sequence for EntryOrder {
    fn is_alone(&self) -> bool {
        self.connections.is_empty()
    }

    fn open(&mut self, connection: u64, outbox: Sender<Arc<str>>) {
        self.connections.insert(connection, ReferenceConnection { outbox, node: None, pid: 0 });
    }

    fn hear(&mut self, connection: u64, up: Up) {
        let Some(known) = self.connections.get(&connection) else { return };
        match (up, known.node.clone()) {
            (Up::Hello { node, pid, groups }, None) => {
                self.admit(connection, (&node, pid), names(groups));
            }
            (Up::Send { message, groups, payload }, Some(sender)) => {
                let to = self.addressees(&groups);
                let entry = Entry::Message { sender, groups, payload };
                self.append(entry, to, Some((connection, message)));
            }
            (Up::Have { upto }, Some(_)) => self.acknowledge(connection, upto),
            (Up::Leave, Some(node)) => {
                self.change.leaving.push((connection, node));
                self.change.begin();
            }
            (Up::Stop, Some(node)) => {
                self.members
                    .values_mut()
                    .for_each(|members| members.retain(|member| *member != node));
            }
            _ => self.close(connection),
        }
        self.settle();
    }

    fn close(&mut self, connection: u64) {
        let gone = self.connections.remove(&connection);
        for pending in &mut self.pending {
            pending.lacking.remove(&connection);
        }
        if let Some(node) = gone.and_then(|gone| gone.node) {
            self.change.lost.push(node);
            self.change.begin();
        }
        self.settle();
    }

    fn rest(&self) -> Option<Duration> {
        let change = self.change.due.map(|due| due.saturating_duration_since(Instant::now()));
        let look = (!self.pending.is_empty()).then_some(LOOK_MAX / 2);
        change.into_iter().chain(look).min()
    }

    fn wake(&mut self) {
        self.ran += self.looked.elapsed().min(LOOK_MAX);
        self.looked = Instant::now();
        self.lose_the_silent();
        if self.change.due.is_some_and(|due| due <= Instant::now()) {
            self.change_views();
        }
    }
}

impl EntryOrder {
    /// Creates an order without members.
    pub fn new(mutation: Option<Mutation>) -> Self {
        let kept = std::fs::read(VIEW_IDS).ok().and_then(|text| serde_json::from_slice(&text).ok());
        Self {
            next: 1,
            pending: VecDeque::new(),
            connections: BTreeMap::new(),
            members: BTreeMap::new(),
            view_ids: kept.unwrap_or_default(),
            change: ViewDifference::default(),
            ran: Duration::ZERO,
            looked: Instant::now(),
            mutation,
        }
    }

    fn admit(&mut self, connection: u64, (node, pid): (&str, u32), groups: Vec<String>) {
        // An earlier incarnation of the node is dead, even if that was not noticed yet.
        for former in self.connections_of(&[node.to_owned()]) {
            self.close(former);
        }
        if self.change.lost.iter().any(|lost| lost == node) {
            self.change_views();
        }
        if let Some(known) = self.connections.get_mut(&connection) {
            (known.node, known.pid) = (Some(node.to_owned()), pid);
        }
        self.tell(connection, &Down::Welcome { state: 0 });
        self.change.coming.push((node.to_owned(), groups));
        self.change.begin();
    }

    /// Removes a member that has not acknowledged the oldest entry for too long from its groups.
    /// The member may learn of it later.
    fn lose_the_silent(&mut self) {
        let Some(oldest) = self.pending.front() else { return };
        if self.ran.saturating_sub(oldest.since) < SILENCE_MAX {
            return;
        }
        let is_stopped = |connection: &u64| {
            self.connections.get(connection).is_some_and(|known| is_suspended(known.pid))
        };
        let silent: Vec<u64> = oldest.lacking.iter().copied().filter(is_stopped).collect();
        for silent in silent {
            self.tell(silent, &Down::Halt { text: "it was silent for too long".to_owned() });
            self.close(silent);
        }
    }

    fn acknowledge(&mut self, connection: u64, upto: u64) {
        for pending in self.pending.iter_mut().take_while(|pending| pending.number <= upto) {
            pending.lacking.remove(&connection);
        }
    }

    /// Installs the views that are due in all groups.
    fn change_views(&mut self) {
        let change = std::mem::take(&mut self.change);
        for group in change.coming.iter().flat_map(|(_, groups)| groups) {
            self.members.entry(group.clone()).or_default();
        }
        let mut halted = Vec::new();
        for (group, before) in self.members.clone() {
            let mut next = change.stay(&before);
            // A member that leaves does not count as a loss.
            if change.lost_of(&before) * 2 >= before.len() && !before.is_empty() {
                halted.extend(next.drain(..).map(|node| (node, group.clone())));
            }
            if let Some(mutation) = self.mutation.as_ref().filter(|_| !change.lost.is_empty()) {
                halted.extend(
                    mutation.break_up(&mut next).into_iter().map(|node| (node, group.clone())),
                );
            }
            next.extend(change.come(&group));
            if next != before {
                self.members.insert(group.clone(), next);
                self.install(&group);
            }
        }
        for (connection, _) in change.leaving {
            self.append(Entry::Left, vec![connection], None);
        }
        self.halt(halted);
        self.settle();
    }

    /// Halts these nodes in the given groups. They are then lost to their other groups.
    fn halt(&mut self, halted: Vec<(String, String)>) {
        for (node, group) in halted {
            for connection in self.connections_of(&[node]) {
                self.tell(
                    connection,
                    &Down::Halt { text: format!("{group} has lost its majority") },
                );
                self.close(connection);
            }
        }
    }

    /// Installs a group's next view, if the group has members.
    fn install(&mut self, group: &str) {
        let mut members = self.members.get(group).cloned().unwrap_or_default();
        if members.is_empty() {
            return;
        }
        let to = self.connections_of(&members);
        let view = self.view_ids.get(group).map_or(1, |last| last + 1);
        self.view_ids.insert(group.to_owned(), view);
        if let Err(error) = std::fs::write(VIEW_IDS, wire::line(&self.view_ids)) {
            eprintln!("cannot store the id of view {view} of {group}: {error}");
        }
        if let Some(mutation) = &self.mutation {
            mutation.forget_member(&mut members);
        }
        self.append(Entry::View { group: group.to_owned(), view, members }, to, None);
    }

    /// Returns the members of any of the groups.
    fn addressees(&self, groups: &[String]) -> Vec<u64> {
        if self.mutation.as_ref().is_some_and(Mutation::goes_astray) {
            return self.connections.keys().copied().collect();
        }
        let members = groups.iter().filter_map(|group| self.members.get(group));
        let nodes: Vec<String> = members.flatten().cloned().collect();
        self.connections_of(&nodes)
    }

    fn connections_of(&self, nodes: &[String]) -> Vec<u64> {
        let named = |known: &ReferenceConnection| {
            known.node.as_ref().is_some_and(|node| nodes.contains(node))
        };
        let found = self.connections.iter().filter(|(_, known)| named(known));
        found.map(|(connection, _)| *connection).collect()
    }

    /// Appends an entry to the order.
    fn append(&mut self, entry: Entry, to: Vec<u64>, sent: Option<(u64, String)>) {
        let number = self.next;
        self.next += 1;
        let line: Arc<str> = wire::line(&Down::Entry { number, entry }).into();
        for connection in &to {
            self.tell_line(*connection, Arc::clone(&line));
        }
        let there =
            to.iter().copied().filter(|connection| self.connections.contains_key(connection));
        let lacking = there.collect();
        self.pending.push_back(Pending { number, to, lacking, since: self.ran, sent });
    }

    /// Reports the entries that have become stable.
    fn settle(&mut self) {
        let mut concerned = BTreeSet::new();
        let mut upto = 0;
        while self.pending.front().is_some_and(|pending| pending.lacking.is_empty()) {
            let Some(stable) = self.pending.pop_front() else { break };
            upto = stable.number;
            if let Some((connection, message)) = stable.sent {
                let lost = !stable.to.iter().any(|member| self.connections.contains_key(member));
                self.tell(
                    connection,
                    &if lost { Down::Lost { message } } else { Down::Taken { message } },
                );
            }
            concerned.extend(stable.to);
        }
        for connection in concerned {
            self.tell(connection, &Down::Stable { upto });
        }
    }

    fn tell(&self, connection: u64, down: &Down) {
        self.tell_line(connection, wire::line(down).into());
    }

    fn tell_line(&self, connection: u64, line: Arc<str>) {
        if let Some(known) = self.connections.get(&connection) {
            // If a member cannot be reached, it is gone, and its connection will show that.
            let _ = known.outbox.send(line);
        }
    }
}

/// Returns whether the system reports a process as suspended.
fn is_suspended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

fn names(groups: Vec<Membership>) -> Vec<String> {
    groups.into_iter().map(|of| of.group).collect()
}
