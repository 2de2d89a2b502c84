//! A group that keeps its promises.
//!
//! There is one order of all messages and views. Every incarnation follows it from its own
//! position, installs the views that name it, and delivers its messages. Its records are therefore
//! correct, even if it is interrupted.

use tramontane_conformance::history::{EndReason, Event, FaultKind, GroupOrder};

use super::cast::{
    CastDelivery, CastGroup, CastMessage, CastNode, Item, groups, nodes, shards as shards_of,
};
use super::{Chance, Records};

/// The group, and its records so far.
pub struct Model<'c, C> {
    pub chance: &'c mut C,
    pub now_ns: u64,
    pub records: Records,
    pub groups: Vec<CastGroup>,
    pub nodes: Vec<CastNode>,
    pub messages: Vec<CastMessage>,
    pub order: Vec<Item>,
    pub faulty: bool,
    /// Whether groups share no members, have no views, and only other nodes send.
    pub shards: bool,
}

/// Returns a history that is correct, or rarely breaks a promise of progress.
pub fn records(chance: &mut impl Chance) -> Records {
    let shards = chance.percent(25);
    let (groups, count) = if shards {
        shards_of(chance)
    } else {
        let count = 1 + chance.index(5);
        (groups(chance, count), count)
    };
    let nodes = nodes(groups.len(), count);
    let mut model = Model {
        chance,
        now_ns: 0,
        records: Vec::new(),
        groups,
        nodes,
        messages: Vec::new(),
        order: Vec::new(),
        faulty: false,
        shards,
    };
    model.tell_groups();
    model.begin();
    // Each message involves more nodes here.
    let steps_max = if shards { 70 } else { 44 };
    for _ in 0..model.chance.between(3, steps_max) {
        model.step();
    }
    if !model.chance.percent(20) {
        model.finish();
    }
    model.records
}

