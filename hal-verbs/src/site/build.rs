//! Creation of one member's memory and connections in one view.
//!
//! A view is made in parts, each a job of [`commands`](crate::commands): first the objects that all
//! its connections share, then those of each peer. One registration serves all messages of the
//! view. Staging memory, for guards and messages that do not go inline, is registered once per
//! protection domain, and only if a connection needs it.

use std::sync::{Arc, Mutex, PoisonError};

use rustix::rand::{GetRandomFlags, getrandom};
use tramontane_core::fabric::{Region, ViewRows as _};
use tramontane_core::ids::Rank;

use super::cost::send_ring_bytes;
use super::handshake::{Handshake, notices, row_receives};
use super::{JoinError, RegionMemory, Rows, Site, ViewCost, ViewOptions};
use crate::adapter::{
    Access, CompletionQueue, Context, MemoryRegion, Pages, ProtectionDomain, QueuePair,
    QueuePairLimits, SendTimes,
};
use crate::fabric::{
    GUARD_BYTES_MAX, Link, MESSAGE_MEMORY_BYTES, NearEnd, NearParts, OtherMemory, OwnRegion,
    Purpose, RegionLink, Staging, Updates,
};
use crate::protocol::blocks::{MESSAGE_BYTES, MESSAGES_MAX};
use crate::protocol::{CardLink, Depths, SendQueue};
use crate::settings::{Limits, RESERVE, WriteOrder};
use crate::timing::LossTimes;

/// Reads in flight to one peer that are requested.
const READS_MAX: u32 = 4;

/// The maker of a view's memory and connections at one member; connecting to peers is not part of
/// it.
#[derive(Debug)]
pub(crate) struct Builder {
    context: Context,
    device: String,
    /// The domain of all block memory.
    block_domain: ProtectionDomain,
    rows: Rows,
    shapes: Vec<Shape>,
    regions: Vec<Region>,
    has_blocks: bool,
    completions_max: u32,
    completion_vector: u32,
    limits: Limits,
    write_order: WriteOrder,
    loss_times: LossTimes,
    reads_max: u8,
    /// The objects made so far.
    cost: Mutex<ViewCost>,
}

/// The objects that all connections of a view share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) completions: CompletionQueue,
    rows: Domain,
    /// By number.
    regions: Vec<Domain>,
    blocks: Option<Domain>,
}

impl Shared {
    /// Returns the sources of keys to this member's regions, in the order of the regions' numbers.
    pub(crate) fn own_regions(&self) -> Vec<OwnRegion> {
        let own = |region: &Domain| OwnRegion {
            domain: region.domain.clone(),
            memory: Arc::clone(&region.source),
        };
        self.regions.iter().map(own).collect()
    }
}

/// A protection domain with the objects that its connections share.
#[derive(Debug)]
struct Domain {
    domain: ProtectionDomain,
    /// The source memory: this member's row, a region, or the message slots.
    source: Arc<MemoryRegion>,
    /// Other memory that is sent from or read into; in a region's domain, this member's row and the
    /// other regions.
    others: Arc<[OtherMemory]>,
    /// Memory for what does not go inline, once a connection needs it.
    staging: Mutex<Option<Arc<MemoryRegion>>>,
}

/// One peer's part of a view.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// This end of each connection, in the order of the connections.
    pub(crate) ends: Vec<NearEnd>,
    /// The copy of the peer's row.
    pub(crate) copy: MemoryRegion,
}

/// The parameters of a connection that is not made yet.
#[derive(Clone, Copy, Debug)]
struct Shape {
    index: u16,
    peer: Rank,
    /// The peer's index among the peers.
    place: usize,
    purpose: Purpose,
    region: Region,
    receives: u32,
    /// Bytes of the source that may be written from.
    own_bytes: usize,
    /// Bytes to send inline, if the queue pair takes that many.
    inline_bytes_max: u32,
}

