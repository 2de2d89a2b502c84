//! Nodes that deliver in any order, for cases that no group model reaches, such as a ring of
//! orders.

use std::borrow::Cow;

use tramontane_conformance::history::{EndReason, Event, FaultKind, GroupOrder};

use super::cast::order;
use super::{Chance, Records};

/// The state of the chaos.
struct Chaos<'c, C> {
    chance: &'c mut C,
    records: Records,
    /// Number of nodes that are members.
    nodes: usize,
    /// Number of clients, which follow the members and belong to no group.
    clients: usize,
    /// Whether no node is a member of two groups. Messages are then addressed to several groups.
    disjoint: bool,
    groups: usize,
    viewed: bool,
    messages: usize,
    now_ns: u64,
}

/// Returns a history with arbitrary deliveries.
pub fn records(chance: &mut impl Chance) -> Records {
    let nodes = 2 + chance.index(3);
    let groups = 1 + chance.index(3);
    let disjoint = chance.percent(40);
    let mut chaos = Chaos {
        clients: if disjoint { 1 + chance.index(2) } else { 0 },
        viewed: !disjoint && chance.percent(40),
        chance,
        records: Vec::new(),
        nodes,
        disjoint,
        groups,
        messages: 0,
        now_ns: 0,
    };
    chaos.tell_groups();
    for node in 0..nodes + chaos.clients {
        chaos.start(node);
    }
    for _ in 0..chaos.chance.between(1, 4) {
        chaos.multicast();
    }
    for node in 0..nodes {
        chaos.live(node);
    }
    for client in 0..chaos.clients {
        chaos.die(nodes + client);
    }
    chaos.records
}

impl<C: Chance> Chaos<'_, C> {
    fn tick(&mut self) -> u64 {
        self.now_ns += 10;
        self.now_ns
    }

    fn tell_groups(&mut self) {
        for group in 0..self.groups {
            let mut members: Vec<usize> = (0..self.nodes).collect();
            if self.disjoint {
                members.retain(|node| node % self.groups == group);
            } else if self.chance.percent(60) && self.groups > 1 {
                members.remove(self.chance.index(self.nodes));
            }
            let is_shard = self.disjoint || self.chance.percent(70);
            self.records.push(Event::Group {
                group: format!("g{group}").into(),
                members: members.iter().map(|node| format!("n{node}").into()).collect(),
                senders: (0..self.nodes + self.clients)
                    .map(|node| format!("n{node}").into())
                    .collect(),
                order: if is_shard { GroupOrder::Total } else { order(self.chance) },
            });
        }
    }

    fn start(&mut self, node: usize) {
        let t_ns = self.tick();
        self.records.push(Event::Start { t_ns, node: format!("n{node}").into(), inc: 1 });
        if self.viewed {
            for group in 0..self.groups {
                self.install(node, group, 1, self.nodes);
            }
        }
    }

    /// Installs the view of the first `count` nodes.
    fn install(&mut self, node: usize, group: usize, view: u64, count: usize) {
        let t_ns = self.tick();
        self.records.push(Event::View {
            t_ns,
            node: format!("n{node}").into(),
            inc: 1,
            group: format!("g{group}").into(),
            view,
            members: (0..count).map(|node| format!("n{node}").into()).collect(),
        });
    }

    fn multicast(&mut self) {
        let t_ns = self.tick();
        let sender = match self.clients {
            0 => self.chance.index(self.nodes),
            clients => self.nodes + self.chance.index(clients),
        };
        let group = self.chance.index(self.groups);
        let others = (0..self.groups).filter(|other| *other != group);
        let mut groups = vec![format!("g{group}").into()];
        for other in others {
            if self.disjoint && self.chance.percent(60) {
                groups.push(format!("g{other}").into());
            }
        }
        let msg = format!("m{}/{group}", self.messages).into();
        self.messages += 1;
        self.records.push(Event::Multicast {
            t_ns,
            node: format!("n{sender}").into(),
            inc: 1,
            msg,
            groups,
            bytes: None,
            digest: None,
        });
    }

    /// Adds everything that a node does after it has started.
    fn live(&mut self, node: usize) {
        let sent = self.records.iter().filter_map(|event| match event {
            Event::Multicast { msg, groups, .. } => Some((msg.clone(), groups.clone())),
            _ => None,
        });
        let mut left: Vec<_> = sent.collect();
        let lazy = self.chance.percent(60);
        while !left.is_empty() {
            let place = if self.chance.percent(70) { 0 } else { self.chance.index(left.len()) };
            let (msg, groups) = left.remove(place);
            if !(lazy && self.chance.percent(40)) {
                groups.into_iter().for_each(|group| self.deliver(node, msg.clone(), group));
            }
        }
        if self.viewed && node + 1 < self.nodes && self.chance.percent(60) {
            for group in 0..self.groups {
                self.install(node, group, 2, self.nodes - 1);
            }
        }
        self.die(node);
    }

    fn deliver(&mut self, node: usize, msg: Cow<'static, str>, group: Cow<'static, str>) {
        let node = Cow::from(format!("n{node}"));
        let is_member = self.records.iter().any(|event| match event {
            Event::Group { group: told, members, .. } => *told == group && members.contains(&node),
            _ => false,
        });
        if is_member {
            let t_ns = self.tick();
            self.records.push(Event::Deliver {
                t_ns,
                node,
                inc: 1,
                group,
                view: None,
                msg: Some(msg),
                sender: None,
                bytes: None,
                digest: None,
                replayed: false,
            });
        }
    }

    fn die(&mut self, node: usize) {
        if self.chance.percent(20) {
            self.now_ns += 100_000_000;
        }
        let t_ns = self.tick();
        let name = Cow::from(format!("n{node}"));
        let reason = match self.chance.below(8) {
            0..3 => EndReason::Done,
            3 => EndReason::Left,
            4 => EndReason::Halted,
            5..7 => {
                self.records.push(Event::Fault {
                    t_ns,
                    kind: FaultKind::Kill,
                    nodes: vec![name],
                    how: None,
                });
                return;
            }
            _ => return,
        };
        if self.chance.percent(40) {
            self.records.push(Event::Stop { t_ns, node: name.clone(), inc: 1 });
        }
        self.records.push(Event::End { t_ns, node: name, inc: 1, reason });
    }
}
