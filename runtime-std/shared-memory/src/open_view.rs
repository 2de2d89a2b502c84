//! An open view, and what the fabric knows about each of its members.

use std::collections::VecDeque;
use std::sync::Arc;

use tramontane_core::fabric::{Channel, ErrorKind, Event, LossCause, Token};
use tramontane_core::ids::{NodeId, Rank, ViewId};

use super::exchange::Exchange;
use super::futex::Bell;
use super::mappings::ViewMappings;
use super::met::MetProcess;
use super::own_region::Range;
use super::peer::Peer;
use super::region_inlet::Inlet;
use super::region_outlet::Outlet;
use super::residence::Residence;

/// One member of one view.
#[derive(Debug, Default)]
pub(super) struct ViewSeat {
    /// The member's bell, as long as the member may be posted to: its row has arrived, and it is
    /// neither cut off nor lost.
    pub(super) way: Option<Bell>,
    /// The process that fills this seat in the view. A later process of the same node does not
    /// receive the seat.
    pub(super) peer: Option<Arc<Peer>>,
    /// The connection over which that process was met, until the member's row arrives.
    met: Option<MetProcess>,
    /// The member's access to the local regions.
    pub(super) inlet: Inlet,
    /// The posts to the member's regions.
    pub(super) outlet: Outlet,
    has_row: bool,
    /// Whether the local row has been sent to the member.
    is_told: bool,
    is_cut: bool,
    loss: Option<LossCause>,
}

impl ViewSeat {
    /// Assigns the seat to a process, unless it is taken.
    fn bind(&mut self, peer: &Arc<Peer>) {
        if self.peer.is_none() {
            self.is_cut |= peer.is_cut();
            self.peer = Some(Arc::clone(peer));
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_cut || self.loss.is_some()
    }

    /// Returns whether and how the member's process has ended, as far as this process can see.
    fn process_loss(&self) -> Option<LossCause> {
        self.peer.as_ref().map_or_else(
            || self.met.as_ref().filter(|met| met.has_ended()).map(|_| LossCause::Exited),
            |peer| peer.loss(),
        )
    }

    /// Permits posts to the member if its row has arrived.
    fn admit(&mut self) {
        if let Some(peer) = self.peer.as_ref().filter(|_| !self.is_gone() && self.has_row) {
            self.way = peer.bell().cloned();
            self.outlet.show(peer.regions());
        }
    }
}

/// An open view of this process.
#[derive(Debug)]
pub(super) struct OpenView {
    pub(super) id: ViewId,
    pub(super) membership: Arc<ViewMappings>,
    pub(super) row_bytes: usize,
    pub(super) own: Rank,
    /// Indexed by rank; the entry of the local rank stays empty.
    pub(super) seats: Vec<ViewSeat>,
    /// The view's blocks, if its rows have block queues.
    pub(super) exchange: Option<Exchange>,
}

impl OpenView {
    /// Creates a view whose peers have not been found yet. Takes the connections to those that were
    /// met.
    pub(super) fn new(
        id: ViewId,
        membership: Arc<ViewMappings>,
        met: &mut Vec<MetProcess>,
    ) -> Self {
        let (own, row_bytes) = (membership.own(), membership.row_bytes());
        let mut seat = |node: &NodeId| {
            let at = met.iter().position(|met| met.node == *node);
            ViewSeat { met: at.map(|at| met.swap_remove(at)), ..ViewSeat::default() }
        };
        let seats = membership.ids().iter().map(&mut seat).collect();
        let exchange = Exchange::new(id, &membership);
        Self { id, membership, row_bytes, own, seats, exchange }
    }

    /// Returns the bell of a member that may be posted to.
    #[inline]
    pub(super) fn target(&self, to: Rank) -> Result<&Bell, ErrorKind> {
        match self.seats.get(to.index()) {
            Some(ViewSeat { way: Some(bell), .. }) => Ok(bell),
            seat => Err(self.refusal(to, seat)),
        }
    }

