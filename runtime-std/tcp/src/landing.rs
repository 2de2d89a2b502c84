//! The views that a peer and this member have open, and the destination of the peer's writes in
//! each view.
//!
//! The two ends' memory for a view matches if the layouts match. The list of a next view may change
//! before it is decided, and either end may already have switched to a different list. Until both
//! have done so, they are not ready for each other.
//!
//! Many views begin and end at the same time, in any order. An end that ends a view announces that,
//! and the other end answers. Until the answer arrives, frames in flight for that view are dropped.
//!
//! # Invariants
//! - A write is stored only in memory with the layout under which its sender posted it (VIE-11).
//! - No post is lost silently, because neither end reopens a view that was used between the two and
//!   has not ended at both. No correct member does that, because a member that posts in a view has
//!   installed it. A member that does it loses the connection.
//! - The state of a view is forgotten when both ends have ended the view and know that.

use tramontane_core::ids::{Rank, ViewId};

use super::memory::Rows;
use super::stream_end::StreamEnd;

/// The maximum number of views that a peer may have open while this member has not opened them yet,
/// or has already ended them.
const AHEAD_MAX: usize = 512;

/// The connection's end if one end opens a view anew after the view was used.
const ANEW: StreamEnd = StreamEnd::Malformed("a view reopened after use");

/// The connection's end if its peer writes out of range.
const OUTSIDE: StreamEnd = StreamEnd::Malformed("a write outside its row");

/// The connection's end if its peer answers without a question.
const NOT_ENDED: StreamEnd = StreamEnd::Malformed("an answer about a view that has not ended here");

/// The peer's announcement of its memory for a view.
#[derive(Clone, Copy, Debug)]
struct Theirs {
    row_bytes: u64,
    digest: u64,
    /// Whether the peer has ended the view.
    is_over: bool,
}

/// One view that includes the peer, as far as it is open.
#[derive(Debug)]
struct Landing {
    view: ViewId,
    /// The local memory, and the peer's rank.
    own: Option<(Rows, Rank)>,
    theirs: Option<Theirs>,
    /// Whether either end has posted something to the other in this view.
    is_used: bool,
    /// The number of times that this end has ended the view without having received an answer from
    /// the peer.
    unanswered: u32,
}

impl Landing {
    /// Returns whether both ends have opened the view in memory with the same layout.
    fn is_ready(&self) -> bool {
        let (Some((rows, _)), Some(theirs)) = (&self.own, &self.theirs) else { return false };
        rows.digest() == theirs.digest
    }

    /// Returns the peer's rank if the peer is ready. Its row must be as long as the local copy.
    fn met(&self) -> Result<Option<Rank>, StreamEnd> {
        let (Some((rows, rank)), Some(theirs)) = (&self.own, &self.theirs) else { return Ok(None) };
        if rows.digest() != theirs.digest {
            return Ok(None);
        }
        let is_as_long = u64::try_from(rows.row_bytes(*rank)) == Ok(theirs.row_bytes);
        if is_as_long {
            Ok(Some(*rank))
        } else {
            Err(StreamEnd::Malformed("a row of the wrong length"))
        }
    }

    /// Returns whether the peer may have the view open.
    fn is_theirs(&self) -> bool {
        self.theirs.is_some_and(|theirs| !theirs.is_over)
    }

    /// Returns whether nothing more can arrive for the view.
    fn is_past(&self) -> bool {
        self.own.is_none() && self.unanswered == 0 && !self.is_theirs()
    }
}

/// The views of one connection.
#[derive(Debug, Default)]
pub(super) struct Landings {
    landings: Vec<Landing>,
}

impl Landings {
    fn of(&mut self, view: ViewId) -> Option<&mut Landing> {
        self.landings.iter_mut().find(|landing| landing.view == view)
    }

    /// Returns whether both ends have opened the view.
    pub(super) fn is_ready(&self, view: ViewId) -> bool {
        self.landings.iter().any(|landing| landing.view == view && landing.is_ready())
    }

