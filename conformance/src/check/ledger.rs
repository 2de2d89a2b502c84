//! The messages that the judge holds, those that it has forgotten, and the effect of records on
//! both.
//!
//! A message is held from the first record that names it. Once many messages are held, a sweep (see
//! `sweep`) forgets those for which no more records are expected. A record of a forgotten message
//! **revives** the message: it is held again, with the information that is still known.
//!
//! Invariants: a name is held, forgotten or new; `live` counts the held messages and `slots`
//! contains all of them; a slot's generation rises whenever its message is released.

use std::collections::VecDeque;

use super::archive::{Archive, ClassId, Retained};
use super::class::{ClassKey, Classes};
use super::groups::{GroupId, Groups};
use super::integrity::{Integrity, Naming};
use super::message::{Claim, Delivery, HeldMessage, Marks, NO_VIEW, SenderAnswer, SentMessage};
use super::mixing::MixedTable;
use super::name::{Name, Names};
use super::queue::{QueueEntry, Queues};
use super::roster::{Roster, StartId, contradiction};
use super::sender_order::SenderOrder;
use crate::history::Trouble;

/// Number of messages held before the first sweep.
pub(super) const HELD_MIN: usize = 1 << 14;

/// The lines at which the judge needed something that it had already forgotten.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// The line on which an incarnation redelivered a message about which too little is known.
    pub(super) forgotten: Option<u64>,
    /// The line on which an incarnation redelivered messages in a different order from others, if
    /// the order depends on forgotten messages.
    pub(super) order: Option<u64>,
}

impl Doubts {
    /// Returns whether nothing was missing.
    pub(super) fn are_none(&self) -> bool {
        self.forgotten.is_none() && self.order.is_none()
    }
}

/// The messages.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// All names.
    pub(super) names: Names,
    /// The slot of each held name.
    pub(super) live: MixedTable<Name, u32>,
    /// The held messages, with free slots between them.
    pub(super) slots: Vec<HeldMessage>,
    /// The slots that are free.
    pub(super) free: Vec<u32>,
    /// The forgotten messages.
    pub(super) archive: Archive,
    /// The classes of the forgotten messages.
    pub(super) classes: Classes,
    /// Each incarnation's deliveries that are not forgotten.
    pub(super) queues: Queues,
    /// The broken promises about single deliveries.
    pub(super) integrity: Integrity,
    /// The broken promises about the order of one sender's messages.
    pub(super) sender_order: SenderOrder,
    /// Questions that can no longer be decided.
    pub(super) doubts: Doubts,
    /// The position of the next message in the order.
    pub(super) next_place: u64,
    /// Minimum number of held messages before a sweep.
    pub(super) held_min: usize,
    /// Number of held messages that triggers the next sweep.
    pub(super) next_sweep: usize,
}

/// A `deliver` record of a named message.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedDelivery {
    /// The delivery, with the facts that could be decided at once.
    pub(super) delivery: Delivery,
    /// The record's claims about the message.
    pub(super) claim: Claim,
}

impl Ledger {
    /// Creates a ledger that holds at least `held_min` messages before it forgets any.
    pub(super) fn new(held_min: usize) -> Self {
        Self { held_min, next_sweep: held_min, ..Self::default() }
    }

    /// A node started.
    pub(super) fn started(&mut self) {
        self.queues.logs.push(VecDeque::new());
    }

    /// Takes a `multicast`.
    pub(super) fn multicast(
        &mut self,
        base: (&Roster, &Groups),
        text: &str,
        sent: SentMessage,
    ) -> Result<(), Trouble> {
        let name = self.names.name(text);
        let known = self.live.get(&name).copied();
        let twice = match known {
            Some(slot) => self.slots[slot as usize].sent.is_some(),
            None => self.archive.class(name).is_some(),
        };
        if twice {
            return Err(contradiction(format!("{text} is multicast a second time")));
        }
        let slot = known.unwrap_or_else(|| self.hold(name));
        let message = &mut self.slots[slot as usize];
        message.sent = Some(sent);
        let claims = std::mem::take(&mut message.claims);
        for (place, claim) in claims.iter().enumerate() {
            message.deliveries[place].marks =
                compared(base, &sent, (&message.deliveries[place], claim));
        }
        let (roster, groups) = base;
        let counted = message
            .delivered()
            .filter(|delivery| groups.is_ordered(sent.groups, roster.node_of(delivery.start)));
        message.counted = u32::try_from(counted.count()).unwrap_or(u32::MAX);
        Ok(())
    }

