//! The engine's side of sending. Messages that are undelivered at the end of a view are carried
//! into the next view (VIE-7).
//!
//! # Invariants
//! - A message is numbered once: its *ordinal* counts everything that this node has reserved in the
//!   subgroup. A view's ring begins with the first message that the previous view did not deliver,
//!   so ordinals continue across views.
//! - Senders receive the next view's ring only when everything carried over from earlier views is
//!   in it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tramontane_core::ids::{DurableCount, SubgroupId, Time};
use tramontane_core::node::{DurableCounts, Undelivered, UndeliveredMessage};

use super::pausing::Pausing;
use super::send_state::{SendState, ViewOutbox};
use crate::group::clients::origin::Origin;
use crate::group::description::terms::SubgroupDescription;
use crate::group::send::receipt::durable_marks::DurableMarks;
use crate::group::send::receipt::level::Count;
use crate::group::send::receipt::ordinal::Ordinal;
use crate::member::Shared;

/// A message that was committed, but that this member had not delivered when it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsent {
    /// The subgroup.
    pub subgroup: SubgroupId,
    /// The message's number among this node's own messages.
    pub ordinal: Ordinal,
    /// The bytes.
    pub payload: Vec<u8>,
    /// Whether the message was sent, so that other members may have delivered it.
    pub was_sent: bool,
}

/// The messages that a view did not deliver.
struct Carried {
    ring: Arc<ViewOutbox>,
    undelivered: Undelivered,
}

/// The engine's side of one subgroup in which this node sends.
pub(crate) struct SubgroupSending {
    state: Arc<SendState>,
    /// The current view's ring, if this node sends in that view.
    ring: Option<Arc<ViewOutbox>>,
    /// Whether senders have the ring. False while messages of earlier views wait to be carried
    /// over.
    is_handed_out: bool,
    /// Undelivered messages of earlier views, in sending order.
    carried: VecDeque<Carried>,
    is_unordered: bool,
    /// Present if this node pauses when it is idle.
    pausing: Option<Pausing>,
    /// Whether this node has paused in the current view.
    is_paused: bool,
    /// The ordinal after the last discarded message.
    discarded: u64,
    /// Maps durable counts to this node's messages, if the subgroup is logged.
    marks: DurableMarks,
    /// The number of waits at the last check for waiters.
    waits_seen: u64,
    /// Whether slots have become free while no task was seen to wait for one. A task that began to
    /// wait in the meantime is woken when its wait is seen.
    has_freed: bool,
}

impl SubgroupSending {
    pub(crate) fn new(state: Arc<SendState>, subgroup: &SubgroupDescription) -> Self {
        let pause_after_ms = subgroup.pause_senders_after_ms;
        Self {
            state,
            ring: None,
            is_handed_out: false,
            carried: VecDeque::new(),
            is_unordered: subgroup.unordered,
            pausing: (pause_after_ms > 0).then(|| Pausing::new(pause_after_ms)),
            is_paused: false,
            discarded: 0,
            marks: DurableMarks::default(),
            waits_seen: 0,
            has_freed: false,
        }
    }

    pub(crate) fn subgroup(&self) -> SubgroupId {
        self.state.subgroup
    }

    /// Notes how many messages of the current view have been delivered here, and how many records
    /// the log then has, if there is one.
    pub(crate) fn delivered(&mut self, in_view: u64, records: Option<DurableCount>) {
        let Some(ring) = &self.ring else { return };
        let ordinal = ring.first.saturating_add(in_view);
        if self.state.counts.raise(Count::Delivered, ordinal) {
            if let Some(records) = records {
                self.marks.add(ordinal, records);
            }
            self.wake();
        }
    }

    /// Notes the durable counts of the subgroup.
    pub(crate) fn durable(&mut self, durable: &DurableCounts) {
        if self.marks.durable(durable, &self.state.counts) {
            self.wake();
        }
    }

    /// Wakes new waiters whose level has been reached in the meantime, and, if slots have become
    /// free, the tasks that wait for one.
    #[inline]
    pub(crate) fn look_for_waits(&mut self, has_freed: bool) {
        self.has_freed |= has_freed;
        let waits = self.state.counts.waits();
        if waits != self.waits_seen {
            self.waits_seen = waits;
            self.state.counts.wake();
        }
        if self.has_freed && self.state.counts.are_slots_awaited() {
            self.has_freed = false;
            self.state.counts.wake_for_slots();
        }
    }

    /// Wakes the waiters whose level has been reached. The next step finds those that begin to wait
    /// in the meantime.
    #[inline]
    fn wake(&self) {
        if self.state.counts.are_awaited() {
            self.state.counts.wake();
        }
    }

    /// Ends the current view, which leaves these messages undelivered. Undelivered messages of
    /// earlier views follow them.
    pub(crate) fn end(&mut self, undelivered: Option<Undelivered>) {
        self.state.set(None);
        self.is_handed_out = false;
        let (Some(ring), Some(mut undelivered)) = (self.ring.take(), undelivered) else { return };
        if self.is_unordered {
            // In an unordered subgroup, it is unknown which members have received the message. If
            // it were resent, it might be delivered twice (DEL-3).
            while undelivered.was_sent() && undelivered.get(ring.cell.borrow_dependent()).is_some()
            {
                undelivered.pass();
            }
        }
        self.carried.push_front(Carried { ring, undelivered });
    }

