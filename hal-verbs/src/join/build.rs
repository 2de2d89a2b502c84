//! Memory and connections of one member, as they come into being.

use std::sync::Arc;

use rustix::rand::{GetRandomFlags, getrandom};
use tramontane_core::fabric::{Promises, Region};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::layout::ROW_MAX;

use super::{JoinError, JoinOptions, Rows};
use crate::devices::{Choice, Device, LinkLayer, Order, discover};
use crate::fabric::{
    BlockStore, FarEnd, Link, LinkParts, NOTICES_MAX, Purpose, RegionLink, message_memory_bytes,
};
use crate::ffi::{
    Access, CompletionQueue, Context, MemoryRegion, Pages, ProtectionDomain, QueuePair, QueuePairLimits,
    Route, SendTimes, Target,
};
use crate::protocol::blocks::{MESSAGE_BYTES, MESSAGES_MAX};
use crate::protocol::{Card, CardLink, Depths, SendQueue};
use crate::settings::{Limits, RESERVE};
use crate::timing::LossTimes;

/// Reads of one peer at once that are asked for.
const READS_MAX: u32 = 4;

/// Everything but the way to the others.
pub(super) struct Builder<'j> {
    pub(super) device: &'j str,
    pub(super) choice: &'j Choice,
    pub(super) context: Arc<Context>,
    pub(super) completions: Arc<CompletionQueue>,
    pub(super) rows: Arc<Rows>,
    pub(super) links: Vec<Link>,
    pub(super) regions: Vec<RegionLink>,
    pub(super) registered: Vec<MemoryRegion>,
    pub(super) block_store: BlockStore,
    pub(super) limits: Limits,
    /// By connection, what its card says.
    cards: Vec<CardLink>,
    reads_max: u8,
    loss_times: LossTimes,
    region_count: usize,
}

/// What the fabric promises of an order.
pub(super) fn promises(order: Order) -> Promises {
    let mut promises = Promises::empty();
    promises.set(Promises::WRITE_ORDER, order.writes);
    promises.set(Promises::ADDRESS_ORDER, order.addresses);
    promises.set(Promises::COMPLETION_VISIBLE, order.visible_upon_completion);
    promises
}

impl<'j> Builder<'j> {
    /// Opens the device, registers the memory, and makes the queue pairs.
    pub(super) fn new(
        device: &'j Device,
        choice: &'j Choice,
        options: &JoinOptions<'_>,
        loss_times: LossTimes,
    ) -> Result<Self, JoinError> {
        let failed = |action| move |source| JoinError::from_device(&device.name, action, source);
        let context = discover::open(&device.name).map_err(failed("open it"))?;
        let own = options.mesh.own;
        let rows = Rows::new(own, options.mesh.members, options.row_bytes, options.regions)
            .map(Arc::new)
            .map_err(failed("take memory"))?;
        let (limits, entries) = size(device, options)?;
        let completions = CompletionQueue::new(&context, entries)
            .map(Arc::new)
            .map_err(failed("make a completion queue"))?;
        let block_domain =
            ProtectionDomain::new(&context).map(Arc::new).map_err(failed("make a protection domain"))?;
        let reads_max = u8::try_from(device.limits.reads_max.min(READS_MAX)).unwrap_or(1);
        let mut builder = Self {
            device: &device.name,
            choice,
            context,
            completions,
            rows,
            links: Vec::new(),
            regions: Vec::new(),
            registered: Vec::new(),
            block_store: BlockStore::new(Arc::clone(&block_domain)),
            limits,
            cards: Vec::new(),
            reads_max,
            loss_times,
            region_count: options.regions.len(),
        };
        let inline_bytes_max = device.limits.inline_bytes_max;
        builder.add_rows(own, inline_bytes_max)?;
        for (number, memory) in (0..).zip(options.regions) {
            builder.add_region(own, memory.region, number, inline_bytes_max)?;
        }
        if options.blocks {
            builder.add_blocks(own, &block_domain, inline_bytes_max)?;
        }
        Ok(builder)
    }

    /// A call that failed.
    pub(super) fn failed(&self, action: &'static str, source: std::io::Error) -> JoinError {
        JoinError::from_device(self.device, action, source)
    }

    /// The longest write.
    pub(super) fn write_bytes_max(&self, device: &Device) -> usize {
        let port = device.ports.iter().find(|port| port.number == self.choice.port);
        let most = port.map_or(0, |port| port.message_bytes_max);
        usize::try_from(most).unwrap_or(usize::MAX).min(ROW_MAX)
    }

    fn peers(&self, own: Rank) -> impl Iterator<Item = Rank> + use<> {
        (0..).map(Rank).take(self.rows.members().len()).filter(move |rank| *rank != own)
    }

