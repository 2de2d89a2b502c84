//! Connects two members in a view: each shows the other its card, in a separate row on the side
//! channel, and reports when its end is up.
//!
//! A row has a slot for each member of the view, which is posted to that member only:
//!
//! | bytes | content |
//! |---|---|
//! | 0 to 8 | the writer's progress: [`SHOWN`], [`CONNECTED`] |
//! | from 16 | its card for the reader, whose length depends on the connections and rings |
//!
//! All members of a view have the same number of connections with each peer, so all slots have the
//! same size.
//!
//! A cell with a false claim does no harm. A card is checked like everything from a peer, and a
//! member that claims too early to be connected only loses what is sent to it.

use tramontane_core::fabric::{Area, Fabric, HostFabric, Kind, Region, ViewPlan, ViewRows, Write};
use tramontane_core::ids::{Rank, ViewId};

use crate::fabric::Verbs;
use crate::protocol::Card;

/// The offset of the card in a slot.
const CARD_OFFSET: usize = 16;

/// The card is present.
const SHOWN: u64 = 1;

/// The writer's end is up.
const CONNECTED: u64 = 2;

/// The progress of this member with a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CardStage {
    /// The peer has not arrived on the side channel, or this end has not been created yet.
    Awaited,
    /// The peer has been shown its card.
    Shown,
    /// This end is being brought up.
    Connecting,
    /// This end is up, and the peer has yet to be told.
    Up,
    /// The peer has been told.
    Told,
    /// Both ends are up, or never will be.
    Done,
}

/// The handshakes of one view.
#[derive(Debug)]
pub(super) struct Cards<R> {
    view: ViewId,
    rows: R,
    /// The size of a member's slot in a row.
    place_bytes: usize,
    /// This member's progress with each peer, by rank.
    stages: Vec<CardStage>,
}

impl<R: ViewRows> Cards<R> {
    /// Allocates the rows for the cards of a planned view, for members with `connections`
    /// connections to each peer, and places for `rings` rings on each card. The digest
    /// distinguishes views with the same number.
    pub(super) fn new<S>(
        side_channel: &mut S,
        plan: &ViewPlan<'_>,
        connections: usize,
        rings: usize,
    ) -> Result<Self, S::MemoryError>
    where
        S: HostFabric<Rows = R>,
    {
        let members = plan.members();
        let place_bytes = place_bytes(connections, rings);
        let row_bytes = vec![place_bytes * members.len(); members.len()];
        let (view, own) = (plan.view(), plan.own());
        let cards = ViewPlan::with_sizes(view, own, members, &row_bytes, plan.digest());
        let rows = side_channel.rows(&cards)?;
        let mut stages = vec![CardStage::Awaited; members.len()];
        if let Some(stage) = stages.get_mut(own.index()) {
            *stage = CardStage::Done;
        }
        Ok(Self { view, rows, place_bytes, stages })
    }

    /// Opens the rows, so that peers' cards arrive from then on.
    pub(super) fn open<S: Fabric>(&self, side_channel: &mut S) -> Result<(), S::Error> {
        side_channel.open(self.view, &self.rows.memory())
    }

    /// Returns whether every peer is connected or gone.
    pub(super) fn is_done(&self) -> bool {
        self.stages.iter().all(|stage| *stage == CardStage::Done)
    }

    /// Records that a peer is gone.
    pub(super) fn forget(&mut self, peer: Rank) {
        if let Some(stage) = self.stages.get_mut(peer.index()) {
            *stage = CardStage::Done;
        }
    }

    /// Makes progress with every peer, as far as currently possible.
    pub(super) fn advance(&mut self, side_channel: &mut impl Fabric, verbs: &mut Verbs) {
        for peer in (0..).map(Rank).take(self.stages.len()) {
            while let Some(next) = self.next(peer, side_channel, verbs) {
                self.stages[peer.index()] = next;
            }
        }
    }

