//! The messages sent, and the nodes that delivered each message. The driver uses this to decide
//! when to stop waiting, and to identify empty messages. It does not judge.

use std::collections::{HashMap, HashSet};

/// A set of nodes, one bit each.
pub(super) type NodeSet = u64;

/// Limit of nodes in a run.
pub const NODES_MAX: usize = NodeSet::BITS as usize;

/// Returns the set that contains only one node.
pub(super) fn only(node: usize) -> NodeSet {
    u32::try_from(node).ok().and_then(|node| 1_u64.checked_shl(node)).unwrap_or(0)
}

/// Returns the set of these nodes.
pub(super) fn set(nodes: &[usize]) -> NodeSet {
    nodes.iter().fold(0, |set, node| set | only(*node))
}

/// A node and the number of its incarnation.
pub(super) type Start = (usize, u32);

/// The sender's answer to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The message has not been answered yet.
    Asked,
    /// The message was accepted.
    Taken,
    /// The message was refused, and will definitely not be delivered.
    Refused,
    /// The message was refused, but may be delivered.
    Unsure,
}

/// A message that a member was asked to send.
#[derive(Debug)]
pub(super) struct LedgerMessage {
    pub(super) name: String,
    pub(super) sender: usize,
    /// The number of the sender's incarnation.
    pub(super) inc: u32,
    pub(super) groups: Vec<usize>,
    pub(super) bytes: u64,
    pub(super) fate: Fate,
    /// The nodes that delivered the message, in any incarnation.
    pub(super) delivered: NodeSet,
}

/// All messages, in the order of the requests.
#[derive(Debug, Default)]
pub(super) struct SentLedger {
    messages: Vec<LedgerMessage>,
    by_name: HashMap<String, usize>,
    /// The messages that some node may still have to deliver.
    open: Vec<usize>,
    /// Empty messages by sender and group.
    empties: HashMap<(usize, usize), Vec<usize>>,
    /// Empty messages that an incarnation has delivered.
    empties_delivered: HashMap<Start, HashSet<usize>>,
    /// Number of the oldest messages that an incarnation can skip in each list of empty messages.
    empties_passed: HashMap<(Start, usize, usize), usize>,
    deliveries: u64,
}

impl SentLedger {
    /// Adds a message and returns its index.
    pub(super) fn ask(&mut self, message: LedgerMessage) -> usize {
        let place = self.messages.len();
        if message.bytes == 0 {
            for &group in &message.groups {
                self.empties.entry((message.sender, group)).or_default().push(place);
            }
        }
        self.by_name.insert(message.name.clone(), place);
        self.open.push(place);
        self.messages.push(message);
        place
    }

    /// Returns the number of messages.
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns the number of deliveries of all messages.
    pub(super) fn deliveries(&self) -> u64 {
        self.deliveries
    }

    /// Returns the index of the message of this name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Returns the message at an index.
    pub(super) fn message(&self, place: usize) -> &LedgerMessage {
        &self.messages[place]
    }

    /// Notes the sender's answer.
    pub(super) fn answer(&mut self, place: usize, fate: Fate) {
        self.messages[place].fate = fate;
    }

    /// Notes a delivery.
    pub(super) fn deliver(&mut self, place: usize, start: Start) {
        self.messages[place].delivered |= only(start.0);
        self.deliveries += 1;
        if self.messages[place].bytes == 0 {
            self.empties_delivered.entry(start).or_default().insert(place);
        }
    }

    /// Returns the oldest empty message of this sender to this group that this incarnation has not
    /// delivered.
    pub(super) fn oldest_empty(
        &mut self,
        sender: usize,
        group: usize,
        start: Start,
    ) -> Option<usize> {
        let delivered = self.empties_delivered.get(&start);
        let old = |place: &usize| {
            let refused = self.messages[*place].fate == Fate::Refused;
            refused || delivered.is_some_and(|delivered| delivered.contains(place))
        };
        let list = self.empties.get(&(sender, group))?;
        let passed = self.empties_passed.entry((start, sender, group)).or_default();
        *passed += list[*passed..].iter().take_while(|place| old(place)).count();
        list.get(*passed).copied()
    }

    /// Returns whether there is a message that only this node delivered.
    pub(super) fn any_only_by(&self, node: usize) -> bool {
        self.open.iter().any(|place| self.messages[*place].delivered == only(node))
    }

    /// Returns the first message that some nodes still have to deliver, and these nodes. `all`
    /// returns the nodes that could ever deliver a message: once all of them have, the message is
    /// closed.
    pub(super) fn first_open(
        &mut self,
        all: impl Fn(&LedgerMessage) -> NodeSet,
        awaited: impl Fn(usize, &LedgerMessage) -> NodeSet,
    ) -> Option<(usize, NodeSet)> {
        let messages = &self.messages;
        let closed = |message: &LedgerMessage| {
            message.fate == Fate::Refused || all(message) & !message.delivered == 0
        };
        self.open.retain(|place| !closed(&messages[*place]));
        self.open.iter().find_map(|place| {
            let lacking = awaited(*place, &messages[*place]);
            (lacking != 0).then_some((*place, lacking))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(name: &str, bytes: u64) -> LedgerMessage {
        let name = name.to_owned();
        LedgerMessage {
            name,
            sender: 0,
            inc: 1,
            groups: vec![0],
            bytes,
            fate: Fate::Asked,
            delivered: 0,
        }
    }

    #[test]
    fn empty_messages_are_identified_by_order() {
        let mut ledger = SentLedger::default();
        let first = ledger.ask(message("a", 0));
        ledger.ask(message("b", 40));
        let refused = ledger.ask(message("c", 0));
        let last = ledger.ask(message("d", 0));
        ledger.answer(refused, Fate::Refused);
        assert_eq!(ledger.oldest_empty(0, 0, (1, 1)), Some(first));
        ledger.deliver(first, (1, 1));
        assert_eq!(ledger.oldest_empty(0, 0, (1, 1)), Some(last), "the refused one was never sent");
        ledger.deliver(last, (1, 1));
        assert_eq!(ledger.oldest_empty(0, 0, (1, 1)), None);
        assert_eq!(ledger.oldest_empty(0, 0, (1, 2)), Some(first), "another start delivers again");
        assert_eq!(ledger.oldest_empty(0, 0, (2, 1)), Some(first), "and so does another node");
        assert_eq!(ledger.oldest_empty(1, 0, (1, 1)), None);
    }

    #[test]
    fn message_is_open_until_delivered_or_refused() {
        let mut ledger = SentLedger::default();
        let one = ledger.ask(message("a", 40));
        let other = ledger.ask(message("b", 40));
        let lacking = |_: usize, message: &LedgerMessage| set(&[0, 1]) & !message.delivered;
        let open = |ledger: &mut SentLedger| ledger.first_open(|_| set(&[0, 1]), lacking);
        assert_eq!(open(&mut ledger), Some((one, set(&[0, 1]))));
        ledger.deliver(one, (0, 1));
        assert_eq!(open(&mut ledger), Some((one, only(1))));
        ledger.deliver(one, (1, 1));
        assert_eq!(open(&mut ledger), Some((other, set(&[0, 1]))));
        ledger.answer(other, Fate::Refused);
        assert_eq!(open(&mut ledger), None);
    }

    #[test]
    fn node_beyond_the_limit_has_an_empty_mask() {
        assert_eq!(only(NODES_MAX - 1).count_ones(), 1);
        assert_eq!(only(NODES_MAX), 0);
    }
}