    /// Returns whether the peer has ended a view that is open here, so that posts to it would be
    /// dropped.
    pub(super) fn is_over_there(&self, view: ViewId) -> bool {
        let mut all = self.landings.iter();
        let theirs = all.find(|landing| landing.view == view).and_then(|landing| landing.theirs);
        theirs.is_some_and(|theirs| theirs.is_over)
    }

    /// Returns the peer's rank in a view that both ends have open.
    pub(super) fn rank_in(&self, view: ViewId) -> Option<Rank> {
        let landing = self.landings.iter().find(|landing| landing.view == view)?;
        landing.own.as_ref().filter(|_| landing.is_ready()).map(|(_, rank)| *rank)
    }

    /// Notes that something is being posted to the peer in a view.
    pub(super) fn note_post(&mut self, view: ViewId) {
        if let Some(landing) = self.of(view) {
            landing.is_used = true;
        }
    }

    /// Opens a view at this end. Returns true if the peer is already ready in it.
    pub(super) fn open(
        &mut self,
        view: ViewId,
        rows: &Rows,
        peer: Rank,
    ) -> Result<bool, StreamEnd> {
        let own = Some((rows.clone(), peer));
        match self.of(view) {
            Some(Landing { is_used: true, .. }) => Err(ANEW),
            Some(landing) => {
                landing.own = own;
                Ok(landing.met()?.is_some())
            }
            None => {
                let (theirs, is_used, unanswered) = (None, false, 0);
                self.landings.push(Landing { view, own, theirs, is_used, unanswered });
                Ok(false)
            }
        }
    }

    /// Ends a view at this end. Nothing more of it is stored. Returns true if the peer must be
    /// informed. The peer's announcement about the view is kept, because the view may be reopened.
    pub(super) fn retire(&mut self, view: ViewId) -> bool {
        let Some(landing) = self.of(view).filter(|landing| landing.own.is_some()) else {
            return false;
        };
        landing.own = None;
        landing.unanswered += 1;
        true
    }

    /// Notes that the peer has opened a view. Returns the peer's rank if it is now ready.
    pub(super) fn take_open(
        &mut self,
        view: ViewId,
        row_bytes: u64,
        digest: u64,
    ) -> Result<Option<Rank>, StreamEnd> {
        let theirs = Some(Theirs { row_bytes, digest, is_over: false });
        let ahead = self.landings.iter().filter(|landing| landing.own.is_none()).count();
        let Some(landing) = self.of(view) else {
            if ahead >= AHEAD_MAX {
                return Err(StreamEnd::Malformed("too many views ahead"));
            }
            let (own, is_used, unanswered) = (None, false, 0);
            self.landings.push(Landing { view, own, theirs, is_used, unanswered });
            return Ok(None);
        };
        if landing.is_used {
            return Err(ANEW);
        }
        let was_ready = landing.is_ready();
        landing.theirs = theirs;
        Ok(landing.met()?.filter(|_| !was_ready))
    }

    /// Notes that the peer has ended a view.
    pub(super) fn take_close(&mut self, view: ViewId) -> Result<(), StreamEnd> {
        let landing = self.of(view).ok_or(NOT_ENDED)?;
        let theirs = landing.theirs.as_mut().filter(|theirs| !theirs.is_over).ok_or(NOT_ENDED)?;
        theirs.is_over = true;
        self.forget_past(view);
        Ok(())
    }

    /// Notes that the peer knows that a view has ended here.
    pub(super) fn take_closed(&mut self, view: ViewId) -> Result<(), StreamEnd> {
        let landing = self.of(view).filter(|landing| landing.unanswered > 0).ok_or(NOT_ENDED)?;
        landing.unanswered -= 1;
        self.forget_past(view);
        Ok(())
    }

    fn forget_past(&mut self, view: ViewId) {
        self.landings.retain(|landing| landing.view != view || !landing.is_past());
    }

