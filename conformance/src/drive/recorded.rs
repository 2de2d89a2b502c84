//! A history in a form that the conditions of scenarios can query.

use std::collections::HashMap;
use std::io::BufRead;

use crate::history::{Event, FaultKind, HistoryError, Reader};

/// A message that a node was asked to send.
#[derive(Debug)]
pub(super) struct RecordedMessage {
    pub(super) t_ns: u64,
    pub(super) sender: usize,
    /// The number of the sender's incarnation.
    pub(super) inc: u32,
    pub(super) groups: Vec<String>,
    pub(super) bytes: u64,
    pub(super) refused: bool,
    /// The nodes that delivered the message, each with the time of its first delivery.
    pub(super) delivered: HashMap<usize, u64>,
}

/// A delivery of a message that was sent.
#[derive(Debug)]
pub(super) struct RecordedDelivery {
    pub(super) t_ns: u64,
    pub(super) node: usize,
    pub(super) inc: u32,
    pub(super) message: usize,
    pub(super) replayed: bool,
}

/// A view that a node installed.
#[derive(Debug)]
pub(super) struct View {
    pub(super) t_ns: u64,
    pub(super) node: usize,
    pub(super) members: Vec<usize>,
}

/// A node's report that it leads a group.
#[derive(Debug)]
pub(super) struct Lead {
    pub(super) t_ns: u64,
    pub(super) node: usize,
    pub(super) group: String,
    pub(super) term: Option<u64>,
}

/// A fault.
#[derive(Debug)]
pub(super) struct RecordedFault {
    pub(super) t_ns: u64,
    pub(super) kind: FaultKind,
    pub(super) nodes: Vec<usize>,
}

/// The relevant parts of a history, each list in line order.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) members: HashMap<String, Vec<usize>>,
    pub(super) messages: Vec<RecordedMessage>,
    pub(super) deliveries: Vec<RecordedDelivery>,
    pub(super) views: Vec<View>,
    pub(super) leads: Vec<Lead>,
    pub(super) faults: Vec<RecordedFault>,
    /// The start times of nodes' processes.
    pub(super) starts: Vec<(usize, u64)>,
    /// The times at which processes ended by themselves.
    pub(super) ends: Vec<(usize, u64)>,
    /// Whether any delivery was reported durable.
    pub(super) any_durable: bool,
    /// The times at which nodes reported their posts.
    pub(super) stats: Vec<(usize, u64)>,
    /// The times at which members were asked to leave.
    pub(super) leaves: Vec<(usize, u64)>,
}

/// Returns the number in a node's name, as this driver names nodes.
fn number(name: &str) -> usize {
    name.trim_start_matches('n').parse().unwrap_or(usize::MAX)
}

fn numbers<T: AsRef<str>>(names: &[T]) -> Vec<usize> {
    names.iter().map(|name| number(name.as_ref())).collect()
}

impl Recorded {
    /// Reads a history that this driver wrote.
    ///
    /// # Errors
    /// Fails with the problem of the history.
    pub(super) fn read(history: impl BufRead) -> Result<Self, HistoryError> {
        let mut reader = Reader::new(history);
        let mut recorded = Self::default();
        let mut names = HashMap::new();
        while let Some((_, event)) = reader.next_event()? {
            recorded.take(event, &mut names);
        }
        Ok(recorded)
    }