    /// Takes an `accepted` or a `refused` record.
    pub(super) fn answered(
        &mut self,
        (roster, groups): (&Roster, &Groups),
        (text, start, line): (&str, StartId, u64),
        answer: SenderAnswer,
    ) -> Result<(), Trouble> {
        let name = self.names.name(text);
        if let Some(class) = self.archive.class(name) {
            let key = &self.classes.get(class).key;
            check_answer((key.sender, key.answer), start, text)?;
            self.revive((roster, groups), name, line);
        }
        let Some(slot) = self.live.get(&name).copied() else {
            return Err(contradiction(format!("{text} is answered before it is multicast")));
        };
        let Some(sent) = &mut self.slots[slot as usize].sent else {
            return Err(contradiction(format!("{text} is answered before it is multicast")));
        };
        check_answer((sent.start, sent.answer), start, text)?;
        (sent.answer, sent.answer_line) = (answer, line);
        if answer == SenderAnswer::Refused {
            self.slots[slot as usize].counted = 0;
        }
        Ok(())
    }

    /// Takes a `deliver` record of a named message.
    pub(super) fn deliver(
        &mut self,
        base: (&Roster, &Groups),
        name: Name,
        delivered: NamedDelivery,
    ) {
        let slot = match self.live.get(&name) {
            Some(slot) => *slot,
            None => match self.archive.class(name) {
                Some(class) => {
                    match self.deliver_forgotten(base, name, class, delivered.delivery) {
                        Some(slot) => slot,
                        None => return,
                    }
                }
                None => self.hold(name),
            },
        };
        self.add_delivery(base, slot, delivered);
    }

    fn add_delivery(
        &mut self,
        base: (&Roster, &Groups),
        slot: u32,
        NamedDelivery { mut delivery, claim }: NamedDelivery,
    ) {
        let message = &mut self.slots[slot as usize];
        let repeated = message.first_by(delivery.start).is_some();
        delivery.marks.set_if(repeated, Marks::REPEAT);
        let mut is_queued = !repeated;
        if let Some(sent) = &message.sent {
            delivery.marks = compared(base, sent, (&delivery, &claim));
            is_queued &= !delivery.is_passed_over() && !sent.is_void();
            let is_ordered = base.1.is_ordered(sent.groups, base.0.node_of(delivery.start));
            message.counted += u32::from(is_queued && is_ordered);
        } else {
            message.claims.push(claim);
        }
        message.add(delivery);
        if is_queued {
            message.entries += 1;
            let entry = QueueEntry { slot, generation: message.generation };
            self.queues.logs[delivery.start.index()].push_back(entry);
        }
    }

