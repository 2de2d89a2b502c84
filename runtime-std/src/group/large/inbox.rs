//! The memory for one sender's large messages at another member.
//!
//! # Invariant
//! `whole` holds the messages that are complete at this member but not yet delivered, in the order
//! in which they were sent. The first of them is number `first` of that sender in this view. A
//! correct sender has at most one window of them, because it waits until all members have
//! delivered.

use std::collections::VecDeque;

use tramontane_core::fabric::Area;
use tramontane_core::rdmc::transfer::MessageMemory;

use super::pool::Pool;
use crate::block_transfer::buffer::{Buffer, place_block};

/// The reason why nothing further is accepted.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The sender has more messages in flight than its window allows, or one above the size limit.
    Misbehaved,
    /// This member has no memory for the message.
    NoMemory(String),
}

/// One sender's messages at one receiver, in one view.
#[derive(Debug)]
pub(super) struct Inbox {
    staging: Buffer,
    under_way: Option<Buffer>,
    whole: VecDeque<(Buffer, usize)>,
    first: u64,
    window: usize,
    bytes_max: usize,
    pub(super) refusal: Option<Refusal>,
}

/// An inbox during a step, with the pool of its buffers.
pub(super) struct Receiving<'i> {
    pub(super) inbox: &'i mut Inbox,
    pub(super) pool: &'i mut Pool,
}

impl Inbox {
    /// Creates an inbox. `bytes_max` counts whole blocks.
    pub(super) fn new(staging: Buffer, window: usize, bytes_max: usize) -> Self {
        Self {
            staging,
            under_way: None,
            whole: VecDeque::new(),
            first: 0,
            window,
            bytes_max,
            refusal: None,
        }
    }

    /// Returns the area for first blocks.
    pub(super) fn staging(&self) -> Area {
        self.staging.area()
    }

    /// Returns the number of messages that have completely arrived in this view.
    pub(super) fn arrived(&self) -> u64 {
        self.first.saturating_add(u64::try_from(self.whole.len()).unwrap_or(u64::MAX))
    }

    /// Returns whether no message is waiting to be delivered.
    pub(super) fn is_empty(&self) -> bool {
        self.whole.is_empty()
    }

    /// Returns message `number` of this view while it is still held.
    pub(super) fn get(&self, number: u64) -> Option<&[u8]> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let (buffer, bytes) = self.whole.get(index)?;
        buffer.get(..*bytes)
    }

    /// Releases delivered messages, which are those below `number`. `exchange` may keep their
    /// buffers, and return others.
    pub(super) fn delivered(
        &mut self,
        number: u64,
        pool: &mut Pool,
        mut exchange: impl FnMut(Buffer, usize) -> Option<Buffer>,
    ) {
        while self.first < number {
            let Some((buffer, bytes)) = self.whole.pop_front() else { return };
            self.first += 1;
            exchange(buffer, bytes).into_iter().for_each(|buffer| pool.put(buffer));
        }
    }

    /// Ends the view. Undelivered messages are resent, or given up.
    pub(super) fn end(self, pool: &mut Pool) {
        self.whole.into_iter().for_each(|(buffer, _)| pool.put(buffer));
        self.under_way
            .into_iter()
            .chain([self.staging])
            .for_each(|buffer| pool.put_unfilled(buffer));
    }
}

impl MessageMemory for Receiving<'_> {
    fn incoming(&mut self, _number: u64, bytes: usize) -> Option<Area> {
        let Self { inbox, pool } = self;
        if inbox.whole.len() >= inbox.window || bytes > inbox.bytes_max {
            inbox.refusal = Some(Refusal::Misbehaved);
            return None;
        }
        match pool.take(bytes) {
            Ok(buffer) => {
                let area = buffer.area();
                inbox.under_way = Some(buffer);
                Some(area)
            }
            Err(error) => {
                inbox.refusal = Some(Refusal::NoMemory(error.to_string()));
                None
            }
        }
    }

    fn place(&mut self, from: Area, to: Area, length: usize) {
        if let Some(message) = &mut self.inbox.under_way {
            place_block(&self.inbox.staging, from.offset, message, to.offset, length);
        }
    }

    fn completed(&mut self, _number: u64, bytes: usize) {
        if let Some(buffer) = self.inbox.under_way.take() {
            self.inbox.whole.push_back((buffer, bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::AnyBlockStore;

    fn inbox(pool: &mut Pool) -> Inbox {
        Inbox::new(pool.take(64).expect("memory"), 2, 256)
    }

    fn receive(inbox: &mut Inbox, pool: &mut Pool, bytes: usize) -> bool {
        let mut receiving = Receiving { inbox, pool };
        let has_place = receiving.incoming(0, bytes).is_some();
        receiving.completed(0, bytes);
        has_place
    }

    #[test]
    fn undelivered_large_messages_never_exceed_window() {
        let mut pool = Pool::new(AnyBlockStore::Tcp(Default::default()), 8, 1 << 20);
        let mut inbox = inbox(&mut pool);
        assert!(receive(&mut inbox, &mut pool, 256) && receive(&mut inbox, &mut pool, 100));
        assert_eq!((inbox.arrived(), inbox.get(1).map(<[u8]>::len)), (2, Some(100)));
        assert!(!receive(&mut inbox, &mut pool, 1));
        assert!(matches!(inbox.refusal, Some(Refusal::Misbehaved)));
        // Delivered messages no longer have a number, and make room.
        let mut delivered = Vec::new();
        inbox.delivered(1, &mut pool, |buffer, bytes| {
            delivered.push(bytes);
            Some(buffer)
        });
        assert_eq!(delivered, [256]);
        assert_eq!((inbox.get(0), inbox.arrived()), (None, 2));
        assert!(receive(&mut inbox, &mut pool, 256));
        assert_eq!(inbox.arrived(), 3);
    }

    #[test]
    fn overlong_large_message_is_refused() {
        let mut pool = Pool::new(AnyBlockStore::Tcp(Default::default()), 8, 1 << 20);
        let mut inbox = inbox(&mut pool);
        assert!(!receive(&mut inbox, &mut pool, 257));
        assert!(matches!(inbox.refusal, Some(Refusal::Misbehaved)));
        assert_eq!(inbox.arrived(), 0);
    }
}