    fn domain(&self) -> Result<Arc<ProtectionDomain>, JoinError> {
        ProtectionDomain::new(&self.context)
            .map(Arc::new)
            .map_err(|source| JoinError::from_device(self.device, "make a protection domain", source))
    }

    fn register(
        &self,
        domain: &Arc<ProtectionDomain>,
        pages: &Arc<crate::ffi::Pages>,
        access: Access,
    ) -> Result<MemoryRegion, JoinError> {
        MemoryRegion::new(domain, pages, pages.bytes(), access)
            .map_err(|source| JoinError::from_registration(self.device, pages.bytes(), source))
    }

    /// One connection for the own row to each peer, and each peer's copy registered for it alone.
    fn add_rows(&mut self, own: Rank, inline_bytes_max: u32) -> Result<(), JoinError> {
        let domain = self.domain()?;
        let source = Arc::new(self.register(&domain, self.rows.pages(own), Access::empty())?);
        for peer in self.peers(own) {
            let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
            let copy = self.register(&domain, self.rows.pages(peer), access)?;
            let card = lend(&copy);
            self.registered.push(copy);
            let shape = Shape {
                peer,
                purpose: Purpose::Row,
                region: Region::ROW,
                receives: notices(self.region_count),
                inline_bytes_max,
            };
            self.add_link(&domain, &shape, &source, card)?;
        }
        Ok(())
    }

    /// One connection to each peer, in a domain of the region's own.
    fn add_region(
        &mut self,
        own: Rank,
        region: Region,
        number: u8,
        inline_bytes_max: u32,
    ) -> Result<(), JoinError> {
        let domain = self.domain()?;
        let pages = Arc::clone(self.rows.region_pages(region).ok_or(MISSING)?);
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ;
        let memory = Arc::new(self.register(&domain, &pages, access)?);
        for peer in self.peers(own) {
            let shape =
                Shape { peer, purpose: Purpose::Region(number), region, receives: 1, inline_bytes_max };
            let index = self.add_link(&domain, &shape, &memory, lend(&memory))?;
            self.regions.push(RegionLink::new(index, peer, region, number, self.limits.revoke_by));
        }
        Ok(())
    }

    /// One connection to each peer, in the domain of all block memory, with places for the messages that come.
    fn add_blocks(
        &mut self,
        own: Rank,
        domain: &Arc<ProtectionDomain>,
        inline_bytes_max: u32,
    ) -> Result<(), JoinError> {
        let message_bytes = u32::try_from(MESSAGE_BYTES).unwrap_or(u32::MAX);
        for peer in self.peers(own) {
            let pages = Pages::new(message_memory_bytes()).map(Arc::new);
            let pages = pages.map_err(|source| self.failed("take memory", source))?;
            let messages = Arc::new(self.register(domain, &pages, Access::LOCAL_WRITE)?);
            let shape = Shape {
                peer,
                purpose: Purpose::Blocks,
                region: Region::ROW,
                receives: MESSAGES_MAX,
                inline_bytes_max: inline_bytes_max.min(message_bytes),
            };
            self.add_link(domain, &shape, &messages, CardLink::default())?;
        }
        Ok(())
    }

    fn add_link(
        &mut self,
        domain: &Arc<ProtectionDomain>,
        shape: &Shape,
        source: &Arc<MemoryRegion>,
        card: CardLink,
    ) -> Result<usize, JoinError> {
        let failed = |source| JoinError::from_device(self.device, "make a queue pair", source);
        let limits = QueuePairLimits {
            sends_max: self.limits.depth,
            receives_max: shape.receives,
            inline_bytes_max: self.limits.inline_bytes_max.unwrap_or(u32::MAX).min(shape.inline_bytes_max),
        };
        let queue_pair = QueuePair::new(domain, &self.completions, limits).map_err(failed)?;
        let first_packet = random().map_err(failed)? & 0x00ff_ffff;
        let index = self.links.len();
        let queue = SendQueue::new(Depths {
            depth: self.limits.depth,
            reserve: RESERVE,
            signal_every: self.limits.signal_every,
        });
        self.cards.push(CardLink { number: queue_pair.number(), first_packet, ..card });
        let mut link = Link::new(LinkParts {
            queue_pair,
            queue,
            index: u16::try_from(index).map_err(|_| self.too_many("connections", u32::from(u16::MAX)))?,
            peer: shape.peer,
            purpose: shape.purpose,
            region: shape.region,
            times: SendTimes {
                timeout_exponent: self.loss_times.timeout_exponent,
                retries: self.loss_times.retries,
                first_packet,
                reads_max: self.reads_max,
            },
            source: Arc::clone(source),
            inline_bytes_max: self.limits.inline_bytes_max,
        });
        let staged = link.stage_guards(domain, self.limits.depth);
        staged.map_err(|source| JoinError::from_registration(self.device, 64, source))?;
        self.links.push(link);
        Ok(index)
    }