    /// Starts to hold a message; returns its slot.
    fn hold(&mut self, name: Name) -> u32 {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(HeldMessage::new(name, 0));
                u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
            }
        };
        let message = &mut self.slots[slot as usize];
        (message.name, message.is_held) = (name, true);
        self.live.insert(name, slot);
        slot
    }

    /// Judges and drops the messages that no node sent, at the end of the history.
    pub(super) fn drop_unsent(&mut self, roster: &Roster, groups: &Groups) {
        for slot in 0..self.slots.len() as u32 {
            let message = &self.slots[slot as usize];
            if message.sent.is_none() && message.is_held {
                self.integrity.judge(Naming { roster, groups, names: &self.names }, &[], message);
                self.release(slot);
            }
        }
    }

    /// Recomputes the positions of the forgotten messages in each class; returns whether all
    /// positions are known.
    pub(super) fn mend(&mut self) -> bool {
        let all = self.archive.all();
        self.classes.mend(
            all.map(|(_, class, retained)| (class, retained.and_then(|retained| retained.place()))),
        )
    }

    /// Releases a held message.
    pub(super) fn release(&mut self, slot: u32) {
        let message = &mut self.slots[slot as usize];
        self.live.remove(&message.name);
        message.reset();
        self.free.push(slot);
    }

    /// Handles the delivery of a forgotten message. Returns its slot if the message is held again.
    fn deliver_forgotten(
        &mut self,
        (roster, groups): (&Roster, &Groups),
        name: Name,
        class: ClassId,
        delivery: Delivery,
    ) -> Option<u32> {
        if let Some(slot) = self.revive((roster, groups), name, delivery.line) {
            return Some(slot);
        }
        // Too little is known to judge the delivery, so it is only counted.
        let mut key = self.classes.get(class).key.clone();
        if key.delivered.iter().any(|(start, _)| *start == delivery.start) {
            return None;
        }
        let addressed = groups.is_addressed(key.groups, roster.node_of(delivery.start));
        key.delivered.push((delivery.start, addressed));
        key.delivered.sort_unstable();
        self.archive.take(name);
        let class = self.classes.shift(class, &key, name);
        self.archive.add_run(name, class);
        None
    }

    /// Revives a forgotten message if enough is known about it.
    fn revive(
        &mut self,
        (roster, groups): (&Roster, &Groups),
        name: Name,
        line: u64,
    ) -> Option<u32> {
        let (class, retained) = self.archive.take(name)?;
        let Some(retained) = retained else {
            self.archive.add_run(name, class);
            self.doubts.forgotten.get_or_insert(line);
            return None;
        };
        self.classes.remove(class, name, retained.place());
        let key = self.classes.get(class).key.clone();
        let slot = self.hold(name);
        let message = &mut self.slots[slot as usize];
        // If positions have contradicted an incarnation's deliveries, the positions no longer show
        // what the other incarnations did.
        let is_placed = self.doubts.order.is_none();
        fill(message, &key, &retained, groups, is_placed);
        if is_placed {
            self.place_again((roster, groups), slot, &key, retained.place().unwrap_or(0));
        }
        Some(slot)
    }

    /// Puts a message back at the front of the queues from which it was popped.
    fn place_again(
        &mut self,
        (roster, groups): (&Roster, &Groups),
        slot: u32,
        key: &ClassKey,
        place: u64,
    ) {
        let lane = groups.of(key.groups).lane;
        let entry = QueueEntry { slot, generation: self.slots[slot as usize].generation };
        let ordered =
            key.deliverers().filter(|start| groups.is_ordered(key.groups, roster.node_of(*start)));
        for start in ordered {
            let message = &mut self.slots[slot as usize];
            message.counted += 1;
            message.entries += 1;
            let queue = self.queues.id(start, lane);
            if let Some(head) = self.queues.queues[queue.index()].revive(place, entry) {
                let head = &mut self.slots[head.slot as usize];
                head.heading = head.heading.saturating_sub(1);
            }
        }
    }
}

/// Fills a slot with what is known of a forgotten message.
fn fill(
    message: &mut HeldMessage,
    key: &ClassKey,
    retained: &Retained,
    groups: &Groups,
    is_placed: bool,
) {
    message.sent = Some(SentMessage {
        line: retained.line,
        t_ns: retained.t_ns,
        start: key.sender,
        groups: key.groups,
        bytes: retained.bytes(),
        digest: retained.digest(),
        answer: key.answer,
        answer_line: 0,
    });
    message.place = retained.place();
    for (start, addressed) in &key.delivered {
        let mut marks = Marks::PAST | Marks::NO_GROUP;
        marks.set_if(!addressed, Marks::UNADDRESSED);
        marks.set_if(!is_placed, Marks::UNPLACED);
        message.add(Delivery { line: 0, start: *start, group: GroupId(0), view: NO_VIEW, marks });
    }
    let views = groups.of(key.groups).groups.iter().zip(&key.views);
    message.past_views.extend(views.filter_map(|(group, view)| Some((*group, (*view)?))));
}

fn check_answer(
    (sender, answer): (StartId, SenderAnswer),
    start: StartId,
    text: &str,
) -> Result<(), Trouble> {
    if sender != start {
        return Err(contradiction(format!(
            "{text} is answered by a different incarnation from the one that multicast it"
        )));
    }
    if answer != SenderAnswer::None {
        return Err(contradiction(format!("{text} is answered a second time")));
    }
    Ok(())
}

/// Compares a delivery with its multicast.
fn compared(
    (roster, groups): (&Roster, &Groups),
    sent: &SentMessage,
    (delivery, claim): (&Delivery, &Claim),
) -> Marks {
    let node = roster.node_of(delivery.start);
    let mut marks = HeldMessage::compared(sent, roster.node_of(sent.start), (delivery, claim));
    marks.set_if(!groups.is_addressed(sent.groups, node), Marks::UNADDRESSED);
    let is_its = groups.of(sent.groups).groups.contains(&delivery.group);
    marks.set_if(!is_its || !groups.has_member(delivery.group, node), Marks::NO_GROUP);
    marks
}
