//! Counters of a member's fabric over all its views, and the state of its port: for metrics.

use std::os::fd::AsFd;

use tramontane_core::fabric::{ErrorKind, HostFabric};

use super::fabric::RdmaViews;
use crate::protocol::Counters;

/// The figures of one member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The device in use.
    pub device: String,
    /// The device's port in use.
    pub port: u8,
    /// Whether the port has its link, according to the device.
    pub has_link: bool,
    /// Number of times that the port has lost its link.
    pub link_losses: u64,
    /// The counters of all views.
    pub counters: Counters,
    /// Number of peers that became unreachable, by the status of the first failed request to them
    /// ([`WorkStatus::name`](crate::status::WorkStatus::name)), or `none`.
    pub losses: Vec<(&'static str, u64)>,
}

impl<S: HostFabric<Error = ErrorKind> + AsFd> RdmaViews<S> {
    /// Writes the current figures. After the first call, allocates nothing unless peers have been
    /// lost.
    pub fn write_figures(&self, into: &mut Figures) {
        let choice = self.site.choice();
        into.device.clone_from(&choice.name);
        into.port = choice.port;
        into.has_link = !self.site.is_link_down();
        into.link_losses = self.site.link_losses();
        into.losses.clone_from(&self.losses);
        into.counters = self.ended;
        for view in self.views.iter().chain(&self.made).chain(&self.forgotten) {
            into.counters += *view.verbs.counters();
        }
    }

    /// Counts an unreachable peer.
    pub(super) fn count_loss(&mut self, status: &'static str) {
        match self.losses.iter_mut().find(|(name, _)| *name == status) {
            Some((_, count)) => *count += 1,
            None => self.losses.push((status, 1)),
        }
    }
}
