//! Forgetting: finds messages that no node will deliver again, and archives them.
//!
//! A message **pops** when it heads the queues of all incarnations that delivered it and is
//! **settled**: each other node that it is addressed to is down, is not in the message's view, or
//! has delivered a later message of the same sender. A popped message therefore preceded all held
//! messages at every incarnation, and cannot be part of a cycle with them. Its position is the
//! order of popping, which agrees with every incarnation's deliveries.
//!
//! Settling is a guess that saves memory. If the guess is wrong, the message is revived. No verdict
//! changes, except that the order may stay undecided (see `Doubts`).
//!
//! Messages that promise no order between senders are not queued and need not wait for other
//! messages.

use std::collections::VecDeque;

use super::archive::{BYTES_MAX, PLACE_MAX, Retained};
use super::class::{ClassKey, Example};
use super::groups::{GroupId, Groups, NodeSet};
use super::integrity::Naming;
use super::ledger::Ledger;
use super::message::{Delivery, HeldMessage, Marks, MessageView, NO_VIEW, SentMessage};
use super::queue::QueueId;
use super::roster::{NodeId, Roster, StartId};
use super::views::Views;

/// Messages with more deliveries than this stay held, because a class for each large set of
/// incarnations could take more memory.
const DELIVERIES_MAX: usize = 4096;

/// The state that a sweep needs in addition to the messages.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    /// Nodes and incarnations.
    pub(super) roster: &'a Roster,
    /// Groups.
    pub(super) groups: &'a Groups,
    /// The views so far.
    pub(super) views: &'a Views,
    /// The ids of views.
    pub(super) view_ids: &'a [u64],
    /// Whether the history is over, so that everything is settled.
    pub(super) closing: bool,
}

impl Ledger {
    /// Sweeps if the limit of held messages is reached.
    pub(super) fn sweep_if_full(&mut self, scene: Scene<'_>) {
        if self.live.len() >= self.next_sweep {
            self.sweep(scene);
            // The next sweep waits until as many new messages have arrived as this sweep has kept.
            self.next_sweep = self.live.len().saturating_mul(2).saturating_add(self.held_min);
        }
    }

    /// Pops all messages that can be popped, and forgets those that no node will deliver again.
    pub(super) fn sweep(&mut self, scene: Scene<'_>) {
        for start in (0..self.queues.logs.len()).map(|place| StartId(place as u32)) {
            self.file(scene, start);
        }
        // Starting with the first incarnation assigns positions by arrival to messages without an
        // order.
        let mut waiting: VecDeque<QueueId> =
            (0..self.queues.queues.len()).map(|place| QueueId(place as u32)).collect();
        let mut is_waiting = vec![true; waiting.len()];
        while let Some(queue) = waiting.pop_front() {
            is_waiting[queue.index()] = false;
            self.advance(scene, queue, |other| {
                if !std::mem::replace(&mut is_waiting[other.index()], true) {
                    waiting.push_back(other);
                }
            });
        }
        self.forget_settled(scene);
    }

    /// Moves an incarnation's deliveries from its log to its queues, as far as their multicasts are
    /// known. Messages without an order need no further handling.
    fn file(&mut self, scene: Scene<'_>, start: StartId) {
        let node = scene.roster.node_of(start);
        while let Some(entry) = self.queues.logs[start.index()].front().copied() {
            let message = &mut self.slots[entry.slot as usize];
            let is_held = message.generation == entry.generation;
            if is_held && message.sent.is_none() {
                return;
            }
            self.queues.logs[start.index()].pop_front();
            let Some(sent) = message.sent.filter(|_| is_held) else { continue };
            let Some(line) = message
                .first_by(start)
                .map(|first| first.line)
                .filter(|_| message.is_delivered_by(start))
            else {
                message.entries -= 1;
                continue;
            };
            if scene.groups.is_ordered(sent.groups, node) {
                let queue = self.queues.id(start, scene.groups.of(sent.groups).lane);
                self.queues.queues[queue.index()].push(entry);
            } else {
                message.entries -= 1;
            }
            let about = (message.name, &sent, line);
            self.sender_order.observe((scene.roster, scene.groups, &self.names), start, about);
        }
    }

