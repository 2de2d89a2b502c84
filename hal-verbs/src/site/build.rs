//! Creation of one member's memory and connections in one view.
//!
//! The objects of a view are created in jobs of [`commands`](crate::commands): first the objects
//! that all its connections share, then those for each peer. One registration serves all messages
//! of the view. Staging memory, for guards and messages that are not sent inline, is registered
//! once per protection domain, and only if a connection needs it.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::rand::{GetRandomFlags, getrandom};
use tramontane_core::fabric::{Region, ViewRows as _};
use tramontane_core::ids::Rank;
use tramontane_core::layout::RelayedRing;

use super::cost::send_ring_bytes;
use super::handshake::{Handshake, Relays, notices};
use super::{JoinError, Rows, ViewCost};
use crate::adapter::{
    Access, CompletionQueue, Context, MemoryRegion, Pages, ProtectionDomain, QueuePair,
    QueuePairLimits, SendTimes,
};
use crate::devices::Choice;
use crate::fabric::{
    GUARD_BYTES_MAX, Link, MESSAGE_MEMORY_BYTES, NearEnd, NearParts, OtherMemory, OwnRegion,
    Purpose, RegionLink, Staging, Updates,
};
use crate::protocol::blocks::MESSAGE_BYTES;
use crate::protocol::{CardLink, Depths, LentMemory, SendQueue};
use crate::settings::{Limits, RESERVE, WriteOrder};
use crate::timing::LossTimes;

/// Creates a view's memory and connections at one member, but does not connect them to peers.
#[derive(Debug)]
pub(crate) struct Builder {
    pub(super) context: Context,
    pub(super) device: String,
    /// The domain of all block memory.
    pub(super) block_domain: ProtectionDomain,
    pub(super) rows: Rows,
    pub(super) shapes: Vec<ConnectionShape>,
    /// The rings that the view's members pass on to each other.
    pub(super) relayed: Vec<RelayedRing>,
    pub(super) regions: Vec<Region>,
    pub(super) has_blocks: bool,
    pub(super) completions_max: u32,
    pub(super) completion_vector: u32,
    pub(super) limits: Limits,
    pub(super) write_order: WriteOrder,
    pub(super) loss_times: LossTimes,
    pub(super) reads_max: u8,
    /// The objects that have been created so far.
    pub(super) cost: Mutex<ViewCost>,
}

/// The objects that all connections of a view share.
#[derive(Debug)]
pub(crate) struct ViewObjects {
    pub(crate) completions: CompletionQueue,
    rows: Domain,
    /// The domains of the regions, by number.
    regions: Vec<Domain>,
    blocks: Option<Domain>,
}

impl ViewObjects {
    /// Returns this member's regions, for which keys are created, in the order of the regions'
    /// numbers.
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
    /// The memory from which the connections write: this member's row, a region, or the message
    /// slots.
    source: Arc<MemoryRegion>,
    /// Other memory that is sent from or read into. In a region's domain, this is the member's row
    /// and the other regions.
    others: Arc<[OtherMemory]>,
    /// Memory for bytes that are not sent inline, once a connection needs it.
    staging: Mutex<Option<Arc<MemoryRegion>>>,
}

/// The objects that a view needs for one peer.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// This end of each connection, in the order of the connections.
    pub(crate) ends: Vec<NearEnd>,
    /// The copy of the peer's row.
    pub(crate) copy: MemoryRegion,
    /// The rings in copies of third members' rows to which the peer passes on messages.
    pub(crate) relayed: Vec<MemoryRegion>,
}

/// The parameters of a connection that has not been created yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionShape {
    pub(super) index: u16,
    pub(super) peer: Rank,
    /// The peer's index among the peers.
    pub(super) place: usize,
    pub(super) purpose: Purpose,
    pub(super) region: Region,
    pub(super) receives: u32,
    /// Number of bytes of the source memory that may be written from.
    pub(super) own_bytes: usize,
    /// Number of bytes to send inline, if the queue pair supports that many.
    pub(super) inline_bytes_max: u32,
}

impl Builder {
    pub(crate) const fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Returns the objects that have been created so far.
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
    pub(super) fn handshake(&self, choice: Choice) -> Handshake {
        let (own_bytes, regions) = (self.rows.row().bytes(), self.regions.len());
        let relays = Relays::of(self.rows.own(), &self.relayed);
        Handshake::new(choice, self.reads_max, regions, own_bytes, self.write_order, relays)
    }

    /// Returns whether a peer may write a range of the copy of a third member's row.
    pub(crate) fn is_relay(&self, peer: Rank, owner: Rank, offset: usize, length: usize) -> bool {
        let mut here = self.relayed.iter().filter(|ring| ring.to == self.rows.own());
        here.any(|ring| ring.contains(peer, owner, offset, length))
    }

    /// Returns the connections, without their local ends.
    pub(super) fn links(&self) -> Vec<Link> {
        let link = |shape: &ConnectionShape| {
            let queue = SendQueue::new(Depths {
                depth: self.limits.depth,
                reserve: RESERVE,
                signal_every: self.limits.signal_every,
            });
            Link::new(queue, shape.index, shape.peer, shape.purpose, shape.region)
        };
        self.shapes.iter().map(link).collect()
    }