    /// Returns the ordinal of the first message in the current ring, if this node sends in the
    /// current view.
    pub(crate) fn ring_first(&self) -> Option<u64> {
        self.ring.as_ref().map(|ring| ring.first)
    }

    /// Drops the undelivered messages of earlier views, because the subgroup has been closed, and
    /// is unrelated to them when it is reopened. Ordinals continue after them.
    pub(crate) fn discard(&mut self) {
        for carried in &mut self.carried {
            let Carried { ring, undelivered } = carried;
            while undelivered.get(ring.cell.borrow_dependent()).is_some() {
                undelivered.pass();
            }
            self.discarded = self.discarded.max(carried.first());
        }
        self.carried.clear();
    }

    /// Returns this node's wish to send again, or not to send while it has nothing to send.
    pub(crate) fn wish(&mut self, now: Time) -> Option<bool> {
        let has_work = || self.state.is_ring_wanted() || self.has_carried();
        let wakes = self.pausing.is_some() && self.is_paused && has_work();
        let delivered = self.state.counts.get(Count::Delivered);
        let pausing = self.pausing.as_mut()?;
        match &self.ring {
            None if wakes => pausing.wakes(),
            None => None,
            Some(ring) if self.is_handed_out && ring.reserved() <= delivered => {
                pausing.rests(delivered, now)
            }
            Some(_) => {
                pausing.is_busy();
                None
            }
        }
    }

    /// Returns whether an earlier view left messages undelivered that are not in a ring yet.
    fn has_carried(&self) -> bool {
        let is_left = |carried: &Carried| {
            carried.undelivered.get(carried.ring.cell.borrow_dependent()).is_some()
        };
        self.carried.iter().any(is_left)
    }

    /// Begins a view in which this node may or may not send. `is_paused` says whether it does not
    /// because it was idle.
    pub(crate) fn begin(&mut self, shared: &Arc<Shared>, is_paused: bool) {
        self.is_paused = is_paused;
        if let Some(pausing) = &mut self.pausing {
            pausing.view_begins(!is_paused);
        }
        let delivered = self.state.counts.get(Count::Delivered).max(self.discarded);
        let first = self.carried.front().map_or(delivered, Carried::first);
        self.ring = ViewOutbox::new(shared, self.state.subgroup, first).map(Arc::new);
        self.carry();
    }

    /// Carries undelivered messages into the current view's ring, as far as they have been built,
    /// and then gives the ring to the senders.
    pub(crate) fn carry(&mut self) {
        let Some(ring) = self.ring.as_ref().filter(|_| !self.is_handed_out) else { return };
        while let Some(Carried { ring: from, undelivered }) = self.carried.front_mut() {
            match undelivered.carry(from.cell.borrow_dependent(), ring.cell.borrow_dependent()) {
                Ok(true) => drop(self.carried.pop_front()),
                Ok(false) => return,
                Err(error) => {
                    // This cannot happen, because the next view has the same window and slots; but
                    // no message may be lost silently.
                    tracing::error!(subgroup = %self.state.subgroup, %error, "a message cannot be carried over");
                    return;
                }
            }
        }
        self.is_handed_out = true;
        self.state.set(ring.another());
    }

    /// Returns whether senders are waiting for messages of earlier views.
    pub(crate) fn is_carrying(&self) -> bool {
        match self.is_paused {
            true => self.has_carried(),
            false => self.ring.is_some() && !self.is_handed_out,
        }
    }

    /// Returns committed but undelivered messages to the caller, because the member has ended
    /// (VIE-7). A member that left knows where its last view ended, so no member delivers anything
    /// that this one did not deliver. A member that halted does not know that. Only the first call
    /// counts, because only then is it known which messages were sent. `large` provides the bytes
    /// of large messages, by ordinal.
    pub(crate) fn give_back(
        &mut self,
        has_left: bool,
        unsent: &mut Vec<Unsent>,
        mut large: impl FnMut(u64) -> Option<Vec<u8>>,
    ) {
        if self.state.sent.load(Ordering::Relaxed) != u64::MAX {
            return;
        }
        let mut sent = self.state.counts.get(Count::Delivered);
        for Carried { ring, undelivered } in &mut self.carried {
            let from = ring.cell.borrow_dependent();
            while let Some(remaining) = undelivered.get(from) {
                let was_sent = undelivered.was_sent() && !has_left;
                let ordinal = ring.first.saturating_add(undelivered.position().0);
                if was_sent {
                    sent = ordinal.saturating_add(1);
                }
                let payload = match remaining {
                    // Clients resend their messages themselves.
                    UndeliveredMessage::Message(payload) if self.state.has_clients => {
                        Origin::of_member(payload).map(<[u8]>::to_vec)
                    }
                    UndeliveredMessage::Message(payload) => Some(payload.to_vec()),
                    UndeliveredMessage::Large(_) => large(ordinal),
                    UndeliveredMessage::Dropped | UndeliveredMessage::Building => None,
                };
                let (subgroup, ordinal) = (self.state.subgroup, Ordinal(ordinal));
                unsent.extend(payload.map(|payload| Unsent {
                    subgroup,
                    ordinal,
                    payload,
                    was_sent,
                }));
                undelivered.pass();
            }
        }
        self.carried.clear();
        self.state.sent.store(sent, Ordering::Release);
        self.state.counts.end();
    }
}

impl Carried {
    /// Returns the ordinal of the first message.
    fn first(&self) -> u64 {
        self.ring.first.saturating_add(self.undelivered.position().0)
    }
}