impl Builder {
    /// Checks whether the view can be made, and allocates its rows. Does not call the device.
    pub(super) fn new(site: &Site, options: &ViewOptions<'_>) -> Result<Self, JoinError> {
        let ViewOptions { view, own, members, .. } = *options;
        let (limits, completions_max) = size(site, options)?;
        let rows = Rows::new(own, members, options.row_bytes, options.regions, site.page_size())
            .map_err(|source| site.failed("take memory", source))?;
        let device = site.device();
        let node = members.get(own.index()).copied().unwrap_or_default();
        Ok(Self {
            context: site.context().clone(),
            device: device.name.clone(),
            block_domain: site.block_store().domain(),
            shapes: shapes(options, &rows, site),
            rows,
            regions: options.regions.iter().map(RegionMemory::region).collect(),
            has_blocks: options.blocks,
            completions_max,
            completion_vector: limits.vector_of(node, view, device.completion_vectors),
            limits,
            write_order: site.write_order(),
            loss_times: *site.loss_times(),
            reads_max: u8::try_from(device.limits.reads_max.min(READS_MAX)).unwrap_or(1),
            cost: Mutex::new(ViewCost {
                completion_entries: completions_max,
                ..ViewCost::default()
            }),
        })
    }

    pub(crate) const fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Returns the objects made so far.
    pub(crate) fn cost(&self) -> ViewCost {
        *self.cost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, add: impl FnOnce(&mut ViewCost)) {
        add(&mut self.cost.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn count_registration(&self, bytes: usize) {
        self.count(|cost| {
            cost.registrations += 1;
            cost.registered_bytes += u64::try_from(bytes).unwrap_or(0);
        });
    }

    /// Returns this end of the handshakes with all peers.
    pub(super) fn handshake(&self, site: &Site) -> Handshake {
        let (own_bytes, regions) = (self.rows.row().bytes(), self.regions.len());
        let choice = site.choice().clone();
        Handshake::new(choice, self.reads_max, regions, own_bytes, self.write_order)
    }

    /// Returns the connections, without their local ends.
    pub(super) fn links(&self) -> Vec<Link> {
        let link = |shape: &Shape| {
            let queue = SendQueue::new(Depths {
                depth: self.limits.depth,
                reserve: RESERVE,
                signal_every: self.limits.signal_every,
            });
            Link::new(queue, shape.index, shape.peer, shape.purpose, shape.region)
        };
        self.shapes.iter().map(link).collect()
    }

    /// Returns those of the connections that belong to regions.
    pub(super) fn region_links(&self) -> Vec<RegionLink> {
        let region_link = |shape: &Shape| match shape.purpose {
            Purpose::Region(number) => {
                let index = usize::from(shape.index);
                Some(RegionLink::new(index, shape.peer, shape.region, number))
            }
            Purpose::Row | Purpose::Blocks => None,
        };
        self.shapes.iter().filter_map(region_link).collect()
    }

    /// Makes the objects that all connections share.
    pub(crate) fn start(&self) -> Result<Shared, JoinError> {
        let (entries, vector) = (self.completions_max, self.completion_vector);
        let completions = CompletionQueue::on_vector(&self.context, entries, vector)
            .map_err(|source| self.failed("make a completion queue", source))?;
        let own = self.rows.pages(self.rows.own());
        let rows = self.domain(self.new_domain()?, own, Access::empty())?;
        let regions = self.regions.iter().map(|region| self.region_domain(*region));
        let regions = regions.collect::<Result<_, _>>()?;
        let blocks = if self.has_blocks { Some(self.messages()?) } else { None };
        Ok(Shared { completions, rows, regions, blocks })
    }

    /// Makes the domain of a region's connections.
    fn region_domain(&self, region: Region) -> Result<Domain, JoinError> {
        let pages = self.rows.region_pages(region).ok_or(MISSING)?;
        // The key that all peers have only reads; to write, each peer receives its own key.
        let access = Access::LOCAL_WRITE | Access::REMOTE_READ;
        let made = self.domain(self.new_domain()?, pages, access)?;
        let own = self.rows.own();
        let row = self.register(&made.domain, self.rows.pages(own), Access::empty())?;
        let mut others =
            vec![OtherMemory { region: Region::ROW, bytes: self.rows.row_bytes(own), memory: row }];
        for other in self.regions.iter().filter(|other| **other != region) {
            let pages = self.rows.region_pages(*other).ok_or(MISSING)?;
            let memory = self.register(&made.domain, pages, Access::LOCAL_WRITE)?;
            others.push(OtherMemory { region: *other, bytes: memory.bytes(), memory });
        }
        Ok(Domain { others: others.into(), ..made })
    }

    /// Makes the slots for messages about blocks, in the domain of all block memory.
    fn messages(&self) -> Result<Domain, JoinError> {
        let pages = Pages::new(self.peers() * MESSAGE_MEMORY_BYTES).map(Arc::new);
        let pages = pages.map_err(|source| self.failed("take memory", source))?;
        self.domain(self.block_domain.clone(), &pages, Access::LOCAL_WRITE)
    }

    /// Makes one peer's part: registers the copy of its row for that peer only, and makes its queue
    /// pairs.
    pub(crate) fn prepare(&self, shared: &Shared, peer: Rank) -> Result<Prepared, JoinError> {
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        let copy = self.register(&shared.rows.domain, self.rows.pages(peer), access)?;
        let of_peer = self.shapes.iter().filter(|shape| shape.peer == peer);
        let ends = of_peer.map(|shape| self.near_end(shared, shape, &copy));
        let ends = ends.collect::<Result<_, _>>()?;
        Ok(Prepared { ends, copy })
    }

    fn near_end(
        &self,
        shared: &Shared,
        shape: &Shape,
        copy: &MemoryRegion,
    ) -> Result<NearEnd, JoinError> {
        let (domain, lent) = match shape.purpose {
            Purpose::Row => (&shared.rows, lend(copy, self.rows.row_bytes(shape.peer))),
            Purpose::Region(number) => {
                let region = shared.regions.get(usize::from(number)).ok_or(MISSING)?;
                (region, lend(&region.source, region.source.bytes()))
            }
            Purpose::Blocks => (shared.blocks.as_ref().ok_or(MISSING)?, CardLink::default()),
        };
        let failed = |source| self.failed("make a queue pair", source);
        let limits = QueuePairLimits {
            sends_max: self.limits.depth,
            receives_max: shape.receives,
            inline_bytes_max: shape.inline_bytes_max,
        };
        let queue_pair =
            QueuePair::new(&domain.domain, &shared.completions, limits).map_err(failed)?;
        let first_packet = random().map_err(failed)? & 0x00ff_ffff;
        let is_for_blocks = shape.purpose == Purpose::Blocks;
        let mut near = NearEnd::new(NearParts {
            index: shape.index,
            purpose: shape.purpose,
            times: SendTimes {
                timeout_exponent: self.loss_times.timeout_exponent,
                retries: self.loss_times.retries,
                first_packet,
                reads_max: self.reads_max,
            },
            card: CardLink { number: queue_pair.number(), first_packet, ..lent },
            queue_pair,
            source: Arc::clone(&domain.source),
            others: Arc::clone(&domain.others),
            own_bytes: shape.own_bytes,
            messages: if is_for_blocks { shape.place * MESSAGE_MEMORY_BYTES } else { 0 },
            inline_bytes_max: shape.inline_bytes_max,
        });
        self.count(|cost| {
            cost.queue_pairs += 1;
            cost.send_ring_bytes += send_ring_bytes(self.limits.depth, near.granted_inline_bytes());
        });
        if self.write_order == WriteOrder::ByUpdates && shape.purpose == Purpose::Row {
            let updates = Updates::new(&domain.domain, notices(self.regions.len()));
            let updates = updates.map_err(|source| {
                JoinError::from_registration(&self.device, GUARD_BYTES_MAX, source)
            })?;
            updates.registered().into_iter().for_each(|bytes| self.count_registration(bytes));
            near.update_with(updates);
        } else if near.needs_staging(if is_for_blocks { MESSAGE_BYTES } else { GUARD_BYTES_MAX }) {
            near.stage_in(Staging {
                memory: self.staging(domain)?,
                offset: shape.place * self.staging_bytes(),
            });
        }
        Ok(near)
    }

    /// Returns the domain's staging memory, and registers it on first use.
    fn staging(&self, domain: &Domain) -> Result<Arc<MemoryRegion>, JoinError> {
        let mut staging = domain.staging.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(memory) = &*staging {
            return Ok(Arc::clone(memory));
        }
        let pages = Pages::new(self.peers() * self.staging_bytes()).map(Arc::new);
        let pages = pages.map_err(|source| self.failed("take memory", source))?;
        let memory = Arc::new(self.register(&domain.domain, &pages, Access::empty())?);
        Ok(Arc::clone(staging.insert(memory)))
    }

    /// Returns the most bytes that one connection stages.
    fn staging_bytes(&self) -> usize {
        usize::try_from(self.limits.depth).unwrap_or(0) * GUARD_BYTES_MAX
    }

    fn peers(&self) -> usize {
        self.rows.members().len().saturating_sub(1)
    }

    fn new_domain(&self) -> Result<ProtectionDomain, JoinError> {
        let domain = ProtectionDomain::new(&self.context);
        domain.map_err(|source| self.failed("make a protection domain", source))
    }

    fn domain(
        &self,
        domain: ProtectionDomain,
        source: &Arc<Pages>,
        access: Access,
    ) -> Result<Domain, JoinError> {
        let source = Arc::new(self.register(&domain, source, access)?);
        Ok(Domain { domain, source, others: Arc::default(), staging: Mutex::default() })
    }

    fn register(
        &self,
        domain: &ProtectionDomain,
        pages: &Arc<Pages>,
        access: Access,
    ) -> Result<MemoryRegion, JoinError> {
        let region = MemoryRegion::new(domain, pages, pages.bytes(), access)
            .map_err(|source| JoinError::from_registration(&self.device, pages.bytes(), source))?;
        self.count_registration(pages.bytes());
        Ok(region)
    }

    fn failed(&self, action: &'static str, source: std::io::Error) -> JoinError {
        JoinError::from_device(&self.device, action, source)
    }
}

/// Cannot happen: regions and blocks are made before their connections.
const MISSING: JoinError = JoinError::BadOptions("a region without memory");

/// Lists all connections in order: the rows', each region's, the blocks'.
fn shapes(options: &ViewOptions<'_>, rows: &Rows, site: &Site) -> Vec<Shape> {
    let inline_bytes_max = site.inline_bytes_max();
    let receives = row_receives(options.regions.len(), site.write_order());
    let own_bytes = rows.row_bytes(options.own);
    let row = (Purpose::Row, Region::ROW, receives, own_bytes, inline_bytes_max);
    let regions = (0..).zip(options.regions).map(|(number, memory)| {
        let bytes = memory.pages().bytes();
        (Purpose::Region(number), memory.region(), 1, bytes, inline_bytes_max)
    });
    let message_bytes = u32::try_from(MESSAGE_BYTES).unwrap_or(u32::MAX);
    let blocks = options.blocks.then_some((
        Purpose::Blocks,
        Region::ROW,
        MESSAGES_MAX,
        MESSAGE_MEMORY_BYTES,
        inline_bytes_max.min(message_bytes),
    ));
    let kinds = std::iter::once(row).chain(regions).chain(blocks);
    let peers = || {
        let ranks = (0..).map(Rank).take(options.members.len());
        ranks.filter(|rank| *rank != options.own).enumerate()
    };
    let all = kinds.flat_map(|kind| peers().map(move |peer| (kind, peer)));
    let shape = |(index, (kind, (place, peer)))| {
        let (purpose, region, receives, own_bytes, inline_bytes_max) = kind;
        Shape { index, peer, place, purpose, region, receives, own_bytes, inline_bytes_max }
    };
    (0..=u16::MAX).zip(all).map(shape).collect()
}

/// Describes to a peer the first `bytes` of this memory.
fn lend(memory: &MemoryRegion, bytes: usize) -> CardLink {
    CardLink {
        address: memory.address(),
        key: memory.remote_key(),
        bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
        ..CardLink::default()
    }
}

/// Returns how deep the queues can be, and how many completions can be outstanding at once.
fn size(site: &Site, options: &ViewOptions<'_>) -> Result<(Limits, u32), JoinError> {
    let device = site.device();
    let count = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    let peers = count(options.members.len()).saturating_sub(1);
    let regions = count(options.regions.len());
    let blocks = u32::from(options.blocks);
    let links = peers.saturating_mul(1 + regions + blocks);
    let receives = row_receives(options.regions.len(), site.write_order()) + blocks * MESSAGES_MAX;
    let receives = peers.saturating_mul(receives);
    let most = device.limits.completion_entries_max;
    let share = most.saturating_sub(receives) / links.max(1);
    let limits = site.limits().within(device.limits.work_requests_max.min(share));
    let entries = links.saturating_mul(limits.depth).saturating_add(receives).max(1);
    if entries > most {
        let (device, what) = (device.name.clone(), "completions");
        return Err(JoinError::TooMany { device, what, most, needed: entries });
    }
    // Request ids have 16 bits for the connection's number.
    let queue_pairs_max = device.limits.queue_pairs_max.min(u32::from(u16::MAX));
    if links > queue_pairs_max {
        let (device, what, most) = (device.name.clone(), "queue pairs", queue_pairs_max);
        return Err(JoinError::TooMany { device, what, most, needed: links });
    }
    Ok((limits, entries))
}

fn random() -> std::io::Result<u32> {
    let mut bytes = [0; 4];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(u32::from_ne_bytes(bytes))
}