    /// Returns the destination of a peer's write to the copy of its own row or, if it passes on
    /// messages, of the row of `owner`. Returns `None` if the view has ended here, or its list has
    /// been given up.
    pub(super) fn target(
        &mut self,
        (view, owner): (ViewId, Option<Rank>),
        offset: usize,
        length: usize,
    ) -> Result<Option<(Rows, Rank)>, StreamEnd> {
        let Some((rows, rank)) = self.memory(view)? else { return Ok(None) };
        let owner = owner.unwrap_or(*rank);
        let is_allowed = rows.may_write(*rank, owner, offset, length);
        if is_allowed { Ok(Some((rows.clone(), owner))) } else { Err(OUTSIDE) }
    }

    /// Returns whether a peer's frame other than a write to its row is accepted. It is refused if
    /// its view has ended here.
    pub(super) fn takes(&mut self, view: ViewId) -> Result<bool, StreamEnd> {
        self.memory(view).map(|memory| memory.is_some())
    }

    /// Returns the local memory of a view in which the peer sends something.
    fn memory(&mut self, view: ViewId) -> Result<Option<&(Rows, Rank)>, StreamEnd> {
        let landing = self.of(view).filter(|landing| landing.is_theirs());
        match landing {
            Some(landing) if landing.is_ready() => {
                landing.is_used = true;
                Ok(landing.own.as_ref())
            }
            // The view was open here, and the peer does not yet know that it has ended or been
            // reopened.
            Some(landing) if landing.unanswered > 0 => {
                landing.is_used = true;
                Ok(None)
            }
            _ => Err(StreamEnd::Malformed("a write in a view that is not open")),
        }
    }
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::rows_of;

    const VIEW: ViewId = ViewId(5);
    const NEXT: ViewId = ViewId(6);
    const LAYOUT: u64 = 1;
    const OTHER: u64 = 2;

    fn rows(digest: u64) -> Rows {
        rows_of(digest, &[64, 64])
    }

    fn opened(views: &mut Landings, view: ViewId, digest: u64) -> bool {
        views.open(view, &rows(digest), Rank(1)).expect("it opens")
    }

    fn lands(views: &mut Landings, view: ViewId) -> bool {
        views.target((view, None), 0, 8).expect("a member's write").is_some()
    }

    #[test]
    fn view_is_ready_only_if_layouts_match() {
        let mut views = Landings::default();
        assert!(!opened(&mut views, VIEW, LAYOUT));
        assert!(matches!(views.take_open(VIEW, 64, OTHER), Ok(None)));
        assert!(!views.is_ready(VIEW) && views.target((VIEW, None), 0, 8).is_err());
        let mut views = Landings::default();
        assert!(matches!(views.take_open(VIEW, 64, OTHER), Ok(None)));
        assert!(!opened(&mut views, VIEW, LAYOUT));
        assert!(matches!(views.take_open(VIEW, 64, LAYOUT), Ok(Some(Rank(1)))), "it opened anew");
        assert!(matches!(views.take_open(VIEW, 64, LAYOUT), Ok(None)), "told already");
        assert!(views.is_ready(VIEW) && lands(&mut views, VIEW));
        assert!(matches!(views.take_open(NEXT, 1, LAYOUT), Ok(None)));
        let short = views.open(NEXT, &rows(LAYOUT), Rank(1));
        assert!(
            matches!(short, Err(StreamEnd::Malformed("a row of the wrong length"))),
            "{short:?}"
        );
    }

    #[test]
    fn peers_opened_view_is_remembered_across_local_reopen() {
        let mut views = Landings::default();
        opened(&mut views, VIEW, LAYOUT);
        assert!(matches!(views.take_open(VIEW, 64, OTHER), Ok(None)));
        views.retire(VIEW);
        assert!(opened(&mut views, VIEW, OTHER), "the peer was faster");
        views.retire(VIEW);
        assert!(!opened(&mut views, VIEW, LAYOUT));
    }

