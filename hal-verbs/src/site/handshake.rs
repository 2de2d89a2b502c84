//! The data that the two ends of a connection exchange, and the way in which each end uses it.

use tramontane_core::ids::Rank;
use tramontane_core::layout::RelayedRing;

use crate::adapter::{Access, Route, Target, mtu_raw};
use crate::devices::{Choice, LinkLayer};
use crate::fabric::{FarEnd, FarRing, Link, LossReason, NearEnd, Purpose, REGION_ACCESS};
use crate::protocol::blocks::MESSAGES_MAX;
use crate::protocol::{Card, CardLink, LentMemory};
use crate::settings::WriteOrder;

/// Maximum number of receives for notices on a row's connection: more than can be in flight at
/// once.
pub(crate) const NOTICES_MAX: u32 = 16;

/// A connection to bring up.
#[derive(Debug)]
pub(crate) struct NewConnection {
    pub(crate) near: NearEnd,
    pub(crate) far: FarEnd,
    /// The remote end's rights.
    pub(crate) access: Access,
    /// Number of receives to post first.
    pub(crate) receives: u64,
}

/// The rings that this member passes on, and the number of places for rings on each card of the
/// view.
#[derive(Debug)]
pub(super) struct Relays {
    passed_on: Vec<RelayedRing>,
    places: usize,
}

impl Relays {
    /// Selects from all rings that the view's members pass on.
    pub(super) fn of(own: Rank, all: &[RelayedRing]) -> Self {
        let passed_on = all.iter().copied().filter(|ring| ring.from == own).collect();
        Self { passed_on, places: ring_places(all) }
    }
}

/// Returns the maximum number of rings that one member passes on to another: the places on a card.
pub(crate) fn ring_places(all: &[RelayedRing]) -> usize {
    let ends = |ring: &RelayedRing| (ring.from, ring.to);
    let beside = |one| all.iter().filter(|other| ends(other) == ends(one)).count();
    all.iter().map(beside).max().unwrap_or(0)
}

/// One member's side of all handshakes of a view.
#[derive(Debug)]
pub(crate) struct Handshake {
    choice: Choice,
    reads_max: u8,
    regions: usize,
    own_bytes: usize,
    write_order: WriteOrder,
    relays: Relays,
}

impl Handshake {
    pub(super) const fn new(
        choice: Choice,
        reads_max: u8,
        regions: usize,
        own_bytes: usize,
        write_order: WriteOrder,
        relays: Relays,
    ) -> Self {
        Self { choice, reads_max, regions, own_bytes, write_order, relays }
    }

    /// Returns the card for a peer. The card omits connections that have not been created yet.
    pub(crate) fn card_for(&self, links: &[Link], peer: Rank) -> Card {
        let ends = || links.iter().filter(|link| link.peer == peer).filter_map(Link::near);
        let mut rings: Vec<LentMemory> = ends().flat_map(|near| near.lent_rings.clone()).collect();
        rings.resize(self.relays.places, LentMemory::default());
        let links = ends().map(|near| near.card).collect();
        Card { rings, ..card_of(&self.choice, self.reads_max, self.write_order, links) }
    }

    /// Returns how this end of each connection with a peer is brought up, according to the peer's
    /// card. The local ends are moved into the result.
    pub(crate) fn connections(
        &self,
        links: &mut [Link],
        peer: Rank,
        card: &[u8],
    ) -> Result<Vec<NewConnection>, LossReason> {
        let of_peer = || links.iter().filter(|link| link.peer == peer);
        let card = Card::decode(card, of_peer().count(), self.relays.places);
        let card = card.ok_or(LossReason::WrongCard)?;
        self.check_network(&card)?;
        let rings = self.far_rings(peer, &card).ok_or(LossReason::WrongCard)?;
        let is_right = |(link, theirs): (&Link, &CardLink)| {
            let near = link.near();
            near.is_some() && self.is_far_size(link.purpose, theirs.memory.bytes)
        };
        if !of_peer().zip(&card.links).all(is_right) {
            return Err(LossReason::WrongCard);
        }
        let of_peer = links.iter_mut().filter(|link| link.peer == peer);
        let connections = of_peer.zip(&card.links).filter_map(|(link, theirs)| {
            let mut near = link.take()?;
            if link.purpose == Purpose::Row {
                near.pass_on_to(rings.clone());
            }
            Some(self.connection(link.purpose, near, &card, theirs))
        });
        Ok(connections.collect())
    }