    /// Returns the connections that belong to regions.
    pub(super) fn region_links(&self) -> Vec<RegionLink> {
        let region_link = |shape: &ConnectionShape| match shape.purpose {
            Purpose::Region(number) => {
                let index = usize::from(shape.index);
                Some(RegionLink::new(index, shape.peer, shape.region, number))
            }
            Purpose::Row | Purpose::Blocks => None,
        };
        self.shapes.iter().filter_map(region_link).collect()
    }

    /// Creates the objects that all connections share.
    pub(crate) fn start(&self) -> Result<ViewObjects, JoinError> {
        let (entries, vector) = (self.completions_max, self.completion_vector);
        let completions = CompletionQueue::on_vector(&self.context, entries, vector)
            .map_err(|source| self.failed("create a completion queue", source))?;
        let own = self.rows.pages(self.rows.own());
        let rows = self.domain(self.new_domain()?, own, Access::empty())?;
        let regions = self.regions.iter().map(|region| self.region_domain(*region));
        let regions = regions.collect::<Result<_, _>>()?;
        let blocks = if self.has_blocks { Some(self.messages()?) } else { None };
        Ok(ViewObjects { completions, rows, regions, blocks })
    }

    /// Creates the domain of a region's connections.
    fn region_domain(&self, region: Region) -> Result<Domain, JoinError> {
        let pages = self.rows.region_pages(region).ok_or(MISSING)?;
        // The key that all peers have allows only reads. To write, each peer receives a key of its
        // own.
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

    /// Creates the slots for messages about blocks, in the domain of all block memory.
    fn messages(&self) -> Result<Domain, JoinError> {
        let pages = Pages::new(self.peers() * MESSAGE_MEMORY_BYTES).map(Arc::new);
        let pages = pages.map_err(|source| self.failed("take memory", source))?;
        self.domain(self.block_domain.clone(), &pages, Access::LOCAL_WRITE)
    }

    /// Creates the objects for one peer: registers the copy of its row for that peer only, and
    /// creates its queue pairs.
    pub(crate) fn prepare(&self, shared: &ViewObjects, peer: Rank) -> Result<Prepared, JoinError> {
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        let copy = self.register(&shared.rows.domain, self.rows.pages(peer), access)?;
        let is_here = |ring: &&RelayedRing| (ring.from, ring.to) == (peer, self.rows.own());
        let relayed = self.relayed.iter().filter(is_here).map(|ring| {
            let range = ring.offset..ring.offset.saturating_add(ring.bytes);
            self.register_range(&shared.rows.domain, self.rows.pages(ring.owner), range, access)
        });
        let relayed = relayed.collect::<Result<Vec<_>, _>>()?;
        let of_peer = self.shapes.iter().filter(|shape| shape.peer == peer);
        let ends = of_peer.map(|shape| self.near_end(shared, shape, &copy));
        let mut ends = ends.collect::<Result<Vec<_>, _>>()?;
        // The first connection is that of the row.
        if let Some(row) = ends.first_mut() {
            row.lend_rings(relayed.iter().map(|ring| lend(ring, ring.bytes())).collect());
        }
        Ok(Prepared { ends, copy, relayed })
    }

    fn near_end(
        &self,
        shared: &ViewObjects,
        shape: &ConnectionShape,
        copy: &MemoryRegion,
    ) -> Result<NearEnd, JoinError> {
        let (domain, memory) = match shape.purpose {
            Purpose::Row => (&shared.rows, lend(copy, self.rows.row_bytes(shape.peer))),
            Purpose::Region(number) => {
                let region = shared.regions.get(usize::from(number)).ok_or(MISSING)?;
                (region, lend(&region.source, region.source.bytes()))
            }
            Purpose::Blocks => (shared.blocks.as_ref().ok_or(MISSING)?, LentMemory::default()),
        };
        let failed = |source| self.failed("create a queue pair", source);
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
            card: CardLink { number: queue_pair.number(), first_packet, memory },
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

    /// Returns the maximum number of bytes that one connection stages.
    fn staging_bytes(&self) -> usize {
        usize::try_from(self.limits.depth).unwrap_or(0) * GUARD_BYTES_MAX
    }

    fn peers(&self) -> usize {
        self.rows.members().len().saturating_sub(1)
    }

    fn new_domain(&self) -> Result<ProtectionDomain, JoinError> {
        let domain = ProtectionDomain::new(&self.context);
        domain.map_err(|source| self.failed("create a protection domain", source))
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
        self.register_range(domain, pages, 0..pages.bytes(), access)
    }

    fn register_range(
        &self,
        domain: &ProtectionDomain,
        pages: &Arc<Pages>,
        range: Range<usize>,
        access: Access,
    ) -> Result<MemoryRegion, JoinError> {
        let bytes = range.len();
        let region = MemoryRegion::of_range(domain, pages, range, access)
            .map_err(|source| JoinError::from_registration(&self.device, bytes, source))?;
        self.count_registration(bytes);
        Ok(region)
    }

    fn failed(&self, action: &'static str, source: std::io::Error) -> JoinError {
        JoinError::from_device(&self.device, action, source)
    }
}

/// This cannot happen, because the memory of regions and blocks is created before their
/// connections.
const MISSING: JoinError = JoinError::BadOptions("a region without memory");

/// Describes to a peer the first `bytes` of this memory.
fn lend(memory: &MemoryRegion, bytes: usize) -> LentMemory {
    LentMemory {
        address: memory.address(),
        key: memory.remote_key(),
        bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
    }
}

fn random() -> std::io::Result<u32> {
    let mut bytes = [0; 4];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(u32::from_ne_bytes(bytes))
}