    #[test]
    fn used_view_cannot_be_reopened() {
        let used_by: [fn(&mut Landings); 2] =
            [|views| views.note_post(VIEW), |views| assert!(lands(views, VIEW))];
        for use_it in used_by {
            let ready = || {
                let mut views = Landings::default();
                opened(&mut views, VIEW, LAYOUT);
                assert!(views.take_open(VIEW, 64, LAYOUT).is_ok_and(|rank| rank.is_some()));
                use_it(&mut views);
                views
            };
            assert!(ready().take_open(VIEW, 64, OTHER).is_err());
            let mut views = ready();
            views.retire(VIEW);
            assert!(views.open(VIEW, &rows(OTHER), Rank(1)).is_err());
        }
        // Data that arrived while this end did not have that list is lost, and the loss is
        // reported.
        let mut views = Landings::default();
        opened(&mut views, VIEW, LAYOUT);
        assert!(views.take_open(VIEW, 64, LAYOUT).is_ok_and(|rank| rank.is_some()));
        views.retire(VIEW);
        assert!(!lands(&mut views, VIEW));
        assert!(views.open(VIEW, &rows(LAYOUT), Rank(1)).is_err());
    }

    #[test]
    fn ended_or_future_view_accepts_no_writes() {
        let mut views = Landings::default();
        opened(&mut views, NEXT, LAYOUT);
        assert!(views.take_open(NEXT, 64, LAYOUT).is_ok_and(|rank| rank.is_some()));
        assert!(matches!(views.take_open(VIEW, 64, LAYOUT), Ok(None)));
        assert!(views.target((VIEW, None), 0, 8).is_err(), "nobody told the peer that it may");
        assert!(opened(&mut views, VIEW, LAYOUT), "in any order");
        assert!(views.retire(NEXT) && !views.retire(NEXT));
        assert!(!lands(&mut views, NEXT), "the peer is behind");
        assert!(lands(&mut views, VIEW));
        assert!(views.target((ViewId(4), None), 0, 8).is_err(), "it was never open here");
        assert!(views.take_closed(NEXT).is_ok() && views.take_closed(NEXT).is_err());
        assert!(views.target((NEXT, None), 0, 8).is_err(), "the peer knows that it ended");
        assert!(views.take_close(NEXT).is_ok() && views.take_close(NEXT).is_err());
        assert_eq!(views.landings.len(), 1, "what both know to have ended is forgotten");
        let mut fresh = Landings::default();
        opened(&mut fresh, VIEW, LAYOUT);
        assert!(fresh.target((VIEW, None), 0, 8).is_err(), "a peer that opened nothing");
        for view in (100..).map(ViewId).take(AHEAD_MAX) {
            assert!(matches!(fresh.take_open(view, 64, LAYOUT), Ok(None)));
        }
        assert!(fresh.take_open(NEXT, 64, LAYOUT).is_err(), "too many ahead");
        assert!(fresh.take_close(ViewId(100)).is_ok());
        assert!(fresh.take_open(NEXT, 64, LAYOUT).is_ok(), "one of them has ended");
    }

    #[test]
    fn closed_view_is_over_until_peer_reopens() {
        let mut views = Landings::default();
        opened(&mut views, VIEW, LAYOUT);
        assert!(views.take_close(VIEW).is_err(), "it did not open it");
        assert!(views.take_open(VIEW, 64, LAYOUT).is_ok_and(|rank| rank.is_some()));
        assert!(!views.is_over_there(VIEW));
        assert!(views.take_close(VIEW).is_ok() && views.is_over_there(VIEW));
        assert!(views.target((VIEW, None), 0, 8).is_err(), "it said that it writes nothing more");
        assert!(matches!(views.take_open(VIEW, 64, OTHER), Ok(None)));
        assert!(!views.is_over_there(VIEW) && !views.is_ready(VIEW));
        assert!(views.take_close(VIEW).is_ok() && views.retire(VIEW));
        assert_eq!(views.landings.len(), 1, "the peer may not know that it ended here");
        assert!(views.take_closed(VIEW).is_ok() && views.landings.is_empty());
    }
}