    /// Returns this member's next state with a peer, if that state can be reached now.
    fn next(
        &self,
        peer: Rank,
        side_channel: &mut impl Fabric,
        verbs: &mut Verbs,
    ) -> Option<CardStage> {
        let stage = self.stages[peer.index()];
        if stage != CardStage::Done && verbs.loss_of(peer).is_some() {
            return Some(CardStage::Done);
        }
        match stage {
            CardStage::Awaited => self.show(peer, side_channel, verbs).then_some(CardStage::Shown),
            CardStage::Shown if self.stage_of(peer) >= SHOWN => {
                let card = self.card(peer, verbs.card_for(peer).len())?;
                Some(if verbs.connect(peer, &card) {
                    CardStage::Connecting
                } else {
                    CardStage::Done
                })
            }
            CardStage::Connecting if verbs.is_connected(peer) => Some(CardStage::Up),
            CardStage::Up => {
                self.post(peer, CONNECTED, &[], side_channel).then_some(CardStage::Told)
            }
            CardStage::Told if self.stage_of(peer) >= CONNECTED => {
                verbs.admit(peer);
                Some(CardStage::Done)
            }
            CardStage::Shown | CardStage::Connecting | CardStage::Told | CardStage::Done => None,
        }
    }

    fn show(&self, peer: Rank, side_channel: &mut impl Fabric, verbs: &Verbs) -> bool {
        if !verbs.has_card(peer) || !side_channel.ready(self.view, peer) {
            return false;
        }
        let card = verbs.card_for(peer);
        let offset = self.place(peer) + CARD_OFFSET;
        let has_place = card.len() <= self.place_bytes - CARD_OFFSET;
        let is_stored = has_place && self.rows.row().apply(offset, &card).is_ok();
        let content = write(offset, card.len(), Kind::Content);
        is_stored && self.post(peer, SHOWN, &[content], side_channel)
    }

    /// Stores this member's progress, and posts it after the data that belongs to it. Returns
    /// `false` if there is currently no room.
    fn post(
        &self,
        peer: Rank,
        state: u64,
        content: &[Write],
        side_channel: &mut impl Fabric,
    ) -> bool {
        let Ok(cell) = self.rows.row().cell(self.place(peer)) else { return false };
        cell.publish(state);
        let mut list = content.to_vec();
        list.push(write(self.place(peer), size_of::<u64>(), Kind::Guard));
        side_channel.post(self.view, peer, &list, None).is_ok()
    }

    /// Returns a peer's progress, as the peer reports it.
    fn stage_of(&self, peer: Rank) -> u64 {
        let rows = self.rows.rows();
        let cell =
            rows.get(peer.index()).and_then(|row| row.cell(self.place(self.rows.own())).ok());
        cell.map_or(0, |cell| cell.load())
    }

    fn card(&self, peer: Rank, bytes: usize) -> Option<Vec<u8>> {
        let mut card = vec![0; bytes];
        let rows = self.rows.rows();
        let offset = self.place(self.rows.own()) + CARD_OFFSET;
        rows.get(peer.index())?.read(offset, &mut card).ok()?;
        Some(card)
    }

    /// Returns the offset of a member's slot in a row, for both directions.
    const fn place(&self, member: Rank) -> usize {
        member.index() * self.place_bytes
    }
}

/// Returns the size of a slot: a cell followed by the card of `connections` connections and `rings`
/// rings, in whole cache lines.
const fn place_bytes(connections: usize, rings: usize) -> usize {
    const CACHE_LINE: usize = 64;
    (CARD_OFFSET + Card::bytes(connections, rings)).next_multiple_of(CACHE_LINE)
}

const fn write(offset: usize, length: usize, kind: Kind) -> Write {
    let area = Area { region: Region::ROW, offset };
    Write { source: area, target: area, length, kind }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::REGIONS_MAX;

    #[test]
    fn card_slot_fits_any_number_of_connections() {
        for connections in 0..=REGIONS_MAX + 2 {
            let bytes = place_bytes(connections, 2);
            assert!(bytes - CARD_OFFSET >= Card::bytes(connections, 2));
            assert_eq!(bytes % 64, 0);
        }
        assert_eq!(place_bytes(3, 0), 128, "as many as one place of two cache lines holds");
    }
}
