//! Losses that a fabric reports for one view while another view is stepped. Two views are open
//! during a change, and a node ignores events of any view other than its own.

use tramontane_core::fabric::{Event, LossCause};
use tramontane_core::ids::{Rank, ViewId};

/// Losses that have not yet been reported to their view.
#[derive(Debug, Default)]
pub(crate) struct LostPeers(Vec<(ViewId, Rank, LossCause)>);

impl LostPeers {
    /// Keeps a loss in a view after the current one, because the current node ignores it.
    #[inline]
    pub(crate) fn keep(&mut self, present: ViewId, event: &Event) {
        if let Event::PeerLost { view, peer, cause } = *event
            && view > present
        {
            self.note(view, peer, cause);
        }
    }

    fn note(&mut self, view: ViewId, peer: Rank, cause: LossCause) {
        // The first cause is the most likely one.
        if !self.0.iter().any(|(of, rank, _)| (*of, *rank) == (view, peer)) {
            self.0.push((view, peer, cause));
        }
    }

    /// Returns the losses to report to a view, and forgets those of this view and earlier ones.
    pub(crate) fn take(&mut self, view: ViewId) -> Vec<(Rank, LossCause)> {
        let taken = self.0.iter().filter(|(of, ..)| *of == view);
        let taken = taken.map(|(_, peer, cause)| (*peer, *cause)).collect();
        self.0.retain(|(of, ..)| *of > view);
        taken
    }

    /// Forgets the losses in an abandoned view, because another view may get the same id.
    pub(crate) fn forget(&mut self, view: ViewId) {
        self.0.retain(|(of, ..)| *of != view);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(view: u64, peer: u16, cause: LossCause) -> Event {
        Event::PeerLost { view: ViewId(view), peer: Rank(peer), cause }
    }

    /// A fabric reports a loss once per open view, at the next poll.
    #[test]
    fn peer_loss_is_reported_to_its_own_view() {
        let events = [
            lost(4, 2, LossCause::Exited),
            lost(5, 1, LossCause::Exited),
            Event::Woken,
            lost(5, 3, LossCause::Denied),
            lost(5, 1, LossCause::Unreachable),
            lost(3, 2, LossCause::Exited),
        ];
        let mut lost_peers = LostPeers::default();
        events.iter().for_each(|event| lost_peers.keep(ViewId(4), event));
        assert_eq!(
            lost_peers.take(ViewId(5)),
            [(Rank(1), LossCause::Exited), (Rank(3), LossCause::Denied)]
        );
        assert_eq!(lost_peers.take(ViewId(5)), [], "once");
    }

    #[test]
    fn losses_of_abandoned_view_are_forgotten() {
        let mut lost_peers = LostPeers::default();
        lost_peers.note(ViewId(5), Rank(1), LossCause::Exited);
        lost_peers.forget(ViewId(5));
        assert_eq!(lost_peers.take(ViewId(5)), []);
    }
}
