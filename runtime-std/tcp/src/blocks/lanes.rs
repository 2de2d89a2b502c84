//! What there is of each channel with one peer, and which channels were closed.
//!
//! A channel's lane is made at its first use with a peer and kept until the channel or its view
//! ends: from then on nothing is allocated for its blocks.

use tramontane_core::fabric::Channel;
use tramontane_core::ids::ViewId;

/// Channels of a view.
pub(super) const CHANNELS: u16 = 1024;

/// The channels of a view that were closed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Closed([u64; CHANNELS as usize / 64]);

impl Closed {
    pub(super) fn contains(&self, channel: Channel) -> bool {
        let (word, bit) = Self::place(channel);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    pub(super) fn insert(&mut self, channel: Channel) {
        let (word, bit) = Self::place(channel);
        if let Some(word) = self.0.get_mut(word) {
            *word |= bit;
        }
    }

    fn place(channel: Channel) -> (usize, u64) {
        (usize::from(channel.0 / 64), 1 << (channel.0 % 64))
    }
}

/// A lane for each channel that is used.
#[derive(Debug)]
pub(super) struct Lanes<T> {
    /// By view, and then by channel.
    views: Vec<(ViewId, Vec<Option<Box<T>>>)>,
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Self { views: Vec::new() }
    }
}

impl<T> Lanes<T> {
    pub(super) fn get(&mut self, view: ViewId, channel: Channel) -> Option<&mut T> {
        let (_, lanes) = self.views.iter_mut().find(|(id, _)| *id == view)?;
        lanes.get_mut(usize::from(channel.0))?.as_deref_mut()
    }

    /// The lane, made if it is not there.
    pub(super) fn get_or_make(
        &mut self,
        view: ViewId,
        channel: Channel,
        make: fn() -> T,
    ) -> &mut T {
        let place = self.views.iter().position(|(id, _)| *id == view).unwrap_or_else(|| {
            self.views.push((view, Vec::new()));
            self.views.len() - 1
        });
        let lanes = &mut self.views[place].1;
        let index = usize::from(channel.0);
        if lanes.len() <= index {
            lanes.resize_with(index + 1, || None);
        }
        lanes[index].get_or_insert_with(|| Box::new(make()))
    }

    pub(super) fn close(&mut self, view: ViewId, channel: Channel) {
        if let Some((_, lanes)) = self.views.iter_mut().find(|(id, _)| *id == view)
            && let Some(lane) = lanes.get_mut(usize::from(channel.0))
        {
            *lane = None;
        }
    }

    pub(super) fn retire(&mut self, view: ViewId) {
        self.views.retain(|(id, _)| *id != view);
    }

    pub(super) fn clear(&mut self) {
        self.views.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_apart_by_view_and_channel() {
        let mut lanes = Lanes::<u32>::default();
        let (last, other) = (Channel(CHANNELS - 1), Channel(3));
        *lanes.get_or_make(ViewId(1), last, || 0) = 5;
        *lanes.get_or_make(ViewId(2), last, || 0) = 6;
        assert_eq!(lanes.get(ViewId(1), last).copied(), Some(5));
        assert_eq!(*lanes.get_or_make(ViewId(1), last, || 0), 5, "made once");
        assert!(lanes.get(ViewId(1), other).is_none() && lanes.get(ViewId(3), last).is_none());
        lanes.close(ViewId(1), last);
        lanes.close(ViewId(1), Channel(u16::MAX));
        assert!(lanes.get(ViewId(1), last).is_none());
        lanes.retire(ViewId(2));
        assert!(lanes.get(ViewId(2), last).is_none());
    }

    #[test]
    fn closed_channels_are_known_one_by_one() {
        let mut closed = Closed::default();
        for channel in [0, 63, 64, CHANNELS - 1] {
            assert!(!closed.contains(Channel(channel)));
            closed.insert(Channel(channel));
            assert!(closed.contains(Channel(channel)));
        }
        closed.insert(Channel(CHANNELS));
        let known = (0..=u16::MAX).filter(|channel| closed.contains(Channel(*channel))).count();
        assert_eq!(known, 4, "and there are no others");
    }
}
