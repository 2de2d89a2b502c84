//! Device events that all views share. They are read in one place and passed to every view.

use std::os::fd::AsFd;

use rustix::event::epoll;
use tramontane_core::fabric::{ErrorKind, HostFabric};

use super::fabric::RdmaViews;
use crate::site::{DeviceNews, JoinError};

impl<S: HostFabric<Error = ErrorKind> + AsFd> RdmaViews<S> {
    /// Lets device events wake this member.
    pub(super) fn watch_device(&mut self) -> std::io::Result<()> {
        if !self.is_device_watched {
            let (data, flags) = (epoll::EventData::new_u64(0), epoll::EventFlags::IN);
            epoll::add(&self.descriptors, &self.site, data, flags)?;
            self.is_device_watched = true;
        }
        Ok(())
    }

    /// Reads the device's events and passes them to every view, including those that are not open
    /// yet. The flag is true if there is news for an open view.
    pub(super) fn check_device(&mut self) -> (DeviceNews, bool) {
        let news = self.site.check_device();
        if news.is_empty() {
            return (news, false);
        }
        if news.has_failed() && std::mem::take(&mut self.is_device_watched) {
            // If the failed device were not removed, its descriptor would keep waking this member.
            let _ = epoll::delete(&self.descriptors, &self.site);
        }
        let views = self.views.iter_mut().chain(&mut self.made);
        let is_news = views.fold(false, |is_news, view| view.verbs.hear_device(&news) | is_news);
        (news, is_news)
    }

    /// Prepares the device for the next view. Earlier events are passed to the existing views.
    pub(super) fn renew_device(&mut self) -> Result<(), JoinError> {
        self.check_device();
        self.site.renew()?;
        if let Err(error) = self.watch_device() {
            tracing::warn!(%error, "cannot wait for device events");
        }
        Ok(())
    }
}
