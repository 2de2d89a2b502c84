//! The events of the model's group.

use tramontane_conformance::history::{EndReason, Event, FaultKind, GroupOrder};

use super::Chance;
use super::cast::{CastDelivery, CastMessage, Item};
use super::model::Model;

/// Longer than the silence that quiescence requires.
const SILENCE_NS: u64 = 600_000_000;

impl<C: Chance> Model<'_, C> {
    /// Adds one event.
    pub fn step(&mut self) {
        let node = self.chance.index(self.nodes.len());
        let up = self.nodes[node].up;
        match self.chance.below(100) {
            0..20 if up => self.multicast(node),
            20..34 => self.order_message(node),
            34..40 if up => self.drain(node),
            40..68 if up => {
                self.advance(node);
            }
            68..76 if up => self.say_durable(node),
            76..79 if up => self.count(node),
            79..84 if up => self.kill(node),
            84..86 if up => self.leave(node),
            86..88 if up && (self.faulty || self.chance.percent(20)) => self.halt(node),
            88..91 if up => self.cut_off(node),
            91..93 => self.suspend(node),
            93..94 => self.heal(node),
            94..95 if self.shards => self.lead(),
            94..95 => self.renew_view(),
            95..97 if up => self.return_from_a_crash(node),
            _ if !up && self.chance.percent(60) => self.start(node),
            _ => {}
        }
    }

    fn multicast(&mut self, node: usize) {
        let sends = |group: &usize| self.groups[*group].senders.contains(&node);
        let open: Vec<usize> = (0..self.groups.len()).filter(sends).collect();
        let Some(first) = self.chance.pick(&open) else { return };
        if self.nodes[node].muted {
            return;
        }
        let mut groups = vec![first];
        for group in open {
            // A node in a group with views may be missing from the other groups, so messages for
            // several groups are seldom delivered correctly.
            let views = self.groups[group].viewed || self.groups[first].viewed;
            let alone =
                [group, first].iter().any(|group| self.groups[*group].order == GroupOrder::Group);
            let percent = match (alone, views) {
                (true, _) => 0,
                (false, true) => 2,
                (false, false) => 40,
            };
            if group != first && self.chance.percent(percent) {
                groups.push(group);
            }
        }
        let message = self.write_multicast(node, groups);
        let refused = self.chance.percent(8);
        let definite = self.chance.percent(60);
        if refused {
            self.write_refusal(node, message, definite);
        }
        if !refused && self.chance.percent(96) {
            self.write_acceptance(node, message);
        }
        if !refused || (!definite && self.chance.percent(50)) {
            self.nodes[node].queue.push(message);
        }
    }

    fn write_multicast(&mut self, node: usize, groups: Vec<usize>) -> usize {
        let t_ns = self.tick();
        let sender = &mut self.nodes[node];
        let name = format!("{}/{}/{}", sender.name, sender.inc, sender.sent);
        sender.sent += 1;
        sender.posts += 1;
        let told = self.chance.percent(60);
        let message = CastMessage {
            digest: told.then(|| format!("d{}", self.messages.len())),
            name,
            sender: node,
            groups,
            bytes: told.then(|| self.chance.below(3)),
        };
        self.records.push(Event::Multicast {
            t_ns,
            node: self.nodes[node].name.clone().into(),
            inc: self.nodes[node].inc,
            msg: message.name.clone().into(),
            groups: message
                .groups
                .iter()
                .map(|group| self.groups[*group].name.clone().into())
                .collect(),
            bytes: message.bytes,
            digest: message.digest.clone().map(Into::into),
        });
        self.messages.push(message);
        self.messages.len() - 1
    }

    fn write_acceptance(&mut self, node: usize, message: usize) {
        let t_ns = self.tick();
        self.records.push(Event::Accepted {
            t_ns,
            node: self.nodes[node].name.clone().into(),
            inc: self.nodes[node].inc,
            msg: self.messages[message].name.clone().into(),
        });
    }

    fn write_refusal(&mut self, node: usize, message: usize, definite: bool) {
        let t_ns = self.tick();
        self.records.push(Event::Refused {
            t_ns,
            node: self.nodes[node].name.clone().into(),
            inc: self.nodes[node].inc,
            msg: self.messages[message].name.clone().into(),
            definite,
            code: None,
        });
    }

    fn say_durable(&mut self, node: usize) {
        let group = self.chance.index(self.groups.len());
        let delivered =
            self.nodes[node].log.iter().filter(|delivered| delivered.group == group).count() as u64;
        let low = self.nodes[node].upto[group].unwrap_or(0);
        if delivered <= low {
            return;
        }
        let upto = self.chance.between(low, delivered - 1);
        let t_ns = self.tick();
        let kept = self.nodes[node].kept[group].max(upto as usize + 1);
        self.nodes[node].upto[group] = Some(upto);
        self.nodes[node].kept[group] = kept;
        self.records.push(Event::Durable {
            t_ns,
            node: self.nodes[node].name.clone().into(),
            inc: self.nodes[node].inc,
            group: self.groups[group].name.clone().into(),
            upto,
        });
    }

    /// Counts posts, usually twice and with a silence before.
    fn count(&mut self, node: usize) {
        if self.chance.percent(70) {
            self.now_ns += SILENCE_NS;
        }
        for _ in 0..self.chance.between(1, 2) {
            let t_ns = self.tick();
            self.records.push(Event::Stats {
                t_ns,
                node: self.nodes[node].name.clone().into(),
                inc: self.nodes[node].inc,
                posts: self.nodes[node].posts,
            });
        }
    }

    /// Loses some of a departing node's last messages, and continues the groups without the node if
    /// possible.
    fn part_with(&mut self, node: usize) {
        while !self.nodes[node].muted
            && !self.nodes[node].queue.is_empty()
            && self.chance.percent(50)
        {
            self.order_message(node);
        }
        self.nodes[node].queue.clear();
        self.remove(node, false);
    }

    /// Orders a view without the node in each group with views to which it belongs. A node that
    /// leaves or stops counts as present.
    pub fn remove(&mut self, node: usize, left: bool) {
        for group in 0..self.groups.len() {
            let Some((_, members)) = self.groups[group].view.clone() else { continue };
            let rest: Vec<usize> =
                members.iter().copied().filter(|member| *member != node).collect();
            let left = left && self.nodes[node].view[group].is_some();
            let enough = left || 2 * rest.len() > members.len();
            if rest.len() < members.len() && !rest.is_empty() && enough {
                self.order_view(group, rest);
            }
        }
    }

    fn kill(&mut self, node: usize) {
        self.write_fault(FaultKind::Kill, &[node]);
        self.nodes[node].up = false;
        self.part_with(node);
    }

    /// Restarts a node at once with its storage, if it has any.
    fn return_from_a_crash(&mut self, node: usize) {
        self.drain(node);
        self.say_durable(node);
        self.kill(node);
        self.start(node);
    }

    fn leave(&mut self, node: usize) {
        if self.chance.percent(85) {
            let t_ns = self.tick();
            self.records.push(Event::Leave {
                t_ns,
                node: self.nodes[node].name.clone().into(),
                inc: self.nodes[node].inc,
            });
            // The node's accepted messages are sent before it leaves.
            while !self.nodes[node].muted && !self.nodes[node].queue.is_empty() {
                self.order_message(node);
            }
        }
        if self.chance.percent(70) {
            self.drain(node);
            self.remove(node, true);
            self.drain(node);
        } else {
            self.part_with(node);
        }
        self.nodes[node].queue.clear();
        self.write_end(node, EndReason::Left);
    }

    fn halt(&mut self, node: usize) {
        self.part_with(node);
        self.write_end(node, EndReason::Halted);
    }

    /// Cuts off a node, and removes it if the others can continue.
    fn cut_off(&mut self, node: usize) {
        while !self.nodes[node].queue.is_empty() {
            self.order_message(node);
        }
        self.write_fault(FaultKind::Partition, &[node]);
        self.remove(node, false);
        self.nodes[node].muted = true;
        if self.chance.percent(70) {
            self.write_fault(FaultKind::Heal, &[node]);
        }
    }

    fn suspend(&mut self, node: usize) {
        self.write_fault(FaultKind::Stop, &[node]);
        if self.chance.percent(80) {
            self.write_fault(FaultKind::Continue, &[node]);
        }
    }

    fn heal(&mut self, node: usize) {
        let everyone: Vec<usize> = (0..self.nodes.len()).collect();
        let nodes = if self.chance.percent(50) { everyone } else { vec![node] };
        self.write_fault(FaultKind::Heal, &nodes);
    }

    fn renew_view(&mut self) {
        let group = self.chance.index(self.groups.len());
        if let Some((_, members)) = self.groups[group].view.clone() {
            self.order_view(group, members);
        }
    }

    /// Starts or restarts a node, which replays its stored deliveries and joins its groups.
    fn start(&mut self, node: usize) {
        if self.nodes[node].stuck {
            return;
        }
        let log = self.nodes[node].log.clone();
        let enough = |length: &usize| {
            self.nodes[node].kept.iter().enumerate().all(|(group, kept)| {
                log[..*length].iter().filter(|delivered| delivered.group == group).count() >= *kept
            })
        };
        let Some(least) = (0..=log.len()).find(enough) else { return };
        let keeps = least + self.chance.index(log.len() - least + 1);
        if self.chance.percent(15) {
            self.start_in_vain(node, &log);
        }
        if self.nodes[node].stuck {
            return;
        }
        self.write_start(node);
        if self.shards && self.chance.percent(60) {
            return self.take_over(node);
        }
        for delivered in &log[..keeps] {
            self.write_delivery(node, delivered, true);
        }
        self.nodes[node].log = log[..keeps].to_vec();
        self.join(node);
    }

    /// Restarts a node with all deliveries of its group.
    fn take_over(&mut self, node: usize) {
        let is_own = |group: &usize| self.groups[*group].members.contains(&node);
        let state = self.order.iter().filter_map(|item| match item {
            Item::Message(message) => {
                let group = self.messages[*message].groups.iter().copied().find(is_own)?;
                Some(CastDelivery { message: *message, group, view: None })
            }
            Item::View { .. } => None,
        });
        let state: Vec<CastDelivery> = state.collect();
        for delivered in &state {
            self.write_delivery(node, delivered, true);
        }
        self.nodes[node].log = state;
        self.nodes[node].at = self.order.len();
    }

    /// Has a member of some group report that it leads.
    fn lead(&mut self) {
        let group = self.chance.index(self.groups.len());
        let up = |node: &usize| self.nodes[*node].up;
        let members: Vec<usize> = self.groups[group].members.iter().copied().filter(up).collect();
        let Some(node) = self.chance.pick(&members) else { return };
        let t_ns = self.tick();
        let term = self.chance.percent(70).then_some(t_ns);
        self.records.push(Event::Leader {
            t_ns,
            node: self.nodes[node].name.clone().into(),
            inc: self.nodes[node].inc,
            group: self.groups[group].name.clone().into(),
            term,
        });
    }

    /// Adds an incarnation that is killed while it replays, or that becomes silent.
    fn start_in_vain(&mut self, node: usize, log: &[CastDelivery]) {
        self.write_start(node);
        for delivered in &log[..self.chance.index(log.len() + 1)] {
            self.write_delivery(node, delivered, true);
        }
        if self.chance.percent(75) {
            self.write_fault(FaultKind::Kill, &[node]);
        } else {
            self.nodes[node].stuck = true;
            self.nodes[node].up = false;
        }
    }

    fn join(&mut self, node: usize) {
        for group in 0..self.groups.len() {
            if !self.groups[group].viewed || !self.groups[group].members.contains(&node) {
                continue;
            }
            match self.groups[group].view.clone() {
                None => self.order_view(group, vec![node]),
                Some((_, members)) if members == [node] => self.order_view(group, members),
                // The node could not be removed, so it cannot be added again.
                Some((_, members)) if members.contains(&node) => self.nodes[node].muted = true,
                Some((_, mut members)) => {
                    members.push(node);
                    self.order_view(group, members);
                }
            }
        }
    }
}