    /// Returns the rings that this member passes on to a peer. Returns `None` if the peer lends
    /// others.
    fn far_rings(&self, peer: Rank, card: &Card) -> Option<Vec<FarRing>> {
        let rings = self.relays.passed_on.iter().filter(|ring| ring.to == peer);
        let far = rings.zip(&card.rings).map(|(ring, lent)| {
            (u64::try_from(ring.bytes) == Ok(lent.bytes))
                .then_some(FarRing { ring: *ring, target: target_of(lent) })
        });
        far.collect()
    }

    /// Members on different networks can never reach each other. Members that keep the order of
    /// writes in different ways cannot exchange data.
    fn check_network(&self, card: &Card) -> Result<(), LossReason> {
        let (own, peer) = (self.choice.link_layer, card.link_layer);
        if own != peer {
            return Err(LossReason::LinkLayers { own, peer });
        }
        let (own, peer) = (self.choice.partition.key, card.partition);
        if !own.reaches(peer) {
            return Err(LossReason::Partitions { own, peer });
        }
        if card.write_order != self.write_order {
            return Err(LossReason::WriteOrders);
        }
        Ok(())
    }

    /// Returns whether the memory at the other end may have this size.
    fn is_far_size(&self, purpose: Purpose, bytes: u64) -> bool {
        match purpose {
            Purpose::Row => u64::try_from(self.own_bytes) == Ok(bytes),
            // Each owner chooses the length of its region.
            Purpose::Region(_) => bytes > 0,
            Purpose::Blocks => bytes == 0,
        }
    }

    fn connection(
        &self,
        purpose: Purpose,
        mut near: NearEnd,
        card: &Card,
        theirs: &CardLink,
    ) -> NewConnection {
        let (access, receives) = match purpose {
            Purpose::Row => {
                (Access::REMOTE_WRITE, u64::from(row_receives(self.regions, self.write_order)))
            }
            Purpose::Region(_) => (REGION_ACCESS, 0),
            Purpose::Blocks => (Access::REMOTE_WRITE, u64::from(MESSAGES_MAX)),
        };
        // Uses the smaller of both limits, so that neither end requests more reads than the other
        // serves.
        let reads_max = card.reads_max.clamp(1, self.reads_max.max(1));
        let route = route_to(&self.choice, card, theirs, reads_max);
        let target = target_of(&theirs.memory);
        near.limit_reads(reads_max);
        let bytes = usize::try_from(theirs.memory.bytes).unwrap_or(0);
        NewConnection { near, far: FarEnd { route, target, bytes }, access, receives }
    }
}

/// Returns the place at which a peer's memory begins.
pub(crate) const fn target_of(memory: &LentMemory) -> Target {
    Target { address: memory.address, key: memory.key }
}

/// Returns the card of an end on the chosen device.
pub(crate) fn card_of(
    choice: &Choice,
    reads_max: u8,
    write_order: WriteOrder,
    links: Vec<CardLink>,
) -> Card {
    Card {
        gid: choice.gid.address,
        lid: choice.lid,
        mtu_bytes: choice.mtu_bytes,
        reads_max,
        link_layer: choice.link_layer,
        has_global_route: choice.service.has_global_route,
        partition: choice.partition.key,
        write_order,
        links,
        rings: Vec::new(),
    }
}

/// Returns the route from the chosen device to one of the connections on a peer's card.
pub(crate) fn route_to(choice: &Choice, card: &Card, theirs: &CardLink, reads_max: u8) -> Route {
    Route {
        port: choice.port,
        partition_index: choice.partition.index,
        gid_index: choice.gid.index,
        mtu: mtu_raw(choice.mtu_bytes.min(card.mtu_bytes)),
        remote_gid: card.gid,
        remote_lid: card.lid,
        remote_number: theirs.number,
        remote_packet: theirs.first_packet,
        // Both ends must agree, because a packet with a GID header does not match a connection
        // without one.
        is_global: choice.link_layer == LinkLayer::Ethernet
            || choice.service.has_global_route
            || card.has_global_route,
        service: choice.service,
        reads_max,
    }
}

/// Returns the number of receives for notices on a row's connection, which allows one notice of
/// each kind in flight. Each region adds two about its connection, two for the halves of a key, and
/// one for an answer to a key.
pub(super) fn notices(regions: usize) -> u32 {
    const REGION_NOTICES: u32 = 2 + 2 + 1;
    NOTICES_MAX + REGION_NOTICES * u32::try_from(regions).unwrap_or(0)
}

/// Returns the number of all receives on a row's connection.
pub(super) fn row_receives(regions: usize, write_order: WriteOrder) -> u32 {
    match write_order {
        WriteOrder::ByDevice => notices(regions),
        WriteOrder::ByUpdates => notices(regions) + MESSAGES_MAX,
    }
}
