//! The state of each channel with one peer, and the closed channels.
//!
//! A channel's state is made at its first use with a peer, and kept until the channel or its view
//! ends. After that first use, its blocks cause no allocation.

use tramontane_core::fabric::Channel;
use tramontane_core::ids::ViewId;

/// Number of channels of a view.
pub(super) const CHANNELS: u16 = 1024;

/// The closed channels of a view.
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

/// The state of each used channel.
#[derive(Debug)]
pub(super) struct ChannelTable<T> {
    /// Indexed by view, then by channel.
    views: Vec<(ViewId, Vec<Option<Box<T>>>)>,
}

impl<T> Default for ChannelTable<T> {
    fn default() -> Self {
        Self { views: Vec::new() }
    }
}

impl<T> ChannelTable<T> {
    pub(super) fn get(&mut self, view: ViewId, channel: Channel) -> Option<&mut T> {
        let (_, channels) = self.views.iter_mut().find(|(id, _)| *id == view)?;
        channels.get_mut(usize::from(channel.0))?.as_deref_mut()
    }

    /// Returns the channel's state, making it if necessary.
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
        let channels = &mut self.views[place].1;
        let index = usize::from(channel.0);
        if channels.len() <= index {
            channels.resize_with(index + 1, || None);
        }
        channels[index].get_or_insert_with(|| Box::new(make()))
    }

    pub(super) fn close(&mut self, view: ViewId, channel: Channel) {
        if let Some((_, channels)) = self.views.iter_mut().find(|(id, _)| *id == view)
            && let Some(channel_state) = channels.get_mut(usize::from(channel.0))
        {
            *channel_state = None;
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
    fn channel_state_is_separate_per_view() {
        let mut channels = ChannelTable::<u32>::default();
        let (last, other) = (Channel(CHANNELS - 1), Channel(3));
        *channels.get_or_make(ViewId(1), last, || 0) = 5;
        *channels.get_or_make(ViewId(2), last, || 0) = 6;
        assert_eq!(channels.get(ViewId(1), last).copied(), Some(5));
        assert_eq!(*channels.get_or_make(ViewId(1), last, || 0), 5, "made once");
        assert!(
            channels.get(ViewId(1), other).is_none() && channels.get(ViewId(3), last).is_none()
        );
        channels.close(ViewId(1), last);
        channels.close(ViewId(1), Channel(u16::MAX));
        assert!(channels.get(ViewId(1), last).is_none());
        channels.retire(ViewId(2));
        assert!(channels.get(ViewId(2), last).is_none());
    }

    #[test]
    fn closed_channels_are_tracked_individually() {
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
