//! Losses that a fabric reports for one view while another is stepped: two are open during a
//! change, and a node passes over events of a view that is not its own.

use tramontane_core::fabric::{Capabilities, Event, Fabric, LossCause, Token, ViewMemory, Write};
use tramontane_core::ids::{Rank, ViewId};

/// Losses that no view was told of yet.
#[derive(Debug, Default)]
pub(super) struct LostPeers(Vec<(ViewId, Rank, LossCause)>);

impl LostPeers {
    fn note(&mut self, view: ViewId, peer: Rank, cause: LossCause) {
        // The first cause is the likeliest.
        if !self.0.iter().any(|(of, rank, _)| (*of, *rank) == (view, peer)) {
            self.0.push((view, peer, cause));
        }
    }

    /// What a view is to be told. Nothing is kept of it and of views before it.
    pub(super) fn take(&mut self, view: ViewId) -> Vec<(Rank, LossCause)> {
        let taken = self.0.iter().filter(|(of, ..)| *of == view);
        let taken = taken.map(|(_, peer, cause)| (*peer, *cause)).collect();
        self.0.retain(|(of, ..)| *of > view);
        taken
    }

    /// A view does not come: another one of its id may.
    pub(super) fn forget(&mut self, view: ViewId) {
        self.0.retain(|(of, ..)| *of != view);
    }
}

/// A fabric as the node of one view polls it: losses in later views are kept for those.
#[derive(Debug)]
pub(super) struct Routed<'f, F> {
    pub(super) fabric: &'f mut F,
    pub(super) view: ViewId,
    pub(super) lost_peers: &'f mut LostPeers,
}

impl<F: Fabric> Fabric for Routed<'_, F> {
    type Error = F::Error;

    fn capabilities(&self) -> Capabilities {
        self.fabric.capabilities()
    }

    fn open(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Result<(), F::Error> {
        self.fabric.open(view, memory)
    }

    #[inline]
    fn ready(&self, view: ViewId, peer: Rank) -> bool {
        self.fabric.ready(view, peer)
    }

    fn cut(&mut self, view: ViewId, peer: Rank) {
        self.fabric.cut(view, peer);
    }

    fn retire(&mut self, view: ViewId) -> bool {
        self.fabric.retire(view)
    }

    #[inline]
    fn post(
        &mut self,
        view: ViewId,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), F::Error> {
        self.fabric.post(view, to, writes, token)
    }

    #[inline]
    fn poll(&mut self) -> Option<Event> {
        let event = self.fabric.poll()?;
        if let Event::PeerLost { view, peer, cause } = event
            && view > self.view
        {
            self.lost_peers.note(view, peer, cause);
        }
        Some(event)
    }

    fn wake(&mut self, view: ViewId, to: Rank) {
        self.fabric.wake(view, to);
    }

    fn arm(&mut self) -> bool {
        self.fabric.arm()
    }

    fn disarm(&mut self) {
        self.fabric.disarm();
    }

    #[inline]
    fn observe_barrier(&self) {
        self.fabric.observe_barrier();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tramontane_core::fabric::ErrorKind;

    use super::*;

    /// A fabric that reports a given list of events.
    struct Scripted(VecDeque<Event>);

    impl Fabric for Scripted {
        type Error = ErrorKind;

        fn capabilities(&self) -> Capabilities {
            unreachable!("nobody posts")
        }

        fn open(&mut self, _: ViewId, _: &ViewMemory<'_>) -> Result<(), ErrorKind> {
            Ok(())
        }

        fn ready(&self, _: ViewId, _: Rank) -> bool {
            true
        }

        fn cut(&mut self, _: ViewId, _: Rank) {}

        fn retire(&mut self, _: ViewId) -> bool {
            true
        }

        fn post(
            &mut self,
            _: ViewId,
            _: Rank,
            _: &[Write],
            _: Option<Token>,
        ) -> Result<(), ErrorKind> {
            Ok(())
        }

        fn poll(&mut self) -> Option<Event> {
            self.0.pop_front()
        }

        fn wake(&mut self, _: ViewId, _: Rank) {}

        fn arm(&mut self) -> bool {
            true
        }

        fn disarm(&mut self) {}

        fn observe_barrier(&self) {}
    }

    fn lost(view: u64, peer: u16, cause: LossCause) -> Event {
        Event::PeerLost { view: ViewId(view), peer: Rank(peer), cause }
    }

    /// As a fabric reports it: once, in each view that is open, to the next poll.
    #[test]
    fn what_is_polled_in_one_view_is_told_to_the_view_that_it_is_about() {
        let events = [
            lost(4, 2, LossCause::Exited),
            lost(5, 1, LossCause::Exited),
            Event::Woken,
            lost(5, 3, LossCause::Denied),
            lost(5, 1, LossCause::Unreachable),
            lost(3, 2, LossCause::Exited),
        ];
        let mut lost_peers = LostPeers::default();
        let mut fabric = Scripted(events.into());
        let mut routed =
            Routed { fabric: &mut fabric, view: ViewId(4), lost_peers: &mut lost_peers };
        let polled: Vec<Event> = std::iter::from_fn(|| routed.poll()).collect();
        assert_eq!(polled, events, "a node passes over what is not of its view");
        assert_eq!(
            lost_peers.take(ViewId(5)),
            [(Rank(1), LossCause::Exited), (Rank(3), LossCause::Denied)]
        );
        assert_eq!(lost_peers.take(ViewId(5)), [], "once");
    }

    #[test]
    fn a_view_that_did_not_come_leaves_nothing_to_another_one_of_its_id() {
        let mut lost_peers = LostPeers::default();
        lost_peers.note(ViewId(5), Rank(1), LossCause::Exited);
        lost_peers.forget(ViewId(5));
        assert_eq!(lost_peers.take(ViewId(5)), []);
    }
}
