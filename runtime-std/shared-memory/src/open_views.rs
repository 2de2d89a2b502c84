//! The open views, found by their ids. A process may have a thousand.

use tramontane_core::ids::ViewId;

use super::open_view::OpenView;

/// The maximum number of open views: enough for a replica of shards with 1,024 clients. Each view
/// has one row of this process and one row of each peer.
pub const VIEWS_MAX: usize = 2_048;

/// Open views, sorted by id.
#[derive(Debug, Default)]
pub(super) struct OpenViews {
    /// Separate from the views, so that a search touches only a few cache lines.
    ids: Vec<ViewId>,
    views: Vec<OpenView>,
}

impl OpenViews {
    /// How many.
    pub(super) fn len(&self) -> usize {
        self.views.len()
    }

    /// Returns the view with an id.
    #[inline]
    pub(super) fn get(&self, id: ViewId) -> Option<&OpenView> {
        self.views.get(self.ids.binary_search(&id).ok()?)
    }

    /// Returns the view with an id, mutably.
    #[inline]
    pub(super) fn get_mut(&mut self, id: ViewId) -> Option<&mut OpenView> {
        self.views.get_mut(self.ids.binary_search(&id).ok()?)
    }

    /// Adds a view with a new id.
    pub(super) fn add(&mut self, view: OpenView) {
        let (Ok(place) | Err(place)) = self.ids.binary_search(&view.id);
        self.ids.insert(place, view.id);
        self.views.insert(place, view);
    }

    /// Removes a view and returns it.
    pub(super) fn remove(&mut self, id: ViewId) -> Option<OpenView> {
        let place = self.ids.binary_search(&id).ok()?;
        self.ids.remove(place);
        Some(self.views.remove(place))
    }

    /// Returns all views in the order of their ids.
    pub(super) fn iter(&self) -> impl Iterator<Item = &OpenView> {
        self.views.iter()
    }

    /// Returns all views in the order of their ids, mutably.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut OpenView> {
        self.views.iter_mut()
    }
}
