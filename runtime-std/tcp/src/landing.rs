//! Which views a peer and this member have open, and where the peer's writes go in each.
//!
//! Two memories of one view fit together if their layouts do: the list of a next view may change
//! before it is decided, and either end may have gone over to another list already. Until both
//! have, they are not ready for each other.
//!
//! # Invariants
//! - A write lands only in memory of the layout by which its sender posted it (VIE-11).
//! - Nothing that was posted is silently lost: a view that was used between two members is opened
//!   anew by neither. No correct member does that, since a member that posts in a view has
//!   installed it; a member that does loses the connection.

use tramontane_core::fabric::Region;
use tramontane_core::ids::{Rank, ViewId};

use super::incoming::End;
use super::memory::Rows;

/// Views that a peer may open before this member does.
const AHEAD_MAX: usize = 2;

/// The end of a connection that was used in a view which one end then opens anew.
const ANEW: End = End::Malformed("a view opened anew after it was used");

/// The end of a connection whose peer writes where it may not.
const OUTSIDE: End = End::Malformed("a write outside its row");

/// What a peer sent of its memory for a view.
#[derive(Clone, Copy, Debug)]
struct Theirs {
    row_bytes: u64,
    digest: u64,
}

/// One view in which the peer takes part, as far as it is open.
#[derive(Debug)]
struct Landing {
    view: ViewId,
    /// The own memory, and the peer's rank.
    own: Option<(Rows, Rank)>,
    theirs: Option<Theirs>,
    /// Something was posted in it, by either end to the other.
    is_used: bool,
}

impl Landing {
    /// Whether both ends have opened it, in memory of one layout.
    fn is_ready(&self) -> bool {
        let (Some((rows, _)), Some(theirs)) = (&self.own, &self.theirs) else { return false };
        rows.digest() == theirs.digest
    }

    /// The peer's rank if it is ready, with a row that is as long as here.
    fn met(&self) -> Result<Option<Rank>, End> {
        let (Some((rows, rank)), Some(theirs)) = (&self.own, &self.theirs) else { return Ok(None) };
        if rows.digest() != theirs.digest {
            return Ok(None);
        }
        let is_as_long = u64::try_from(rows.row_bytes(*rank)) == Ok(theirs.row_bytes);
        if is_as_long { Ok(Some(*rank)) } else { Err(End::Malformed("a row of another length")) }
    }
}

/// The views of one connection.
#[derive(Debug, Default)]
pub(super) struct Landings {
    landings: Vec<Landing>,
    /// The first view that was open at this end: nobody was ever told to write in an older one.
    first: Option<ViewId>,
    /// The newest view that was ever open at this end. Older ones that are not open now never come
    /// again.
    newest: Option<ViewId>,
}

impl Landings {
    fn of(&mut self, view: ViewId) -> Option<&mut Landing> {
        self.landings.iter_mut().find(|landing| landing.view == view)
    }

    /// Both ends have opened the view.
    pub(super) fn is_ready(&self, view: ViewId) -> bool {
        self.landings.iter().any(|landing| landing.view == view && landing.is_ready())
    }

    /// Something is posted to the peer in a view.
    pub(super) fn note_post(&mut self, view: ViewId) {
        if let Some(landing) = self.of(view) {
            landing.is_used = true;
        }
    }

    /// Opens a view at this end; true if the peer is ready in it already.
    pub(super) fn open(&mut self, view: ViewId, rows: &Rows, peer: Rank) -> Result<bool, End> {
        self.landings.retain(|landing| landing.view >= view || landing.own.is_some());
        self.first = self.first.or(Some(view));
        self.newest = self.newest.max(Some(view));
        let own = Some((rows.clone(), peer));
        match self.of(view) {
            Some(Landing { is_used: true, .. }) => Err(ANEW),
            Some(landing) => {
                landing.own = own;
                Ok(landing.met()?.is_some())
            }
            None => {
                self.landings.push(Landing { view, own, theirs: None, is_used: false });
                Ok(false)
            }
        }
    }

    /// Ends a view at this end: nothing of it is stored any more. What the peer sent of the newest
    /// is kept, since that may be opened anew.
    pub(super) fn retire(&mut self, view: ViewId) {
        if self.newest > Some(view) {
            self.landings.retain(|landing| landing.view != view);
        } else if let Some(landing) = self.of(view) {
            landing.own = None;
        }
    }

    /// The peer opened a view; gives its rank if it is ready now, and was not before.
    pub(super) fn take_open(
        &mut self,
        view: ViewId,
        row_bytes: u64,
        digest: u64,
    ) -> Result<Option<Rank>, End> {
        let newest = self.newest;
        let theirs = Some(Theirs { row_bytes, digest });
        let Some(landing) = self.of(view) else {
            if newest >= Some(view) {
                // The peer is behind: it opens what has ended here.
                return Ok(None);
            }
            if self.landings.iter().filter(|landing| Some(landing.view) > newest).count()
                >= AHEAD_MAX
            {
                return Err(End::Malformed("too many views ahead"));
            }
            self.landings.push(Landing { view, own: None, theirs, is_used: false });
            return Ok(None);
        };
        if landing.is_used && landing.theirs.is_some() {
            return Err(ANEW);
        }
        let was_ready = landing.is_ready();
        landing.theirs = theirs;
        Ok(landing.met()?.filter(|_| !was_ready))
    }

