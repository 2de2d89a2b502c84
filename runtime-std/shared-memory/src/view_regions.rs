//! The regions of an open view: rights, queues, and the lists that pass through them.

use std::collections::VecDeque;

use tramontane_core::fabric::{Area, ErrorKind, Event, LossCause, Region, Token, Write};
use tramontane_core::ids::Rank;

use super::futex::Bell;
use super::open_view::{OpenView, ViewSeat, rank_at};
use super::region_memory::{OwnRegions, RegionIndex};
use super::region_outlet::{ListResults, Sources};
use super::residence::Residence;
use super::write_queue::{QueueReader, QueueWriter};

/// The work that remains for a view's regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outlook {
    /// Whether a queue must still be sent or received.
    pub(super) is_awaiting: bool,
    /// Whether either end has a queue.
    pub(super) has_queues: bool,
}

impl OpenView {
    /// Returns the seat of a member with which regions may be shared. Fails with `PeerLost` if the
    /// member has been lost, and with `OutOfRange` if there is no such member.
    fn member(&mut self, peer: Rank) -> Result<&mut ViewSeat, ErrorKind> {
        let own = self.own;
        let seat = self.seats.get_mut(peer.index()).filter(|_| peer != own);
        let seat = seat.ok_or(ErrorKind::OutOfRange)?;
        if seat.is_gone() { Err(ErrorKind::PeerLost) } else { Ok(seat) }
    }

    /// Grants a member the right to write to a local region, or revokes that right. If the right is
    /// new, the member is rung so that it checks.
    pub(super) fn set_right(
        &mut self,
        peer: Rank,
        region: RegionIndex,
        given: bool,
    ) -> Result<(), ErrorKind> {
        self.member(peer)?;
        let Self { membership, seats, own, .. } = self;
        let lane = membership.lane(*own, peer).ok_or(ErrorKind::OutOfRange)?;
        let seat = &mut seats[peer.index()];
        if seat.inlet.set(lane, region, given) && given {
            seat.way.iter().for_each(Bell::ring_for_news);
        }
        Ok(())
    }

    /// Returns whether a member may write to a local region.
    pub(super) fn may_write(&self, peer: Rank, region: RegionIndex) -> bool {
        self.seats.get(peer.index()).is_some_and(|seat| seat.inlet.is_given(region))
    }

    /// Posts a list to a peer's region, and rings the peer if it sleeps.
    #[inline]
    pub(super) fn post_to_region(
        &mut self,
        to: Rank,
        (regions, list_bytes_max): (&OwnRegions, usize),
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        self.target(to)?;
        let Self { membership, seats, own, .. } = self;
        let lane = membership.lane(to, *own).ok_or(ErrorKind::OutOfRange)?;
        let seat = &mut seats[to.index()];
        let sources = Sources { row: membership.own_row_reader(), regions, list_bytes_max };
        seat.outlet.post(lane, sources, writes, token)?;
        seat.way.iter().for_each(Bell::ring_if_asleep);
        Ok(())
    }

    /// Copies a part of a peer's region into a local region.
    pub(super) fn read_region(
        &self,
        from: Rank,
        source: Area,
        (into, own): (Area, &OwnRegions),
        length: usize,
    ) -> Result<(), ErrorKind> {
        use tramontane_core::fabric::RegionMemory as _;
        self.target(from)?;
        let region = self.seats[from.index()].outlet.region(source.region);
        let region = region.ok_or(ErrorKind::OutOfRange)?;
        let index = RegionIndex::of(into.region).ok_or(ErrorKind::OutOfRange)?;
        let memory = own[index.0].as_ref().ok_or(ErrorKind::OutOfRange)?;
        let copied = memory.writer().copy_from(into.offset, &region.row(), source.offset, length);
        copied.map_err(|_| ErrorKind::OutOfRange)
    }

    /// Applies peers' lists to the local regions, and reads the results of local posts. Returns
    /// true if a list was applied. A peer whose memory contains impossible values is lost, which is
    /// added to `events`.
    #[inline]
    pub(super) fn carry_regions(
        &mut self,
        own_regions: &OwnRegions,
        told: &mut ListResults<'_>,
        events: &mut VecDeque<Event>,
    ) -> bool {
        let mut has_applied = false;
        for index in 0..self.seats.len() {
            let (rank, Self { id, membership, seats, own, .. }) = (rank_at(index), &mut *self);
            let seat = &mut seats[index];
            let Some(bell) = &seat.way else { continue };
            let lanes = (membership.lane(*own, rank), membership.lane(rank, *own));
            let (Some(ours), Some(theirs)) = lanes else { continue };
            let applied = seat.inlet.apply(ours, own_regions);
            let heard = seat.outlet.hear(theirs, (*id, rank), told);
            if applied == Ok(true) {
                has_applied = true;
                bell.ring_if_asleep();
            }
            if applied.is_err() || heard.is_err() {
                self.lose(rank, LossCause::Misbehaved, events);
            }
        }
        has_applied
    }

    /// Creates, sends and receives queues for granted rights, and reports which regions can be
    /// posted to again.
    pub(super) fn meet_rights(
        &mut self,
        (residence, ring_bytes): (&Residence, usize),
        told: &mut ListResults<'_>,
    ) -> Outlook {
        let Self { id, membership, seats, own, .. } = self;
        let mut outlook = Outlook::default();
        for (rank, seat) in (0..).map(Rank).zip(seats) {
            let ViewSeat { way: Some(bell), peer: Some(peer), inlet, outlet, .. } = seat else {
                continue;
            };
            let Some(lane) = membership.lane(rank, *own) else { continue };
            if outlet.wants_queue(lane) {
                match QueueWriter::new(residence, ring_bytes) {
                    Ok(queue) => outlet.take_queue(queue),
                    Err(error) => {
                        // The next check retries. Until then, posts find no room.
                        tracing::warn!(view = %id, %rank, %error, "no queue for writes");
                        outlook.is_awaiting = true;
                    }
                }
            }
            if let Some(queue) = outlet.unsent_queue() {
                match queue.send_to(residence, peer, *id) {
                    Ok(true) => bell.ring_for_news(),
                    Ok(false) => outlook.is_awaiting = true,
                    Err(error) => {
                        tracing::debug!(view = %id, %rank, %error, "cannot send a queue");
                        outlook.is_awaiting = true;
                    }
                }
            }
            outlet.restore(lane, (*id, rank), told);
            if inlet.awaits_queue() {
                match peer.take_queue(*id).and_then(QueueReader::new) {
                    Some(queue) => inlet.take_queue(queue),
                    None => outlook.is_awaiting = true,
                }
            }
            outlook.has_queues |= inlet.has_queue() || outlet.has_queue();
        }
        outlook
    }

    /// Returns whether a peer has a right but its queue has not arrived, so that messages must be
    /// received.
    pub(super) fn awaits_queues(&self) -> bool {
        self.seats.iter().any(|seat| seat.way.is_some() && seat.inlet.awaits_queue())
    }

    /// Ends all traffic between the local regions and those of a member.
    pub(super) fn end_regions(&mut self, peer: Rank) {
        let Self { membership, seats, own, .. } = self;
        let (Some(lane), Some(seat)) = (membership.lane(*own, peer), seats.get_mut(peer.index()))
        else {
            return;
        };
        seat.inlet.end(lane);
        seat.outlet.end();
    }
}

/// Returns whether a list is for a region, and not for a row.
#[inline]
pub(super) fn is_to_region(writes: &[Write]) -> bool {
    writes.first().is_some_and(|write| write.target.region != Region::ROW)
}
