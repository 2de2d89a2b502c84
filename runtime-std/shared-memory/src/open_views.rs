//! The views that are open, found by their ids: a process may have some hundred.

use tramontane_core::ids::ViewId;

use super::open_view::OpenView;

/// Views that may be open at once. Each has a row of this process, and one of each peer.
pub(super) const VIEWS_MAX: usize = 512;

/// Open views, sorted by id.
#[derive(Debug, Default)]
pub(super) struct OpenViews {
    /// Apart from the views, so that a search stays in few cache lines.
    ids: Vec<ViewId>,
    views: Vec<OpenView>,
}

impl OpenViews {
    /// How many.
    pub(super) fn len(&self) -> usize {
        self.views.len()
    }

    /// The view of an id.
    #[inline]
    pub(super) fn get(&self, id: ViewId) -> Option<&OpenView> {
        self.views.get(self.ids.binary_search(&id).ok()?)
    }

    /// The same, to be changed.
    #[inline]
    pub(super) fn get_mut(&mut self, id: ViewId) -> Option<&mut OpenView> {
        self.views.get_mut(self.ids.binary_search(&id).ok()?)
    }

    /// Adds a view whose id is not there.
    pub(super) fn add(&mut self, view: OpenView) {
        let (Ok(place) | Err(place)) = self.ids.binary_search(&view.id);
        self.ids.insert(place, view.id);
        self.views.insert(place, view);
    }

    /// Takes a view out.
    pub(super) fn remove(&mut self, id: ViewId) -> Option<OpenView> {
        let place = self.ids.binary_search(&id).ok()?;
        self.ids.remove(place);
        Some(self.views.remove(place))
    }

    /// All of them, by id.
    pub(super) fn iter(&self) -> impl Iterator<Item = &OpenView> {
        self.views.iter()
    }

    /// The same, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut OpenView> {
        self.views.iter_mut()
    }
}