    /// Returns whether a member's row has arrived, and the local row has been sent to the member.
    /// A member that stops polling earlier, because it needs nothing more itself, would leave a
    /// peer whose queue of descriptors was full without the local row.
    pub(super) fn is_ready(&self, peer: Rank) -> bool {
        self.target(peer).is_ok() && self.seats.get(peer.index()).is_some_and(|seat| seat.is_told)
    }

    #[cold]
    fn refusal(&self, to: Rank, seat: Option<&ViewSeat>) -> ErrorKind {
        match seat {
            None => ErrorKind::OutOfRange,
            Some(_) if to == self.own => ErrorKind::OutOfRange,
            Some(seat) if seat.is_gone() => ErrorKind::PeerLost,
            Some(_) => ErrorKind::QueueFull,
        }
    }

    /// Returns the node at a rank.
    pub(super) fn node_at(&self, rank: Rank) -> Option<NodeId> {
        self.membership.node_at(rank)
    }

    /// Returns whether a row is missing that may still arrive: the local row at a member, or a
    /// member's row here.
    pub(super) fn is_awaiting(&self) -> bool {
        let is_awaited = |(rank, seat): (Rank, &ViewSeat)| {
            rank != self.own && !seat.is_gone() && !(seat.has_row && seat.is_told)
        };
        (0..).map(Rank).zip(&self.seats).any(is_awaited)
    }

    /// Ends all traffic between this process and a node.
    pub(super) fn cut(&mut self, node: NodeId) {
        for rank in (0..self.seats.len()).map(rank_at) {
            if rank == self.own || self.node_at(rank) != Some(node) {
                continue;
            }
            let seat = &mut self.seats[rank.index()];
            (seat.is_cut, seat.way) = (true, None);
            if let Some(peer) = &seat.peer {
                peer.cut();
            }
            if let Some(exchange) = &mut self.exchange {
                exchange.give_up(&self.membership, rank);
            }
            self.end_regions(rank);
        }
    }

    /// Searches for the processes of peers, and sends them the local row. Returns true if a row is
    /// missing here, or is being allocated anew.
    pub(super) fn send_rows(&mut self, residence: &Residence) -> bool {
        let Self { id, membership, seats, own, .. } = self;
        let mut is_missing = false;
        for (rank, seat) in (0..).map(Rank).zip(seats) {
            if rank == *own || seat.is_gone() {
                continue;
            }
            // A send that fails now, perhaps because too many files are open, is retried at the
            // next check.
            if !seat.is_told
                && let Err(error) = send_row(membership, residence, rank, seat)
            {
                tracing::debug!(view = %id, %rank, %error, "cannot send a row to a peer");
            }
            is_missing |= !seat.has_row || membership.is_given_up(rank);
        }
        is_missing
    }

    /// Maps rows that have arrived. Adds the peers that are now ready to `events`, and rings them,
    /// because they may be waiting for the local row.
    pub(super) fn put_rows(&mut self, events: &mut VecDeque<Event>) {
        let Self { id, membership, seats, own, .. } = self;
        for (rank, seat) in (0..).map(Rank).zip(seats) {
            let is_settled = seat.has_row && !membership.is_given_up(rank);
            if rank == *own || seat.is_gone() || is_settled {
                continue;
            }
            // A dead process's row is not accepted, so its owner must be alive at that moment.
            let Some(peer) = seat.peer.clone().filter(|peer| peer.loss().is_none()) else {
                continue;
            };
            match membership.put_row(rank, &peer) {
                Ok(true) => peer.bell().into_iter().for_each(Bell::ring_for_news),
                Ok(false) => continue,
                Err(error) => {
                    tracing::debug!(view = %id, %rank, %error, "cannot map a peer's row");
                    continue;
                }
            }
            (seat.has_row, seat.met) = (true, None);
            if seat.way.is_none() {
                seat.admit();
                events.push_back(Event::Ready { view: *id, peer: rank });
            }
        }
    }

    /// Checks which peers' processes have ended, and adds each of them to `events` once. Returns
    /// true if there is news.
    pub(super) fn check(&mut self, events: &mut VecDeque<Event>) -> bool {
        let mut is_news = false;
        for index in 0..self.seats.len() {
            let (rank, seat) = (rank_at(index), &self.seats[index]);
            if seat.loss.is_none()
                && let Some(cause) = seat.process_loss()
            {
                self.lose(rank, cause, events);
                is_news = true;
            }
        }
        is_news
    }