    /// Where a peer's write goes; nowhere if it is of a view that has ended here, or of a list that
    /// was given up.
    pub(super) fn target(
        &mut self,
        view: ViewId,
        region: Region,
        offset: usize,
        length: usize,
    ) -> Result<Option<(Rows, Rank)>, End> {
        let Some((rows, rank)) = self.memory(view)? else { return Ok(None) };
        let fits = offset.checked_add(length).is_some_and(|end| end <= rows.row_bytes(*rank));
        if region == Region::ROW && fits { Ok(Some((rows.clone(), *rank))) } else { Err(OUTSIDE) }
    }

    /// Whether a peer's blocks are taken; not if they are of a view that has ended here.
    pub(super) fn takes_blocks(&mut self, view: ViewId) -> Result<bool, End> {
        self.memory(view).map(|memory| memory.is_some())
    }

    /// The own memory of a view in which the peer sends something.
    fn memory(&mut self, view: ViewId) -> Result<Option<&(Rows, Rank)>, End> {
        let is_past = self.first.is_some_and(|first| first <= view) && self.newest >= Some(view);
        match self.of(view) {
            Some(landing) if landing.is_ready() => {
                landing.is_used = true;
                Ok(landing.own.as_ref())
            }
            Some(landing) if is_past && landing.theirs.is_some() => {
                landing.is_used = true;
                Ok(None)
            }
            None if is_past => Ok(None),
            _ => Err(End::Malformed("a write in a view that is not open")),
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
        views.target(view, Region::ROW, 0, 8).expect("a member's write").is_some()
    }

    #[test]
    fn only_one_layout_at_both_ends_is_ready() {
        let mut views = Landings::default();
        assert!(!opened(&mut views, VIEW, LAYOUT));
        assert!(matches!(views.take_open(VIEW, 64, OTHER), Ok(None)));
        assert!(!views.is_ready(VIEW) && !lands(&mut views, VIEW));
        let mut views = Landings::default();
        assert!(matches!(views.take_open(VIEW, 64, OTHER), Ok(None)));
        assert!(!opened(&mut views, VIEW, LAYOUT));
        assert!(matches!(views.take_open(VIEW, 64, LAYOUT), Ok(Some(Rank(1)))), "it opened anew");
        assert!(matches!(views.take_open(VIEW, 64, LAYOUT), Ok(None)), "told already");
        assert!(views.is_ready(VIEW) && lands(&mut views, VIEW));
        assert!(matches!(views.take_open(NEXT, 1, LAYOUT), Ok(None)));
        let short = views.open(NEXT, &rows(LAYOUT), Rank(1));
        assert!(matches!(short, Err(End::Malformed("a row of another length"))), "{short:?}");
    }

    #[test]
    fn what_a_peer_said_of_a_view_is_remembered_while_it_is_opened_anew_here() {
        let mut views = Landings::default();
        opened(&mut views, VIEW, LAYOUT);
        assert!(matches!(views.take_open(VIEW, 64, OTHER), Ok(None)));
        views.retire(VIEW);
        assert!(opened(&mut views, VIEW, OTHER), "the peer was faster");
        views.retire(VIEW);
        assert!(!opened(&mut views, VIEW, LAYOUT));
    }

    #[test]
    fn a_view_that_was_used_is_opened_anew_by_nobody() {
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
        // What came while this end did not have that list is lost, and that is reported.
        let mut views = Landings::default();
        opened(&mut views, VIEW, LAYOUT);
        assert!(views.take_open(VIEW, 64, LAYOUT).is_ok_and(|rank| rank.is_some()));
        views.retire(VIEW);
        assert!(!lands(&mut views, VIEW));
        assert!(views.open(VIEW, &rows(LAYOUT), Rank(1)).is_err());
    }

    #[test]
    fn a_view_that_has_ended_takes_nothing_and_one_that_is_ahead_neither() {
        let mut views = Landings::default();
        opened(&mut views, VIEW, LAYOUT);
        assert!(views.take_open(VIEW, 64, LAYOUT).is_ok_and(|rank| rank.is_some()));
        assert!(matches!(views.take_open(NEXT, 64, LAYOUT), Ok(None)));
        assert!(views.target(NEXT, Region::ROW, 0, 8).is_err(), "nobody told the peer that it may");
        assert!(opened(&mut views, NEXT, LAYOUT));
        views.retire(VIEW);
        assert!(!lands(&mut views, VIEW), "the peer is behind");
        assert!(matches!(views.take_open(VIEW, 64, LAYOUT), Ok(None)));
        assert!(lands(&mut views, NEXT));
        assert!(views.target(ViewId(4), Region::ROW, 0, 8).is_err(), "it was never open here");
        assert_eq!(views.landings.len(), 1);
        let mut fresh = Landings::default();
        opened(&mut fresh, VIEW, LAYOUT);
        assert!(fresh.target(VIEW, Region::ROW, 0, 8).is_err(), "a peer that opened nothing");
        for view in [NEXT, ViewId(7)] {
            assert!(matches!(fresh.take_open(view, 64, LAYOUT), Ok(None)));
        }
        assert!(fresh.take_open(ViewId(8), 64, LAYOUT).is_err(), "too many ahead");
    }
}
