//! Paths between ports: addresses, links that are cut, slow or lossy, and packets that are too
//! long.

use super::hardware::{Device, Hardware};
use super::link::PathPlace;
use super::profile::GidEntry;
use crate::adapter::Route;
use crate::devices::LinkLayer;

impl Hardware {
    /// Returns the port to which a route leads, according to the current addresses.
    pub(super) fn far_end(&self, from: PathPlace, route: &Route) -> Option<PathPlace> {
        let port = self.devices.get(from.device)?.port(from.port)?;
        let own_gid = port.gids.get(usize::from(route.gid_index));
        if port.link_layer == LinkLayer::Ethernet && !own_gid.is_some_and(leads_somewhere) {
            return None;
        }
        let is_it = |candidate: &super::profile::PortProfile| {
            let has_gid = candidate
                .gids
                .iter()
                .any(|gid| gid.address == route.remote_gid && leads_somewhere(gid));
            candidate.link_layer == port.link_layer
                && match port.link_layer {
                    LinkLayer::Ethernet => has_gid,
                    LinkLayer::InfiniBand => {
                        candidate.lid == route.remote_lid && (!route.is_global || has_gid)
                    }
                }
        };
        let ports = |(device, described): (usize, &Device)| {
            let mut numbered = (1..).zip(&described.profile.ports);
            let found = numbered.find(|(_, candidate)| is_it(candidate));
            found.map(|(port, _)| PathPlace { device, port })
        };
        self.devices.iter().enumerate().find_map(ports)
    }

    /// Returns whether traffic flows through a port.
    pub(super) fn is_up(&self, place: PathPlace) -> bool {
        let device = self.devices.get(place.device);
        device.is_some_and(|device| {
            !device.is_fatal && device.port(place.port).is_some_and(|port| port.is_up)
        })
    }

    /// Returns the travel time of a message, or `None` if the message is lost, possibly at random.
    /// `packet` is the length of the message's longest packet.
    pub(super) fn journey_ns(
        &mut self,
        from: PathPlace,
        to: PathPlace,
        packet: u32,
    ) -> Option<u64> {
        let link = self.links.get(&(from.device, to.device)).copied().unwrap_or_default();
        let is_too_long = |limit: u32| limit > 0 && packet > limit;
        let mtu = |place: PathPlace| {
            let device = self.devices.get(place.device)?;
            Some(device.port(place.port)?.mtu_bytes)
        };
        if is_too_long(link.mtu_bytes) || [from, to].map(mtu).into_iter().flatten().any(is_too_long)
        {
            self.counts.too_long += 1;
            return None;
        }
        if link.is_cut || !self.is_up(from) || !self.is_up(to) {
            self.counts.nowhere += 1;
            return None;
        }
        if self.random.chance(link.loss_per_million) {
            self.counts.lost += 1;
            return None;
        }
        let profile = &self.devices.get(from.device)?.profile;
        let (latency, jitter) = (profile.latency_ns, profile.jitter_ns);
        let drawn = if jitter > 0 { self.random.below(jitter + 1) } else { 0 };
        Some(latency.saturating_add(link.delay_ns).saturating_add(drawn))
    }
}

fn leads_somewhere(gid: &GidEntry) -> bool {
    gid.is_routed && !gid.address.is_unspecified()
}
