//! A replica's replies to the last messages of each client.
//!
//! A reply is stored in the row of the client's link. A client that was disconnected has a new row,
//! and a replica that has restored a snapshot did not itself deliver the earlier messages. Each
//! replica therefore keeps the replies to one window of each client's messages; a client never has
//! more unanswered messages than that.
//!
//! # Invariants
//! - A client has a cell for its incarnation and one cell per message of its window, selected by
//!   the message's number.
//! - Replies to an earlier incarnation are discarded once a later one has been answered.
//!
//! Requirements: TRM-6, TRM-7.

use super::entry::MessageId;
use super::overlay::Overlay;
use super::shape::modulo;
use crate::ids::{ClientNumber, index_from_u16, index_from_u32};

/// A replica's reply to one message of a client, in one cell. A reply to a later message is
/// greater, so a late reply never hides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) number: u64,
    pub(super) answer: u8,
}

impl Reply {
    pub(super) fn cell(self) -> u64 {
        let number = self.number.saturating_add(1) & ((1 << 56) - 1);
        (number << 8) | u64::from(self.answer)
    }

    pub(super) fn from_cell(cell: u64) -> Option<Self> {
        let number = (cell >> 8).checked_sub(1)?;
        let answer = u8::try_from(cell & 0xff).unwrap_or(0);
        Some(Self { number, answer })
    }
}

/// The last replies to all clients, in lent cells.
#[derive(Debug)]
pub(super) struct Replies<'s> {
    cells: &'s mut [u64],
    window: u32,
}

impl<'s> Replies<'s> {
    /// Returns the number of cells for the replies to an overlay's clients.
    pub(super) const fn cells(overlay: &Overlay) -> usize {
        let limits = overlay.limits();
        cells_of_client(limits.client_window).saturating_mul(index_from_u16(limits.clients))
    }

    pub(super) fn new(cells: &'s mut [u64], overlay: &Overlay) -> Self {
        cells.fill(0);
        Self { cells, window: overlay.limits().client_window }
    }

    pub(super) fn of_client(&self, client: ClientNumber) -> Option<(u64, &[u64])> {
        let from = client.index().checked_mul(cells_of_client(self.window))?;
        let (incarnation, replies) = self.cells.get(from..)?.split_first()?;
        Some((*incarnation, replies.get(..index_from_u32(self.window))?))
    }

    pub(super) fn keep(&mut self, id: MessageId, reply: u64) -> Option<()> {
        let from = id.client.index().checked_mul(cells_of_client(self.window))?;
        let to = from.checked_add(cells_of_client(self.window))?;
        let (incarnation, replies) = self.cells.get_mut(from..to)?.split_first_mut()?;
        if *incarnation < u64::from(id.incarnation) {
            *incarnation = u64::from(id.incarnation);
            replies.fill(0);
        }
        let cell = replies.get_mut(modulo(id.number, self.window))?;
        if *incarnation == u64::from(id.incarnation) {
            *cell = reply.max(*cell);
        }
        Some(())
    }

    pub(super) const fn all(&self) -> &[u64] {
        self.cells
    }

    pub(super) const fn all_mut(&mut self) -> &mut [u64] {
        self.cells
    }
}

const fn cells_of_client(window: u32) -> usize {
    index_from_u32(window).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_cells_round_trip_and_increase_with_number() {
        for number in [0, 1, (1 << 55) - 1] {
            for answer in [0, 1, 255] {
                let reply = Reply { number, answer };
                assert_eq!(Reply::from_cell(reply.cell()), Some(reply));
                let later = Reply { number: number + 1, answer: 0 };
                assert!(later.cell() > reply.cell());
            }
        }
        assert_eq!(Reply::from_cell(0), None);
    }

    #[test]
    fn latest_window_of_replies_is_kept() {
        let mut cells = [0; 6];
        let mut replies = Replies { cells: &mut cells, window: 2 };
        let id = |incarnation, number| MessageId { client: ClientNumber(1), incarnation, number };
        for (id, reply) in [(id(7, 0), 1), (id(7, 1), 2), (id(7, 2), 3), (id(6, 5), 9)] {
            assert_eq!(replies.keep(id, reply), Some(()));
        }
        assert_eq!(replies.of_client(ClientNumber(1)), Some((7, &[3, 2][..])));
        assert_eq!(replies.of_client(ClientNumber(0)), Some((0, &[0, 0][..])));
        assert_eq!(replies.keep(id(8, 3), 4), Some(()));
        assert_eq!(replies.of_client(ClientNumber(1)), Some((8, &[0, 4][..])));
        let stranger = MessageId { client: ClientNumber(2), incarnation: 1, number: 0 };
        assert_eq!(replies.keep(stranger, 1), None);
    }
}
