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
//! - If answers have bytes, each reply is kept with the answer's length and bytes.
//!
//! Requirements: TRM-6, TRM-7.

use super::entry::MessageId;
use super::overlay::Overlay;
use super::shape::{answer_cells, modulo};
use crate::ids::{ClientNumber, index_from_u16, index_from_u32, u64_from_index};

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
    answer_cells: usize,
}

impl<'s> Replies<'s> {
    /// Returns the number of cells for the replies to an overlay's clients.
    pub(super) const fn cells(overlay: &Overlay) -> usize {
        let limits = overlay.limits();
        cells_of_client(limits.client_window, answer_cells(overlay.answer_max()))
            .saturating_mul(index_from_u16(limits.clients))
    }

    pub(super) fn new(cells: &'s mut [u64], overlay: &Overlay) -> Self {
        cells.fill(0);
        let (window, answer_cells) =
            (overlay.limits().client_window, answer_cells(overlay.answer_max()));
        Self { cells, window, answer_cells }
    }

    pub(super) fn of_client(&self, client: ClientNumber) -> Option<(u64, &[u64])> {
        let cells = cells_of_client(self.window, self.answer_cells);
        let from = client.index().checked_mul(cells)?;
        let (incarnation, replies) = self.cells.get(from..)?.split_first()?;
        Some((*incarnation, replies.get(..index_from_u32(self.window))?))
    }

    /// Returns the cells of the answer that is kept with a client's reply.
    pub(super) fn answer(&self, client: ClientNumber, index: usize) -> &[u64] {
        let cells = cells_of_client(self.window, self.answer_cells);
        let answers = client.index().saturating_mul(cells).saturating_add(self.answers());
        let from = answers.saturating_add(index.saturating_mul(self.answer_cells));
        let kept = self.cells.get(from..from.saturating_add(self.answer_cells)).unwrap_or(&[]);
        let used = kept.first().map_or(0, |length| length.div_ceil(8).saturating_add(1));
        kept.get(..usize::try_from(used).unwrap_or(usize::MAX)).unwrap_or(kept)
    }

    /// Keeps a reply with its answer, unless the client has a later incarnation.
    pub(super) fn keep(&mut self, id: MessageId, reply: u64, answer: &[u8]) -> Option<()> {
        let cells = cells_of_client(self.window, self.answer_cells);
        let from = id.client.index().checked_mul(cells)?;
        let answers = self.answers();
        let kept = self.cells.get_mut(from..from.checked_add(cells)?)?;
        let (incarnation, _) = kept.split_first_mut()?;
        if *incarnation < u64::from(id.incarnation) {
            kept.fill(0);
            *kept.first_mut()? = u64::from(id.incarnation);
        } else if *incarnation > u64::from(id.incarnation) {
            return None;
        }
        let (replies, kept) = kept.split_at_mut_checked(answers)?;
        let index = modulo(id.number, self.window);
        let cell = replies.get_mut(index.saturating_add(1))?;
        if *cell < reply {
            *cell = reply;
            let from = index.saturating_mul(self.answer_cells);
            let place = kept.get_mut(from..from.saturating_add(self.answer_cells))?;
            store(place, answer);
        }
        Some(())
    }

    pub(super) const fn all(&self) -> &[u64] {
        self.cells
    }

    pub(super) const fn all_mut(&mut self) -> &mut [u64] {
        self.cells
    }

    /// Returns the index of a client's first answer among its cells.
    const fn answers(&self) -> usize {
        index_from_u32(self.window).saturating_add(1)
    }
}

const fn cells_of_client(window: u32, answer_cells: usize) -> usize {
    let each = answer_cells.saturating_add(1);
    index_from_u32(window).saturating_mul(each).saturating_add(1)
}

/// Stores an answer's length, and the bytes that fit.
fn store(place: &mut [u64], answer: &[u8]) {
    let Some((length, cells)) = place.split_first_mut() else { return };
    *length = u64_from_index(answer.len());
    let mut bytes = answer.iter();
    // bound: the cells of an answer
    for cell in cells.iter_mut().take(answer.len().div_ceil(8)) {
        *cell = u64::from_le_bytes([0; 8].map(|none: u8| bytes.next().copied().unwrap_or(none)));
    }
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
        let mut replies = Replies { cells: &mut cells, window: 2, answer_cells: 0 };
        let id = |incarnation, number| MessageId { client: ClientNumber(1), incarnation, number };
        for (id, reply) in [(id(7, 0), 1), (id(7, 1), 2), (id(7, 2), 3)] {
            assert_eq!(replies.keep(id, reply, &[1]), Some(()));
        }
        assert_eq!(replies.keep(id(6, 5), 9, &[]), None, "an earlier incarnation");
        assert_eq!(replies.of_client(ClientNumber(1)), Some((7, &[3, 2][..])));
        assert_eq!(replies.of_client(ClientNumber(0)), Some((0, &[0, 0][..])));
        assert_eq!(replies.keep(id(8, 3), 4, &[]), Some(()));
        assert_eq!(replies.of_client(ClientNumber(1)), Some((8, &[0, 4][..])));
        let stranger = MessageId { client: ClientNumber(2), incarnation: 1, number: 0 };
        assert_eq!(replies.keep(stranger, 1, &[]), None);
    }

    #[test]
    fn answer_is_kept_with_its_reply() {
        // Two clients with two replies, each with a length and nine bytes in two cells.
        let mut cells = [0; 18];
        let mut replies = Replies { cells: &mut cells, window: 2, answer_cells: 3 };
        let id = |number| MessageId { client: ClientNumber(1), incarnation: 1, number };
        assert_eq!(replies.keep(id(0), 1, &[1, 2, 3, 4, 5, 6, 7, 8, 9]), Some(()));
        assert_eq!(replies.keep(id(1), 2, &[]), Some(()));
        assert_eq!(replies.answer(ClientNumber(1), 0), [9, 0x0807_0605_0403_0201, 9]);
        assert_eq!(replies.answer(ClientNumber(1), 1), [0]);
        assert_eq!(replies.answer(ClientNumber(0), 0), [0]);
        assert_eq!(replies.keep(id(0), 1, &[7]), Some(()), "the same reply");
        assert_eq!(replies.answer(ClientNumber(1), 0)[0], 9, "the first answer stays");
        assert_eq!(replies.keep(id(2), 3, &[0xff; 20]), Some(()), "it is too long");
        assert_eq!(replies.answer(ClientNumber(1), 0), [20, u64::MAX, u64::MAX]);
        assert!(replies.answer(ClientNumber(2), 0).is_empty());
        assert_eq!(replies.of_client(ClientNumber(1)), Some((1, &[3, 2][..])));
    }
}
