//! Lists that their reader confirms: those with a token, and all lists for regions.
//!
//! The reader counts the lists of a connection, and reports the number that it has finished. The
//! writer knows the order in which it sent them, and therefore which lists these are. If the writer
//! learns that a right has changed before that number arrives, it knows which of the lists were not
//! applied.

use std::collections::VecDeque;

use tramontane_core::fabric::{Region, Token};
use tramontane_core::ids::ViewId;

use crate::stream_end::StreamEnd;

/// The maximum number of unconfirmed lists to one peer.
pub(crate) const UNCONFIRMED_MAX: usize = 256;

/// A posted list.
#[derive(Clone, Copy, Debug)]
struct PostedList {
    view: ViewId,
    region: Region,
    token: Option<Token>,
    /// Whether the list may still be applied, as far as is known.
    is_awaited: bool,
}

/// Posted lists that the peer has not confirmed.
#[derive(Debug, Default)]
pub(crate) struct Unconfirmed {
    lists: VecDeque<PostedList>,
    /// The number of lists that the peer has finished.
    confirmed: u64,
}

impl Unconfirmed {
    pub(crate) fn has_room(&self) -> bool {
        self.lists.len() < UNCONFIRMED_MAX
    }

    pub(crate) fn add(&mut self, view: ViewId, region: Region, token: Option<Token>) {
        self.lists.push_back(PostedList { view, region, token, is_awaited: true });
    }

    /// Notes that the peer has finished `lists` lists, counted from the start. Calls `completed`
    /// with the tokens of those that the peer has applied.
    pub(crate) fn confirm(
        &mut self,
        lists: u64,
        mut completed: impl FnMut(Token),
    ) -> Result<(), StreamEnd> {
        const UNKNOWN: StreamEnd = StreamEnd::Malformed("a list confirmed that was not sent");
        let more = lists.checked_sub(self.confirmed).ok_or(UNKNOWN)?;
        let count = usize::try_from(more).map_err(|_| UNKNOWN)?;
        if count > self.lists.len() {
            return Err(UNKNOWN);
        }
        for list in self.lists.drain(..count).filter(|list| list.is_awaited) {
            list.token.into_iter().for_each(&mut completed);
        }
        self.confirmed = lists;
        Ok(())
    }

    /// Notes that the right for lists to a region no longer exists, so unconfirmed lists were not
    /// applied. Returns true if there are any.
    pub(crate) fn give_up(&mut self, view: ViewId, region: Region) -> bool {
        let mut is_any = false;
        for list in self.lists.iter_mut().filter(|list| (list.view, list.region) == (view, region))
        {
            is_any |= list.is_awaited;
            list.is_awaited = false;
        }
        is_any
    }

    /// Returns a region of the view for which a list is still awaited.
    pub(crate) fn awaited_region(&self, view: ViewId) -> Option<Region> {
        let is_it =
            |list: &&PostedList| list.view == view && list.region != Region::ROW && list.is_awaited;
        self.lists.iter().find(is_it).map(|list| list.region)
    }

    /// Notes that a view has ended here, so that its lists are not reported.
    pub(crate) fn retire(&mut self, view: ViewId) {
        for list in self.lists.iter_mut().filter(|list| list.view == view) {
            list.is_awaited = false;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.lists = VecDeque::new();
    }
}

/// A list whose writes are arriving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ComingList {
    pub(crate) view: ViewId,
    pub(crate) region: Region,
    /// The number of writes that have not begun to arrive.
    pub(crate) left: u32,
    /// Whether the list's writes are stored.
    pub(crate) is_taken: bool,
}

/// Lists that arrive from a peer.
#[derive(Debug, Default)]
pub(crate) struct ComingLists {
    coming: Option<ComingList>,
    done: u64,
    told: u64,
}

impl ComingLists {
    /// Returns the list in progress, if any. Until it is complete, nothing else may arrive.
    pub(crate) const fn coming(&self) -> Option<&ComingList> {
        self.coming.as_ref()
    }

    pub(crate) fn begin(&mut self, list: ComingList) {
        self.coming = Some(list);
        self.go_on();
    }

