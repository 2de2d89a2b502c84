//! The end of a change: delivery up to the trim, and the next view (VIE-8 to VIE-11).
//!
//! Requirements: DUR-12, VIE-1, VIE-10.

use super::state::{Halt, PeerState, Status, ViewStep};
use super::table::{Host, Table};
use crate::ids::SubgroupId;
use crate::layout::ViewColumn;
use crate::multicast::Misbehaved;

impl<T: Table, H: Host> ViewStep<'_, T, H> {
    /// Announces that this member is in its view, with fresh memory.
    pub(super) fn start(&mut self) {
        self.state.started = true;
        self.state.last_step = self.now;
        self.state.last_heartbeat = self.now;
        // bound: the members
        for peer in self.peers.iter_mut() {
            *peer = PeerState { seen: self.now, lost: peer.lost, ..Default::default() };
        }
        self.table.publish(ViewColumn::Heartbeat, 1);
        self.table.publish(ViewColumn::Installed, self.state.id.0.saturating_add(1));
    }

    /// Delivers up to the trims; then installs the next view, or leaves.
    pub(super) fn finish(&mut self) {
        match self.deliver_under_trims() {
            Ok(true) => {}
            Ok(false) => return,
            // The messages to be delivered here have been decided, but are no longer available.
            Err(Misbehaved(rank)) => return self.halt(Halt::ChangedBy(rank)),
        }
        let installed = self.state.id.0.saturating_add(2);
        if self.own(ViewColumn::Installed) < installed {
            self.table.publish(ViewColumn::Installed, installed);
        }
        let list = self.own_stance().accepted;
        // The local list was read when it was accepted, and no other member writes it, so it is
        // valid.
        if self.read_list(self.state.rank, list).is_err() {
            return;
        }
        let stays = self.peers.get(self.state.rank.index()).is_some_and(|own| !own.goes);
        if stays {
            self.state.status = Status::Installed;
        } else if self.others_installed(installed) {
            self.state.status = Status::Left;
        }
    }

    fn deliver_under_trims(&mut self) -> Result<bool, Misbehaved> {
        let mut done = true;
        let mut id = SubgroupId::ZERO;
        // bound: the subgroups
        while let Some(subgroup) = self.layout.subgroup(id) {
            let is_here = subgroup.has_member(self.state.rank);
            if let (true, Some(trim)) = (is_here, self.own_trim(id)) {
                // The trim was compared when it was accepted. If a row has changed since then, the
                // limit still keeps every read in range.
                let trim = trim.min(self.host.received(id));
                done &= self.host.deliver_to(id, trim)?;
            }
            id = id.next();
        }
        Ok(done)
    }

    /// Returns whether all members of the next view have installed it or are lost. Until then a
    /// leaving member is still needed: in a group of two, the other member could not continue
    /// without it (VIE-9). If all members leave, each of them is needed too, because the last one
    /// would have no majority.
    fn others_installed(&self, installed: u64) -> bool {
        self.ranks().zip(self.peers.iter()).all(|(rank, peer)| {
            !self.is_in_next(peer)
                || peer.is_lost()
                || self.suspects(rank)
                || self.guard(rank, ViewColumn::Installed) >= installed
        })
    }
}