    /// Pops from a queue until its head has to wait; reports the other queues that moved.
    fn advance(&mut self, scene: Scene<'_>, queue: QueueId, mut moved: impl FnMut(QueueId)) {
        while let Some(slot) = self.head(queue) {
            let Some(sent) = self.slots[slot as usize].sent else { return };
            if self.queues.queues[queue.index()].announce() {
                self.slots[slot as usize].heading += 1;
            }
            let message = &self.slots[slot as usize];
            // If the message is still in a log, it would stay held after being partly popped.
            let is_ready = message.heading == message.counted && message.entries == message.counted;
            if !is_ready || !self.is_settled(scene, message, &sent) {
                return;
            }
            self.pop_everywhere(scene, slot, &sent, |other| {
                if other != queue {
                    moved(other);
                }
            });
        }
    }

    /// Returns the message at the head of a queue, after removing entries that do not count.
    fn head(&mut self, queue: QueueId) -> Option<u32> {
        let queue = &mut self.queues.queues[queue.index()];
        loop {
            let entry = queue.head()?;
            let message = &mut self.slots[entry.slot as usize];
            let is_held = message.generation == entry.generation;
            if is_held && message.is_delivered_by(queue.start) {
                return Some(entry.slot);
            }
            if is_held {
                message.entries -= 1;
            }
            queue.pop();
        }
    }

    fn pop_everywhere(
        &mut self,
        scene: Scene<'_>,
        slot: u32,
        sent: &SentMessage,
        mut moved: impl FnMut(QueueId),
    ) {
        let lane = scene.groups.of(sent.groups).lane;
        let message = &mut self.slots[slot as usize];
        let place = *message.place.get_or_insert_with(|| {
            self.next_place += 1;
            self.next_place - 1
        });
        message.heading = 0;
        message.entries -= message.counted;
        let message = &self.slots[slot as usize];
        for delivery in message.delivered() {
            let in_order =
                scene.groups.is_ordered(sent.groups, scene.roster.node_of(delivery.start))
                    && !delivery.marks.any(Marks::UNPLACED);
            let Some(id) = self.queues.known(delivery.start, lane).filter(|_| in_order) else {
                continue;
            };
            let queue = &mut self.queues.queues[id.index()];
            queue.pop();
            // The message preceded one that has already been popped, so the forgotten messages
            // between them might close a cycle.
            if queue.frontier.is_some_and(|frontier| frontier > place)
                && !delivery.marks.any(Marks::PAST)
            {
                self.doubts.order.get_or_insert(delivery.line);
            }
            queue.frontier = queue.frontier.max(Some(place));
            moved(id);
        }
    }

    /// Removes the remaining messages from all queues, after their order has been judged.
    pub(super) fn drain(&mut self) {
        for queue in (0..self.queues.queues.len()).map(|place| QueueId(place as u32)) {
            while let Some(slot) = self.head(queue) {
                self.slots[slot as usize].entries -= 1;
                self.queues.queues[queue.index()].pop();
            }
        }
    }

    /// Returns whether no more deliveries of a message are expected.
    fn is_settled(&self, scene: Scene<'_>, message: &HeldMessage, sent: &SentMessage) -> bool {
        if scene.closing {
            return true;
        }
        let is_too_large = sent.bytes.is_some_and(|bytes| bytes >= BYTES_MAX);
        if is_too_large || self.next_place >= PLACE_MAX || message.deliveries.len() > DELIVERIES_MAX
        {
            return false;
        }
        let mut delivered = NodeSet::default();
        for delivery in message.delivered() {
            delivered.insert(scene.roster.node_of(delivery.start));
        }
        let set = scene.groups.of(sent.groups);
        let settled = |node: &NodeId| {
            delivered.has(*node)
                || scene.roster.is_down(*node)
                || set.groups.iter().all(|group| {
                    !scene.groups.has_member(*group, *node)
                        || is_outside(scene, message, *group, *node)
                        || self.has_passed(scene, *node, sent, *group)
                })
        };
        set.groups
            .iter()
            .all(|group| scene.groups.groups[group.index()].members.iter().all(settled))
    }