    /// Returns the next write of the list in progress, if it has more.
    pub(crate) fn next_write(&mut self) -> Option<ComingList> {
        let list = self.coming.as_mut()?;
        list.left = list.left.checked_sub(1)?;
        Some(*list)
    }

    /// Notes that a write is complete. If it is the list's last, the list is finished.
    pub(crate) fn go_on(&mut self) {
        if self.coming.take_if(|list| list.left == 0).is_some() {
            self.done += 1;
        }
    }

    /// Stops storing the list in progress for a region. Returns true if there is one.
    pub(crate) fn drop_to(&mut self, view: ViewId, region: Option<Region>) -> bool {
        let is_it = |list: &&mut ComingList| {
            list.view == view && region.is_none_or(|region| list.region == region)
        };
        let Some(list) = self.coming.as_mut().filter(is_it) else { return false };
        list.is_taken = false;
        true
    }

    /// Returns the number of finished lists, if the peer does not know it yet.
    pub(crate) const fn news(&mut self) -> Option<u64> {
        if self.told == self.done {
            return None;
        }
        self.told = self.done;
        Some(self.done)
    }

    pub(crate) fn clear(&mut self) {
        self.coming = None;
        self.told = self.done;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEW: ViewId = ViewId(3);
    const LOG: Region = Region(1);

    fn confirmed(lists: &mut Unconfirmed, count: u64) -> Result<Vec<u64>, StreamEnd> {
        let mut tokens = Vec::new();
        lists.confirm(count, |token| tokens.push(token.0)).map(|()| tokens)
    }

    #[test]
    fn lists_posted_after_revocation_never_complete() {
        let mut lists = Unconfirmed::default();
        for token in 0..4 {
            lists.add(VIEW, LOG, Some(Token(token)));
        }
        lists.add(VIEW, Region(2), Some(Token(4)));
        lists.add(ViewId(4), LOG, None);
        assert!(matches!(confirmed(&mut lists, 2), Ok(tokens) if tokens == [0, 1]));
        assert!(lists.give_up(VIEW, LOG) && !lists.give_up(VIEW, LOG));
        lists.add(VIEW, LOG, Some(Token(5)));
        assert_eq!(lists.awaited_region(VIEW), Some(Region(2)));
        assert!(matches!(confirmed(&mut lists, 7), Ok(tokens) if tokens == [4, 5]));
        assert_eq!(lists.awaited_region(VIEW), None);
    }

    #[test]
    fn out_of_range_confirmed_count_is_refused() {
        let mut lists = Unconfirmed::default();
        lists.add(VIEW, LOG, None);
        assert!(confirmed(&mut lists, 2).is_err() && confirmed(&mut lists, u64::MAX).is_err());
        assert!(confirmed(&mut lists, 1).is_ok() && confirmed(&mut lists, 1).is_ok());
        assert!(confirmed(&mut lists, 0).is_err());
        for _ in 0..UNCONFIRMED_MAX {
            assert!(lists.has_room());
            lists.add(VIEW, LOG, None);
        }
        assert!(!lists.has_room());
        lists.retire(VIEW);
        let all = 1 + u64::try_from(UNCONFIRMED_MAX).expect("few");
        assert!(confirmed(&mut lists, all).is_ok_and(|tokens| tokens.is_empty()));
    }

    #[test]
    fn list_is_confirmed_after_its_last_write() {
        let list = |left| ComingList { view: VIEW, region: LOG, left, is_taken: true };
        let mut lists = ComingLists::default();
        assert_eq!((lists.next_write(), lists.news()), (None, None));
        lists.begin(list(0));
        assert_eq!((lists.coming, lists.news(), lists.news()), (None, Some(1), None));
        lists.begin(list(2));
        assert_eq!(lists.next_write(), Some(list(1)));
        lists.go_on();
        assert!(lists.news().is_none());
        assert!(!lists.drop_to(VIEW, Some(Region(2))) && !lists.drop_to(ViewId(4), None));
        assert!(lists.drop_to(VIEW, Some(LOG)));
        assert!(lists.next_write().is_some_and(|list| !list.is_taken && list.left == 0));
        assert!(lists.next_write().is_none(), "it has no more");
        lists.go_on();
        assert_eq!((lists.coming, lists.news()), (None, Some(2)));
    }
}
