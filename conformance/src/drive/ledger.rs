//! What was sent, and which nodes delivered it: just enough to know when to stop waiting, and which
//! message an empty delivery was. It judges nothing.

use std::collections::{HashMap, HashSet};

/// A set of nodes, one bit each.
pub(super) type NodeSet = u64;

/// The most nodes that a run can have.
pub const NODES_MAX: usize = NodeSet::BITS as usize;

/// The set of one node.
pub(super) fn only(node: usize) -> NodeSet {
    u32::try_from(node).ok().and_then(|node| 1_u64.checked_shl(node)).unwrap_or(0)
}

/// The set of these nodes.
pub(super) fn set(nodes: &[usize]) -> NodeSet {
    nodes.iter().fold(0, |set, node| set | only(*node))
}

/// A node, and which of its starts.
pub(super) type Start = (usize, u32);

/// What became of a message at its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// No answer yet.
    Asked,
    /// It was taken.
    Taken,
    /// It was refused, and will surely not come.
    Refused,
    /// It was refused, and may come.
    Unsure,
}

/// A message that a member was asked to send.
#[derive(Debug)]
pub(super) struct LedgerMessage {
    pub(super) name: String,
    pub(super) sender: usize,
    /// Which of the sender's starts.
    pub(super) inc: u32,
    pub(super) groups: Vec<usize>,
    pub(super) bytes: u64,
    pub(super) fate: Fate,
    /// The nodes that delivered it, in any of their starts.
    pub(super) delivered: NodeSet,
}

/// All messages, in the order in which they were asked for.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    messages: Vec<LedgerMessage>,
    by_name: HashMap<String, usize>,
    /// Those that some node may still have to deliver.
    open: Vec<usize>,
    /// Empty messages by sender and group.
    empties: HashMap<(usize, usize), Vec<usize>>,
    /// Empty messages that a start has delivered.
    empties_delivered: HashMap<Start, HashSet<usize>>,
    /// How many of the oldest in a list of empty messages a start need not look at again.
    empties_passed: HashMap<(Start, usize, usize), usize>,
    deliveries: u64,
}

impl Ledger {
    /// Adds a message, and gives its place.
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

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// How many deliveries of them there were.
    pub(super) fn deliveries(&self) -> u64 {
        self.deliveries
    }

    /// The place of the message of that name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The message at a place that this ledger gave.
    pub(super) fn message(&self, place: usize) -> &LedgerMessage {
        &self.messages[place]
    }

    /// Notes what its sender said of it.
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

    /// The oldest empty message of that sender to that group that this start of a node has not
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

    /// Whether there is a message that this node delivered, and no other.
    pub(super) fn any_only_by(&self, node: usize) -> bool {
        self.open.iter().any(|place| self.messages[*place].delivered == only(node))
    }

    /// The first message that some nodes still have to deliver, and these nodes. `all` gives the
    /// nodes that could ever deliver a message: once all of them did, it is not asked about again.
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
    fn empty_messages_are_told_apart_by_their_order() {
        let mut ledger = Ledger::default();
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
    fn a_message_is_open_until_all_delivered_it_or_it_was_refused() {
        let mut ledger = Ledger::default();
        let one = ledger.ask(message("a", 40));
        let other = ledger.ask(message("b", 40));
        let lacking = |_: usize, message: &LedgerMessage| set(&[0, 1]) & !message.delivered;
        let open = |ledger: &mut Ledger| ledger.first_open(|_| set(&[0, 1]), lacking);
        assert_eq!(open(&mut ledger), Some((one, set(&[0, 1]))));
        ledger.deliver(one, (0, 1));
        assert_eq!(open(&mut ledger), Some((one, only(1))));
        ledger.deliver(one, (1, 1));
        assert_eq!(open(&mut ledger), Some((other, set(&[0, 1]))));
        ledger.answer(other, Fate::Refused);
        assert_eq!(open(&mut ledger), None);
    }

    #[test]
    fn a_node_beyond_the_last_is_in_no_set() {
        assert_eq!(only(NODES_MAX - 1).count_ones(), 1);
        assert_eq!(only(NODES_MAX), 0);
    }
}