impl<C: Chance> Model<'_, C> {
    fn tell_groups(&mut self) {
        if self.chance.percent(50) {
            let version = 1 + u32::from(self.chance.percent(70));
            self.records.push(Event::Run { version, scenario: None, seed: None, adapter: None });
        }
        for group in &self.groups {
            let names = |list: &[usize]| {
                list.iter().map(|node| self.nodes[*node].name.clone().into()).collect()
            };
            self.records.push(Event::Group {
                group: group.name.clone().into(),
                members: names(&group.members),
                senders: names(&group.senders),
                order: group.order,
            });
        }
    }

    /// Starts most nodes, and then installs the first view of each group with views.
    fn begin(&mut self) {
        for node in 0..self.nodes.len() {
            if self.chance.percent(90) {
                self.write_start(node);
            }
        }
        for group in 0..self.groups.len() {
            let up = |node: &usize| self.nodes[*node].up;
            let members: Vec<usize> =
                self.groups[group].members.iter().copied().filter(up).collect();
            if self.groups[group].viewed && !members.is_empty() {
                self.order_view(group, members);
            }
        }
    }

    /// Returns the time of the next record.
    pub fn tick(&mut self) -> u64 {
        self.now_ns += if self.chance.percent(15) { 0 } else { 10 };
        self.now_ns
    }

    pub fn write_start(&mut self, node: usize) {
        let t_ns = self.tick();
        let groups = self.groups.len();
        let joined_at = self.order.len();
        let node = &mut self.nodes[node];
        node.inc += 1;
        node.up = true;
        node.muted = false;
        node.queue.clear();
        node.held.clear();
        node.log.clear();
        node.at = 0;
        node.joined_at = joined_at;
        node.view = vec![None; groups];
        node.upto = vec![None; groups];
        node.posts = 0;
        node.sent = 0;
        let (name, inc) = (node.name.clone().into(), node.inc);
        self.records.push(Event::Start { t_ns, node: name, inc });
    }

    pub fn write_fault(&mut self, kind: FaultKind, nodes: &[usize]) {
        let t_ns = self.tick();
        let nodes = nodes.iter().map(|node| self.nodes[*node].name.clone().into()).collect();
        self.records.push(Event::Fault { t_ns, kind, nodes, how: None });
        self.faulty = true;
    }

    pub fn write_end(&mut self, node: usize, reason: EndReason) {
        let t_ns = self.tick();
        let node = &mut self.nodes[node];
        node.up = false;
        let (name, inc) = (node.name.clone().into(), node.inc);
        self.records.push(Event::End { t_ns, node: name, inc, reason });
    }

    /// Orders a group's next view.
    pub fn order_view(&mut self, group: usize, members: Vec<usize>) {
        let rise = 1 + u64::from(self.chance.percent(10));
        let id = self.groups[group].view.as_ref().map_or(1, |(id, _)| id + rise);
        self.groups[group].view = Some((id, members.clone()));
        self.order.push(Item::View { group, id, members });
    }

    /// Orders the oldest of a node's messages.
    pub fn order_message(&mut self, node: usize) {
        if !self.nodes[node].queue.is_empty() {
            let message = self.nodes[node].queue.remove(0);
            self.order.push(Item::Message(message));
        }
    }

    /// Advances a node by one position in the order.
    pub fn advance(&mut self, node: usize) -> bool {
        let at = self.nodes[node].at;
        let Some(item) = self.order.get(at).cloned() else { return false };
        self.nodes[node].at += 1;
        match item {
            Item::Message(message) => self.meet(node, message),
            Item::View { group, id, members } if at >= self.nodes[node].joined_at => {
                self.release(node, None);
                self.install(node, group, id, &members);
            }
            Item::View { .. } => {}
        }
        true
    }

    /// Advances a node to the end of the order.
    pub fn drain(&mut self, node: usize) {
        while self.advance(node) {}
        self.release(node, None);
    }

    fn drain_if_up(&mut self, node: usize) {
        if self.nodes[node].up {
            self.drain(node);
        }
    }

    fn install(&mut self, node: usize, group: usize, id: u64, members: &[usize]) {
        if !members.contains(&node) {
            self.nodes[node].view[group] = None;
            return;
        }
        self.nodes[node].view[group] = Some(id);
        let t_ns = self.tick();
        let event = Event::View {
            t_ns,
            node: self.nodes[node].name.clone().into(),
            inc: self.nodes[node].inc,
            group: self.groups[group].name.clone().into(),
            view: id,
            members: members.iter().map(|member| self.nodes[*member].name.clone().into()).collect(),
        };
        self.records.push(event);
    }

    /// Handles a message at its position: the node delivers it, or delays it if that is allowed.
    fn meet(&mut self, node: usize, message: usize) {
        // Messages with a separate order, or none, may come later than messages for other groups.
        let free = self.messages[message]
            .groups
            .iter()
            .all(|group| self.groups[*group].order != GroupOrder::Total);
        self.release(node, Some(message));
        if free && self.chance.percent(40) {
            self.nodes[node].held.push(message);
        } else {
            self.deliver(node, message);
        }
    }

    /// Has a node deliver the messages that it delayed: all of them, or those that must precede a
    /// given message.
    fn release(&mut self, node: usize, before: Option<usize>) {
        let held = std::mem::take(&mut self.nodes[node].held);
        for message in held {
            if before.is_none_or(|before| self.must_precede(message, before)) {
                self.deliver(node, message);
            } else {
                self.nodes[node].held.push(message);
            }
        }
    }

    /// Returns whether two messages have the same sender, or are addressed to a group that orders
    /// them.
    fn must_precede(&self, one: usize, other: usize) -> bool {
        let [one, other] = [&self.messages[one], &self.messages[other]];
        let orders = |group: &usize| {
            other.groups.contains(group) && self.groups[*group].order != GroupOrder::Sender
        };
        one.sender == other.sender || one.groups.iter().any(orders)
    }

    fn deliver(&mut self, node: usize, message: usize) {
        let receives = |group: &usize| {
            let told = &self.groups[*group];
            told.members.contains(&node)
                && (!told.viewed || self.nodes[node].view[*group].is_some())
        };
        let groups: Vec<usize> =
            self.messages[message].groups.iter().copied().filter(receives).collect();
        let Some(group) = self.chance.pick(&groups) else { return };
        let is_known = self.nodes[node].log.iter().any(|delivered| delivered.message == message);
        if !is_known {
            let view = self.nodes[node].view[group];
            let delivered = CastDelivery { message, group, view };
            self.write_delivery(node, &delivered, false);
            self.nodes[node].log.push(delivered);
        }
    }

    pub fn write_delivery(&mut self, node: usize, delivered: &CastDelivery, replayed: bool) {
        let t_ns = self.tick();
        let message = &self.messages[delivered.message];
        let tells = self.chance.percent(60);
        let event = Event::Deliver {
            t_ns,
            node: self.nodes[node].name.clone().into(),
            inc: self.nodes[node].inc,
            group: self.groups[delivered.group].name.clone().into(),
            view: delivered.view.filter(|_| replayed || tells),
            msg: Some(message.name.clone().into()),
            sender: tells.then(|| self.nodes[message.sender].name.clone().into()),
            bytes: message.bytes.filter(|_| tells),
            digest: message.digest.clone().filter(|_| tells).map(Into::into),
            replayed,
        };
        self.nodes[node].posts += 1;
        self.records.push(event);
    }

    /// Asks a node to stop.
    fn write_stop(&mut self, node: usize) {
        if self.chance.percent(20) {
            self.now_ns += 100_000_000;
        }
        let t_ns = self.tick();
        let node = &self.nodes[node];
        let (name, inc) = (node.name.clone().into(), node.inc);
        self.records.push(Event::Stop { t_ns, node: name, inc });
    }

    /// Lets all messages arrive, and stops all nodes. The others then usually install a
    /// view without each node that stopped.
    fn finish(&mut self) {
        for node in 0..self.nodes.len() {
            while self.nodes[node].up
                && !self.nodes[node].muted
                && !self.nodes[node].queue.is_empty()
            {
                self.order_message(node);
            }
        }
        for node in 0..self.nodes.len() {
            self.drain_if_up(node);
        }
        let is_told = self.chance.percent(60);
        for node in 0..self.nodes.len() {
            if self.nodes[node].up && is_told {
                self.write_stop(node);
            }
        }
        let in_order = self.chance.percent(60);
        for node in 0..self.nodes.len() {
            if self.nodes[node].up && self.chance.percent(96) {
                self.drain(node);
                let hung = self.chance.percent(1);
                self.write_end(node, if hung { EndReason::Hung } else { EndReason::Done });
                if in_order {
                    self.remove(node, true);
                }
            }
        }
    }
}