    /// Marks a member as lost, and adds the loss to `events`.
    #[cold]
    pub(super) fn lose(&mut self, rank: Rank, cause: LossCause, events: &mut VecDeque<Event>) {
        let seat = &mut self.seats[rank.index()];
        (seat.loss, seat.way) = (Some(cause), None);
        events.push_back(Event::PeerLost { view: self.id, peer: rank, cause });
        if let Some(exchange) = &mut self.exchange {
            exchange.give_up(&self.membership, rank);
        }
        self.end_regions(rank);
    }

    /// Reads the peers' messages about blocks, and copies one piece. Adds peers that turn out to be
    /// lost to `events`.
    pub(super) fn carry_blocks(&mut self, events: &mut VecDeque<Event>) {
        if self.exchange.is_none() {
            return;
        }
        for index in 0..self.seats.len() {
            let Self { membership, seats, exchange: Some(exchange), .. } = self else { return };
            let ViewSeat { way: Some(bell), peer: Some(peer), .. } = &seats[index] else {
                continue;
            };
            let rank = rank_at(index);
            match exchange.look(membership, rank, peer) {
                Ok(true) => bell.ring_if_asleep(),
                Ok(false) => {}
                Err(cause) => {
                    // The peer may have been refused a block, and must learn of that.
                    bell.ring_if_asleep();
                    self.lose(rank, cause, events);
                }
            }
        }
        let done =
            self.exchange.as_mut().and_then(|exchange| exchange.copy_piece(&self.membership));
        if let Some(bell) = done.and_then(|rank| self.seats.get(rank.index())?.way.as_ref()) {
            bell.ring_if_asleep();
        }
    }

    /// Offers a block to a peer, and rings the peer if it is asleep.
    pub(super) fn send_block(
        &mut self,
        (to, channel): (Rank, Channel),
        from: Range,
        immediate: u32,
        token: Token,
    ) -> Result<(), ErrorKind> {
        let Self { membership, seats, exchange, .. } = self;
        let exchange = exchange.as_mut().ok_or(ErrorKind::OutOfRange)?;
        let seat = seats.get(to.index()).ok_or(ErrorKind::OutOfRange)?;
        let (Some(bell), Some(peer)) = (&seat.way, &seat.peer) else {
            return Err(ErrorKind::PeerLost);
        };
        exchange.send(membership, (to, channel, peer), from, immediate, token)?;
        bell.ring_if_asleep();
        Ok(())
    }

    /// Ends the view. Its memory may then change, or be unmapped.
    pub(super) fn end(mut self) {
        if let Some(exchange) = &mut self.exchange {
            exchange.end(&self.membership);
        }
        (0..self.seats.len()).for_each(|index| self.end_regions(rank_at(index)));
        self.membership.give_up();
    }

    /// Rings the sleeping peers among those that may be posted to.
    pub(super) fn ring_sleepers(&self) {
        self.seats.iter().filter_map(|seat| seat.way.as_ref()).for_each(Bell::ring_if_asleep);
    }
}

/// Returns the rank of a seat. There are no more seats than ranks.
pub(super) fn rank_at(index: usize) -> Rank {
    Rank(u16::try_from(index).unwrap_or(u16::MAX))
}

/// Searches for a member's process, and sends it the local row.
fn send_row(
    membership: &ViewMappings,
    residence: &Residence,
    rank: Rank,
    seat: &mut ViewSeat,
) -> rustix::io::Result<()> {
    if seat.peer.is_none()
        && let Some(node) = membership.node_at(rank)
        && let Some(peer) = residence.find(node)?
        // Otherwise, this may be a later process of that node.
        && seat.process_loss().is_none()
    {
        seat.bind(&peer);
    }
    if let Some(peer) = seat.peer.as_ref().filter(|_| !seat.is_cut) {
        seat.is_told = residence.send_regions(peer)? && membership.send_row(peer)?;
    }
    Ok(())
}
