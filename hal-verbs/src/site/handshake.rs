//! What the two ends of connections tell each other, and what each makes of it.

use std::io;
use std::net::Ipv6Addr;

use tramontane_core::ids::Rank;

use crate::devices::{Choice, LinkLayer};
use crate::fabric::{FarEnd, Link, NOTICES_MAX, Purpose};
use crate::ffi::{Access, Route, Target};
use crate::protocol::blocks::MESSAGES_MAX;
use crate::protocol::{Card, CardLink};

/// One member's side of all handshakes of a view.
#[derive(Debug)]
pub(crate) struct Handshake {
    choice: Choice,
    reads_max: u8,
    regions: usize,
    own_bytes: usize,
    /// By connection, what its card says.
    cards: Vec<CardLink>,
}

/// Why a peer cannot be connected to.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It showed other memory than it should have, or no card.
    WrongMemory,
    /// The device knows no way there.
    NoWay {
        #[allow(dead_code, reason = "told with the rest, as `Debug`")]
        theirs: Ipv6Addr,
        #[allow(dead_code, reason = "as above")]
        source: io::Error,
    },
}

impl Handshake {
    pub(super) const fn new(
        choice: Choice,
        reads_max: u8,
        regions: usize,
        own_bytes: usize,
    ) -> Self {
        Self { choice, reads_max, regions, own_bytes, cards: Vec::new() }
    }

    /// Takes the card of the next connection.
    pub(super) fn add(&mut self, card: CardLink) {
        self.cards.push(card);
    }

    /// Reads of one peer at once.
    pub(super) const fn reads_max(&self) -> u8 {
        self.reads_max
    }

    /// How many regions there are.
    pub(super) const fn regions(&self) -> usize {
        self.regions
    }

    /// What a peer is told.
    pub(crate) fn card_for(&self, links: &[Link], peer: Rank) -> Card {
        let of_peer = links.iter().zip(&self.cards).filter(|(link, _)| link.peer == peer);
        Card {
            gid: self.choice.gid.address,
            lid: self.choice.lid,
            mtu_bytes: self.choice.mtu_bytes,
            reads_max: self.reads_max,
            links: of_peer.map(|(_, card)| *card).collect(),
        }
    }

    /// Connects to a peer, by what it told.
    pub(crate) fn connect(
        &self,
        links: &mut [Link],
        peer: Rank,
        card: &[u8],
    ) -> Result<(), Refused> {
        let count = links.iter().filter(|link| link.peer == peer).count();
        let card = Card::decode(card, count).ok_or(Refused::WrongMemory)?;
        let of_peer = links.iter_mut().filter(|link| link.peer == peer);
        for (link, theirs) in of_peer.zip(&card.links) {
            self.connect_link(link, &card, theirs)?;
        }
        Ok(())
    }

    fn connect_link(&self, link: &mut Link, card: &Card, theirs: &CardLink) -> Result<(), Refused> {
        let bytes = usize::try_from(theirs.bytes).map_err(|_| Refused::WrongMemory)?;
        let (expected, access, receives) = match link.purpose {
            Purpose::Row => {
                (self.own_bytes, Access::REMOTE_WRITE, u64::from(notices(self.regions)))
            }
            Purpose::Region(_) => (link.own_bytes(), Access::REMOTE_READ, 0),
            Purpose::Blocks => (0, Access::REMOTE_WRITE, u64::from(MESSAGES_MAX)),
        };
        if bytes != expected {
            return Err(Refused::WrongMemory);
        }
        // As many as both take: neither end asks for more than the other serves.
        let reads_max = card.reads_max.clamp(1, self.reads_max.max(1));
        let route = Route {
            port: self.choice.port,
            gid_index: self.choice.gid.index,
            mtu: mtu_raw(self.choice.mtu_bytes.min(card.mtu_bytes)),
            remote_gid: card.gid,
            remote_lid: card.lid,
            remote_number: theirs.number,
            remote_packet: theirs.first_packet,
            is_global: self.choice.link_layer == LinkLayer::Ethernet,
            reads_max,
        };
        let target = Target { address: theirs.address, key: theirs.key };
        let far = FarEnd { route, target, bytes };
        link.limit_reads(reads_max);
        let connected = link.connect(far, access, receives, 0);
        connected.map_err(|source| Refused::NoWay { theirs: card.gid, source })
    }
}

/// Receives for notices on a row's connection: of each kind one may be under way, and of each
/// region one.
pub(super) fn notices(regions: usize) -> u32 {
    NOTICES_MAX + 2 * u32::try_from(regions).unwrap_or(0)
}

fn mtu_raw(bytes: u32) -> u32 {
    match bytes {
        512 => 2,
        1024 => 3,
        2048 => 4,
        4096 => 5,
        _ => 1,
    }
}
