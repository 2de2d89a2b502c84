//! One member's application: it sends its own messages, checks every delivered message, and records
//! the order.

use crate::fabric::Local;
use crate::group::{MEMBERS, MESSAGE_MAX, Report, SUBGROUP, VIEW};
use crate::{entries, stack, surface};
use tramontane_core::fabric::Fabric;
use tramontane_core::ids::{Place, Rank, Time};
use tramontane_core::multicast::Batch;
use tramontane_core::node::{Node, Progress};
use tramontane_core::smc::{Outbox, ReserveError};

/// Number of messages that each member sends. The last member sends so few that the others need its
/// nulls.
const TO_SEND: [u64; MEMBERS] = [1000, 600, 100];
const TOTAL: usize = 1700;

/// Number of steps per member after which the run counts as stuck; about 600 are enough.
const STEPS_MAX: u64 = 20_000;

/// The deliveries of a member.
struct History {
    /// Sequence positions in the order of delivery. A position determines its sender, and each
    /// sender's messages are checked, so equal positions mean equal histories.
    places: [Place; TOTAL],
    count: usize,
    /// Number of messages from each sender.
    of_sender: [u64; MEMBERS],
    /// Whether every message was received as it was sent.
    right: bool,
}

impl History {
    fn take(&mut self, batch: &mut Batch<'_>) {
        self.right &= batch.subgroup() == SUBGROUP;
        for message in batch {
            let sender = message.sender;
            self.right &= message.rank.index() == sender.index();
            let Some(number) = self.of_sender.get_mut(sender.index()) else {
                self.right = false;
                return;
            };
            self.right &= message.payload.len() == length_of(message.rank, *number);
            for (index, byte) in message.payload.iter().enumerate() {
                self.right &= *byte == byte_of(message.rank, *number, index);
            }
            *number = number.saturating_add(1);
            match self.places.get_mut(self.count) {
                Some(place) => *place = message.place,
                None => self.right = false,
            }
            self.count = self.count.saturating_add(1);
        }
    }

    /// Returns whether all messages were delivered, each once, at rising positions.
    fn is_complete(&self) -> bool {
        let rising = self.places.iter().zip(self.places.iter().skip(1)).all(|(a, b)| a < b);
        self.right && rising && self.count == TOTAL && self.of_sender == TO_SEND
    }
}

/// Returns the length of a sender's message in bytes; some are empty.
fn length_of(sender: Rank, number: u64) -> usize {
    let length = number.wrapping_mul(37).wrapping_add(u64::from(sender.0).wrapping_mul(11));
    (length % (u64::from(MESSAGE_MAX).wrapping_add(1))) as usize
}

/// Returns one byte of a sender's message.
fn byte_of(sender: Rank, number: u64, index: usize) -> u8 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left((index & 63) as u32);
    (mixed as u8).wrapping_add(index as u8).wrapping_add(sender.0 as u8)
}

/// A node with everything that belongs to it.
pub struct Member<'m> {
    rank: Rank,
    node: Node<'m>,
    fabric: Local,
    outbox: Outbox<'m>,
    history: History,
    sent: u64,
    /// Number of reservations that were refused for lack of a slot. `dropped` counts those that
    /// were dropped.
    full: u64,
    dropped: u64,
    nulls: u64,
}

impl<'m> Member<'m> {
    /// Creates a member that has sent nothing yet.
    pub fn new(rank: Rank, node: Node<'m>, fabric: Local, outbox: Outbox<'m>) -> Self {
        let history = History {
            places: [Place::ZERO; TOTAL],
            count: 0,
            of_sender: [0; MEMBERS],
            right: true,
        };
        Self { rank, node, fabric, outbox, history, sent: 0, full: 0, dropped: 0, nulls: 0 }
    }

    /// Sends a few messages, a different number in each turn, and sometimes drops a reservation.
    fn send(&mut self, turn: u64) -> Option<()> {
        let to_send = *TO_SEND.get(self.rank.index())?;
        for _ in 0..turn.wrapping_mul(5).wrapping_add(u64::from(self.rank.0)) % 12 {
            if self.sent == to_send {
                break;
            }
            let mut slot = match self.outbox.reserve(length_of(self.rank, self.sent)) {
                Ok(slot) => slot,
                Err(ReserveError::Full) => {
                    self.full = self.full.saturating_add(1);
                    break;
                }
                Err(_) => return None,
            };
            if slot.position().get() % 29 == 28 {
                self.dropped = self.dropped.saturating_add(1);
                continue;
            }
            for (index, byte) in slot.payload().iter_mut().enumerate() {
                *byte = byte_of(self.rank, self.sent, index);
            }
            slot.commit();
            self.sent = self.sent.saturating_add(1);
        }
        Some(())
    }

    fn step(&mut self, now: Time) -> Option<Progress> {
        entries::plant();
        let history = &mut self.history;
        let mut application = |batch: &mut Batch<'_>| history.take(batch);
        let progress = self.node.step(now, &mut self.fabric, &mut application).ok()?;
        self.nulls = self.nulls.saturating_add(progress.nulls);
        progress.lost.is_none().then_some(progress)
    }
}

/// Lets the members exchange all their messages, and compares their deliveries.
pub fn exchange(members: &mut [Member<'_>; MEMBERS]) -> Option<Report> {
    let mut turn = 0_u64;
    let mut busy = true;
    stack::paint();
    while busy {
        turn = turn.saturating_add(1);
        if turn > STEPS_MAX {
            return None;
        }
        busy = false;
        for member in members.iter_mut() {
            entries::send(|| member.send(turn))?;
            let now = Time(turn.saturating_mul(1000));
            let idle = entries::node_step(|| member.step(now))?.is_idle();
            busy |= !idle || !member.node.is_settled();
        }
    }
    let stack_bytes = stack::used();
    let [first, others @ ..] = &*members;
    let same = others.iter().all(|other| other.history.places == first.history.places);
    if !same || !members.iter().all(|member| member.history.is_complete()) {
        return None;
    }
    let sum = |of: fn(&Member<'_>) -> u64| members.iter().map(of).fold(0, u64::saturating_add);
    let (full, dropped) = (sum(|member| member.full), sum(|member| member.dropped));
    let nulls = sum(|member| member.nulls);
    // A run without these cases would have tested less than it claims.
    if full == 0 || dropped == 0 || nulls == 0 {
        return None;
    }
    let posts = sum(|member| member.fabric.posts);
    let report = Report { messages: TOTAL as u64, nulls, posts, stack_bytes };
    for member in members.iter_mut() {
        surface::node(&mut member.node, &mut member.fabric);
        if !member.fabric.retire(VIEW) {
            return None;
        }
    }
    Some(report)
}