    fn has_passed(
        &self,
        scene: Scene<'_>,
        node: NodeId,
        sent: &SentMessage,
        group: GroupId,
    ) -> bool {
        let start = scene.roster.last_start(node);
        start.is_some_and(|start| self.sender_order.has_passed(start, sent, group))
    }

    /// Forgets messages that are settled and in no queue.
    pub(super) fn forget_settled(&mut self, scene: Scene<'_>) {
        for slot in 0..self.slots.len() as u32 {
            let message = &self.slots[slot as usize];
            let Some(sent) = message.sent.filter(|_| message.entries == 0 && message.is_held)
            else {
                continue;
            };
            let is_known = sent.is_void() || message.delivered().next().is_some();
            if is_known && (sent.is_void() || self.is_settled(scene, message, &sent)) {
                self.forget(scene, slot, &sent);
            }
        }
    }

    /// Judges the messages that no addressee delivered.
    pub(super) fn judge_strays(&mut self, scene: Scene<'_>) {
        let Scene { roster, groups, .. } = scene;
        for slot in self.live.values() {
            let message = &self.slots[*slot as usize];
            self.integrity.judge(
                Naming { roster, groups, names: &self.names },
                scene.view_ids,
                message,
            );
        }
    }

    /// Judges the promises that a message breaks by itself, and adds it to its class.
    fn forget(&mut self, scene: Scene<'_>, slot: u32, sent: &SentMessage) {
        let Scene { roster, groups, .. } = scene;
        let message = &self.slots[slot as usize];
        self.integrity.judge(
            Naming { roster, groups, names: &self.names },
            scene.view_ids,
            message,
        );
        let key = class_key(scene, message, sent);
        let lines = |(start, _): &(StartId, bool)| {
            message.first_by(*start).map_or(0, |delivery| delivery.line)
        };
        let example = Example {
            name: message.name,
            text: self.names.fleeting(message.name),
            line: sent.line,
            place: message.place,
            deliveries: key.delivered.iter().map(lines).collect(),
        };
        let class = self.classes.add(&key, sent.t_ns, &example);
        if !scene.closing {
            let retained =
                Retained::new(sent.line, sent.t_ns, sent.digest, sent.bytes, message.place);
            self.archive.add(message.name, class, retained);
            self.names.forget(message.name);
        }
        self.release(slot);
    }
}

/// Returns whether a group has views and the node is not in the view in which the message is
/// delivered.
fn is_outside(scene: Scene<'_>, message: &HeldMessage, group: GroupId, node: NodeId) -> bool {
    let of = view_of(scene, message, group);
    of.and_then(|of| scene.views.members_of(group, of.view))
        .is_some_and(|members| !members.has(node))
}

/// Returns the view of a message in one of its groups.
fn view_of(scene: Scene<'_>, message: &HeldMessage, group: GroupId) -> Option<MessageView> {
    let direct = |delivery: &Delivery| {
        let here = delivery.group == group && delivery.view != NO_VIEW;
        here.then(|| MessageView { view: scene.view_ids[delivery.view as usize], is_direct: true })
    };
    let in_view = || message.delivered().filter(|delivery| delivery.is_in_view());
    let past = message.past_views.iter().filter(|(of, _)| *of == group).map(|(_, past)| *past);
    let lowest = in_view().filter_map(direct).chain(past).min_by_key(MessageView::rank);
    let set_size = message.sent.map_or(0, |sent| scene.groups.of(sent.groups).groups.len());
    if set_size < 2 || lowest.is_some_and(|of| of.is_direct) {
        return lowest;
    }
    let others = in_view().filter(|delivery| delivery.group != group);
    let members = others
        .filter(|delivery| scene.groups.has_member(group, scene.roster.node_of(delivery.start)));
    let elsewhere =
        members.filter_map(|delivery| scene.views.before(delivery.start, group, delivery.line));
    let elsewhere = elsewhere.map(|view| MessageView { view, is_direct: false });
    lowest.into_iter().chain(elsewhere).min_by_key(MessageView::rank)
}