    fn take(&mut self, event: Event<'_>, names: &mut HashMap<String, usize>) {
        match event {
            Event::Group { group, members, .. } => {
                self.members.insert(group.into_owned(), numbers(&members));
            }
            Event::Start { t_ns, node, .. } => self.starts.push((number(&node), t_ns)),
            Event::End { t_ns, node, .. } => self.ends.push((number(&node), t_ns)),
            Event::Durable { .. } => self.any_durable = true,
            Event::Leave { t_ns, node, .. } => self.leaves.push((number(&node), t_ns)),
            Event::Stats { t_ns, node, .. } => self.stats.push((number(&node), t_ns)),
            Event::View { t_ns, node, members, .. } => {
                self.views.push(View { t_ns, node: number(&node), members: numbers(&members) });
            }
            Event::Leader { t_ns, node, group, term, .. } => {
                let (node, group) = (number(&node), group.into_owned());
                self.leads.push(Lead { t_ns, node, group, term });
            }
            Event::Fault { t_ns, kind, nodes, .. } => {
                self.faults.push(RecordedFault { t_ns, kind, nodes: numbers(&nodes) })
            }
            Event::Multicast { t_ns, node, inc, msg, groups, bytes, .. } => {
                names.insert(msg.into_owned(), self.messages.len());
                let groups = groups.into_iter().map(|group| group.into_owned()).collect();
                let (sender, bytes) = (number(&node), bytes.unwrap_or(0));
                let delivered = HashMap::new();
                self.messages.push(RecordedMessage {
                    t_ns,
                    sender,
                    inc,
                    groups,
                    bytes,
                    refused: false,
                    delivered,
                });
            }
            Event::Refused { msg, definite: true, .. } => {
                if let Some(&message) = names.get(msg.as_ref()) {
                    self.messages[message].refused = true;
                }
            }
            Event::Deliver { t_ns, node, inc, msg: Some(msg), replayed, .. } => {
                let Some(&message) = names.get(msg.as_ref()) else { return };
                let node = number(&node);
                self.messages[message].delivered.entry(node).or_insert(t_ns);
                self.deliveries.push(RecordedDelivery { t_ns, node, inc, message, replayed });
            }
            _ => {}
        }
    }

    /// Returns the nodes that a message is addressed to.
    pub(super) fn addressees<'r>(
        &'r self,
        message: &'r RecordedMessage,
    ) -> impl Iterator<Item = usize> + 'r {
        let groups = message.groups.iter().enumerate();
        groups.flat_map(move |(place, group)| {
            let members = self.members.get(group).into_iter().flatten().copied();
            // A member of several of the message's groups is returned only once.
            members.filter(move |node| {
                let earlier = &message.groups[..place];
                !earlier
                    .iter()
                    .any(|group| self.members.get(group).is_some_and(|all| all.contains(node)))
            })
        })
    }

    /// Returns whether all addressees delivered a message.
    pub(super) fn delivered_by_all(&self, message: &RecordedMessage) -> bool {
        self.addressees(message).all(|node| message.delivered.contains_key(&node))
    }

    /// Returns the time at which a node was first killed.
    pub(super) fn kill_ns(&self, node: usize) -> Option<u64> {
        self.fault_ns(FaultKind::Kill, node)
    }

    /// Returns the time of the first fault of this kind at a node.
    pub(super) fn fault_ns(&self, kind: FaultKind, node: usize) -> Option<u64> {
        let found =
            self.faults.iter().find(|fault| fault.kind == kind && fault.nodes.contains(&node));
        found.map(|fault| fault.t_ns)
    }

    /// Returns whether a node's process was running just before this time.
    pub(super) fn runs_before(&self, node: usize, t_ns: u64) -> bool {
        let last = |times: &mut dyn Iterator<Item = u64>| times.filter(|time| *time < t_ns).max();
        let started = last(
            &mut self.starts.iter().filter(|(of, _)| *of == node).map(|(_, start_ns)| *start_ns),
        );
        let ended =
            last(&mut self.ends.iter().filter(|(of, _)| *of == node).map(|(_, end_ns)| *end_ns));
        let kills = self.faults.iter().filter(|fault| fault.kind == FaultKind::Kill);
        let killed =
            last(&mut kills.filter(|fault| fault.nodes.contains(&node)).map(|fault| fault.t_ns));
        started.is_some_and(|start_ns| ended.max(killed).is_none_or(|end_ns| end_ns < start_ns))
    }

    /// Returns whether a message was in flight at the given time: it had been sent, but had not
    /// been delivered by some node that should and could deliver it.
    pub(super) fn under_way(&self, message: &RecordedMessage, t_ns: u64) -> bool {
        let lacks = |node: usize| message.delivered.get(&node).is_none_or(|time| *time > t_ns);
        message.t_ns <= t_ns
            && !message.refused
            && self.addressees(message).any(|node| lacks(node) && self.runs_before(node, t_ns))
    }
}