    fn too_many(&self, what: &'static str, most: u32) -> JoinError {
        JoinError::TooMany { device: self.device.to_owned(), what, most, needed: most.saturating_add(1) }
    }

    /// What a peer is told.
    pub(super) fn card_for(&self, peer: Rank) -> Card {
        let of_peer = self.links.iter().zip(&self.cards).filter(|(link, _)| link.peer == peer);
        Card {
            gid: self.choice.gid.address,
            lid: self.choice.lid,
            mtu_bytes: self.choice.mtu_bytes,
            reads_max: self.reads_max,
            links: of_peer.map(|(_, card)| *card).collect(),
        }
    }

    /// Connects to everybody, by what they told: their cards by rank.
    pub(super) fn connect(
        &mut self,
        cards: &[Vec<u8>],
        members: &[NodeId],
        own: Rank,
    ) -> Result<(), JoinError> {
        for peer in self.peers(own) {
            let wrong = || JoinError::WrongMemory { peer: members[peer.index()] };
            let count = self.links.iter().filter(|link| link.peer == peer).count();
            let card = Card::decode(&cards[peer.index()], count).ok_or_else(wrong)?;
            let own_bytes = self.rows.row().bytes();
            let mut told = card.links.iter();
            for index in 0..self.links.len() {
                if self.links[index].peer != peer {
                    continue;
                }
                let theirs = told.next().ok_or_else(wrong)?;
                self.connect_link(index, &card, theirs, own_bytes).map_err(|failure| match failure {
                    Failure::WrongMemory => wrong(),
                    Failure::Device(source) => JoinError::NoWay {
                        device: self.device.to_owned(),
                        peer: members[peer.index()],
                        own: self.choice.gid.address,
                        theirs: card.gid,
                        source,
                    },
                })?;
            }
        }
        Ok(())
    }

    fn connect_link(
        &mut self,
        index: usize,
        card: &Card,
        theirs: &CardLink,
        own_bytes: usize,
    ) -> Result<(), Failure> {
        let link = &mut self.links[index];
        let bytes = usize::try_from(theirs.bytes).map_err(|_| Failure::WrongMemory)?;
        let (expected, access, receives) = match link.purpose {
            Purpose::Row => (own_bytes, Access::REMOTE_WRITE, u64::from(notices(self.region_count))),
            Purpose::Region(_) => (link.own_bytes(), Access::REMOTE_READ, 0),
            Purpose::Blocks => (0, Access::REMOTE_WRITE, u64::from(MESSAGES_MAX)),
        };
        if bytes != expected {
            return Err(Failure::WrongMemory);
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
        link.connect(far, access, receives, 0).map_err(Failure::Device)
    }
}

/// What cannot be: regions are registered after their memory was taken.
const MISSING: JoinError = JoinError::BadOptions("a region without memory");

enum Failure {
    WrongMemory,
    Device(std::io::Error),
}

struct Shape {
    peer: Rank,
    purpose: Purpose,
    region: Region,
    receives: u32,
    inline_bytes_max: u32,
}

/// Receives for notices on a row's connection: of each kind one may be under way, and of each region one.
fn notices(regions: usize) -> u32 {
    NOTICES_MAX + 2 * u32::try_from(regions).unwrap_or(0)
}

/// The memory that a peer is told of.
fn lend(memory: &MemoryRegion) -> CardLink {
    CardLink {
        address: memory.address(),
        key: memory.remote_key(),
        bytes: u64::try_from(memory.bytes()).unwrap_or(u64::MAX),
        ..CardLink::default()
    }
}

/// How deep queues can be, and how many completions can be there at once.
fn size(device: &Device, options: &JoinOptions<'_>) -> Result<(Limits, u32), JoinError> {
    let count = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    let peers = count(options.mesh.members.len()).saturating_sub(1);
    let regions = count(options.regions.len());
    let blocks = u32::from(options.blocks);
    let links = peers.saturating_mul(1 + regions + blocks);
    let receives = notices(options.regions.len()) + blocks * MESSAGES_MAX;
    let receives = peers.saturating_mul(receives);
    let most = device.limits.completion_entries_max;
    let share = most.saturating_sub(receives) / links.max(1);
    let limits = options.limits.within(device.limits.work_requests_max.min(share));
    let entries = links.saturating_mul(limits.depth).saturating_add(receives).max(1);
    if entries > most {
        let (device, what) = (device.name.clone(), "completions");
        return Err(JoinError::TooMany { device, what, most, needed: entries });
    }
    if links > device.limits.queue_pairs_max {
        let (device, what, most) = (device.name.clone(), "queue pairs", device.limits.queue_pairs_max);
        return Err(JoinError::TooMany { device, what, most, needed: links });
    }
    Ok((limits, entries))
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

fn random() -> std::io::Result<u32> {
    let mut bytes = [0; 4];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(u32::from_ne_bytes(bytes))
}