fn class_key(scene: Scene<'_>, message: &HeldMessage, sent: &SentMessage) -> ClassKey {
    let firsts = message.deliveries.iter().filter(|delivery| !delivery.marks.any(Marks::REPEAT));
    let mut delivered: Vec<(StartId, bool)> =
        firsts.map(|delivery| (delivery.start, !delivery.marks.any(Marks::UNADDRESSED))).collect();
    delivered.sort_unstable();
    let groups = &scene.groups.of(sent.groups).groups;
    let views = groups.iter().map(|group| view_of(scene, message, *group)).collect();
    ClassKey { sender: sent.start, groups: sent.groups, answer: sent.answer, delivered, views }
}

#[cfg(test)]
mod tests {
    use crate::check::Judge;
    use crate::check::testing::Play;
    use crate::history::Reader;

    /// Returns the number of messages that a judge still holds at the end if it forgets as soon as
    /// it can.
    fn held(play: &Play) -> usize {
        let mut judge = Judge::holding(8);
        let mut reader = Reader::new(play.text().as_bytes());
        while let Some((line, event)) = reader.next_event().expect("it is readable") {
            judge.take(line, &event).expect("it keeps its rules");
        }
        judge.ledger.live.len()
    }

    const ROUNDS: u64 = 500;

    /// Sends a message of "a" in each round. These nodes deliver every message, except that
    /// `but_hundredth` misses every hundredth.
    fn rounds(play: &mut Play, nodes: &[&str], but_hundredth: &str) {
        for round in 0..ROUNDS {
            play.sends("a", 1);
            let number = play.sent("a") - 1;
            for node in nodes {
                if *node != but_hundredth || round % 100 != 50 {
                    play.deliver(node, &[&format!("a/1/{number}")]);
                }
            }
        }
    }

    #[test]
    fn message_is_forgotten_once_all_have_delivered() {
        let mut play = Play::new(&["a", "b", "c"]);
        rounds(&mut play, &["a", "b", "c"], "");
        assert!(held(&play) < 30, "{}", held(&play));
    }

    #[test]
    fn message_is_kept_while_a_node_awaits_it() {
        let mut play = Play::new(&["a", "b", "c"]);
        rounds(&mut play, &["a", "b"], "");
        assert_eq!(held(&play), ROUNDS as usize);
    }

    #[test]
    fn killed_or_skipping_node_does_not_retain_messages() {
        let mut play = Play::new(&["a", "b", "c"]);
        rounds(&mut play, &["a", "b", "c"], "");
        play.fault("kill", "c");
        rounds(&mut play, &["a", "b"], "b");
        assert!(held(&play) < 30, "{}", held(&play));
    }

    #[test]
    fn member_outside_the_view_does_not_retain_messages() {
        let mut play = Play::of(
            r#"{"ev":"group","group":"g","members":["a","b","never"],"senders":["a"]}"#,
            &["a", "b"],
        );
        for node in ["a", "b"] {
            play.line(&format!(
                r#"{{"ev":"view","t_ns":1,"node":"{node}","inc":1,"group":"g","view":1,"members":["a","b"]}}"#
            ));
        }
        rounds(&mut play, &["a", "b"], "");
        assert!(held(&play) < 30, "{}", held(&play));
    }
}
