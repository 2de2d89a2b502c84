//! Memory and connections of one member in one view, as they come into being.

use std::sync::Arc;

use rustix::rand::{GetRandomFlags, getrandom};
use tramontane_core::fabric::{Region, ViewRows as _};
use tramontane_core::ids::{Rank, ViewId};

use super::handshake::{Handshake, notices};
use super::{JoinError, Rows, Site, ViewOptions};
use crate::fabric::{Link, LinkParts, Parts, Purpose, RegionLink, Verbs, message_memory_bytes};
use crate::ffi::{
    Access, CompletionQueue, MemoryRegion, Pages, ProtectionDomain, QueuePair, QueuePairLimits,
    SendTimes,
};
use crate::protocol::blocks::{MESSAGE_BYTES, MESSAGES_MAX};
use crate::protocol::{CardLink, Depths, SendQueue};
use crate::settings::{Limits, RESERVE};

/// Reads of one peer at once that are asked for.
const READS_MAX: u32 = 4;

/// One view's memory and connections at one member: everything but the way to the others.
pub(super) struct Builder<'s> {
    pub(super) site: &'s Site,
    pub(super) view: ViewId,
    pub(super) completions: Arc<CompletionQueue>,
    pub(super) rows: Rows,
    pub(super) links: Vec<Link>,
    pub(super) regions: Vec<RegionLink>,
    pub(super) registered: Vec<MemoryRegion>,
    pub(super) limits: Limits,
    pub(super) handshake: Handshake,
}

impl<'s> Builder<'s> {
    /// Registers the memory, and makes the queue pairs.
    pub(super) fn new(site: &'s Site, options: &ViewOptions<'_>) -> Result<Self, JoinError> {
        options.check()?;
        let failed = |action| move |source| site.failed(action, source);
        let ViewOptions { view, own, members, .. } = *options;
        let rows = Rows::new(own, members, options.row_bytes, options.regions)
            .map_err(failed("take memory"))?;
        let (limits, entries) = size(site, options)?;
        let completions = CompletionQueue::new(site.context(), entries)
            .map(Arc::new)
            .map_err(failed("make a completion queue"))?;
        let reads_max = u8::try_from(site.device().limits.reads_max.min(READS_MAX)).unwrap_or(1);
        let own_bytes = rows.row().bytes();
        let mut builder = Self {
            site,
            view,
            completions,
            rows,
            links: Vec::new(),
            regions: Vec::new(),
            registered: Vec::new(),
            limits,
            handshake: Handshake::new(
                site.choice().clone(),
                reads_max,
                options.regions.len(),
                own_bytes,
            ),
        };
        let inline_bytes_max = site.device().limits.inline_bytes_max;
        builder.add_rows(own, inline_bytes_max)?;
        for (number, memory) in (0..).zip(options.regions) {
            builder.add_region(own, memory.region, number, inline_bytes_max)?;
        }
        if options.blocks {
            builder.add_blocks(own, inline_bytes_max)?;
        }
        Ok(builder)
    }

    /// The fabric over what was made.
    pub(super) fn into_fabric(self) -> Verbs {
        let Self { site, view, completions, rows, links, regions, registered, handshake, .. } =
            self;
        Verbs::new(Parts {
            view,
            links,
            regions,
            registered,
            rows,
            handshake,
            block_store: site.block_store().clone(),
            capabilities: site.capabilities(),
            completions,
            context: Arc::clone(site.context()),
        })
    }

    fn peers(&self, own: Rank) -> impl Iterator<Item = Rank> + use<> {
        (0..).map(Rank).take(self.rows.members().len()).filter(move |rank| *rank != own)
    }

    fn register(
        &self,
        domain: &Arc<ProtectionDomain>,
        pages: &Arc<crate::ffi::Pages>,
        access: Access,
    ) -> Result<MemoryRegion, JoinError> {
        MemoryRegion::new(domain, pages, pages.bytes(), access).map_err(|source| {
            JoinError::from_registration(&self.site.device().name, pages.bytes(), source)
        })
    }

    /// One connection for the own row to each peer, and each peer's copy registered for it alone.
    fn add_rows(&mut self, own: Rank, inline_bytes_max: u32) -> Result<(), JoinError> {
        let domain = self.site.domain()?;
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
                receives: notices(self.handshake.regions()),
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
        let domain = self.site.domain()?;
        let pages = Arc::clone(self.rows.region_pages(region).ok_or(MISSING)?);
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ;
        let memory = Arc::new(self.register(&domain, &pages, access)?);
        for peer in self.peers(own) {
            let shape = Shape {
                peer,
                purpose: Purpose::Region(number),
                region,
                receives: 1,
                inline_bytes_max,
            };
            let index = self.add_link(&domain, &shape, &memory, lend(&memory))?;
            self.regions.push(RegionLink::new(index, peer, region, number, self.limits.revoke_by));
        }
        Ok(())
    }

    /// One connection to each peer, in the domain of all block memory, with places for the messages
    /// that come.
    fn add_blocks(&mut self, own: Rank, inline_bytes_max: u32) -> Result<(), JoinError> {
        let domain = self.site.block_store().domain();
        let message_bytes = u32::try_from(MESSAGE_BYTES).unwrap_or(u32::MAX);
        for peer in self.peers(own) {
            let pages = Pages::new(message_memory_bytes()).map(Arc::new);
            let pages = pages.map_err(|source| self.site.failed("take memory", source))?;
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
        let failed = |source| self.site.failed("make a queue pair", source);
        let limits = QueuePairLimits {
            sends_max: self.limits.depth,
            receives_max: shape.receives,
            inline_bytes_max: self
                .limits
                .inline_bytes_max
                .unwrap_or(u32::MAX)
                .min(shape.inline_bytes_max),
        };
        let queue_pair = QueuePair::new(domain, &self.completions, limits).map_err(failed)?;
        let first_packet = random().map_err(failed)? & 0x00ff_ffff;
        let index = self.links.len();
        let queue = SendQueue::new(Depths {
            depth: self.limits.depth,
            reserve: RESERVE,
            signal_every: self.limits.signal_every,
        });
        self.handshake.add(CardLink { number: queue_pair.number(), first_packet, ..card });
        let mut link = Link::new(LinkParts {
            queue_pair,
            queue,
            index: u16::try_from(index)
                .map_err(|_| self.too_many("connections", u32::from(u16::MAX)))?,
            peer: shape.peer,
            purpose: shape.purpose,
            region: shape.region,
            times: SendTimes {
                timeout_exponent: self.site.loss_times().timeout_exponent,
                retries: self.site.loss_times().retries,
                first_packet,
                reads_max: self.handshake.reads_max(),
            },
            source: Arc::clone(source),
            inline_bytes_max: self.limits.inline_bytes_max,
        });
        let staged = link.stage_guards(domain, self.limits.depth);
        staged
            .map_err(|source| JoinError::from_registration(&self.site.device().name, 64, source))?;
        self.links.push(link);
        Ok(index)
    }

    fn too_many(&self, what: &'static str, most: u32) -> JoinError {
        JoinError::TooMany {
            device: self.site.device().name.clone(),
            what,
            most,
            needed: most.saturating_add(1),
        }
    }
}

/// What cannot be: regions are registered after their memory was taken.
const MISSING: JoinError = JoinError::BadOptions("a region without memory");

struct Shape {
    peer: Rank,
    purpose: Purpose,
    region: Region,
    receives: u32,
    inline_bytes_max: u32,
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
fn size(site: &Site, options: &ViewOptions<'_>) -> Result<(Limits, u32), JoinError> {
    let device = site.device();
    let count = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    let peers = count(options.members.len()).saturating_sub(1);
    let regions = count(options.regions.len());
    let blocks = u32::from(options.blocks);
    let links = peers.saturating_mul(1 + regions + blocks);
    let receives = notices(options.regions.len()) + blocks * MESSAGES_MAX;
    let receives = peers.saturating_mul(receives);
    let most = device.limits.completion_entries_max;
    let share = most.saturating_sub(receives) / links.max(1);
    let limits = site.limits().within(device.limits.work_requests_max.min(share));
    let entries = links.saturating_mul(limits.depth).saturating_add(receives).max(1);
    if entries > most {
        let (device, what) = (device.name.clone(), "completions");
        return Err(JoinError::TooMany { device, what, most, needed: entries });
    }
    if links > device.limits.queue_pairs_max {
        let (device, what, most) =
            (device.name.clone(), "queue pairs", device.limits.queue_pairs_max);
        return Err(JoinError::TooMany { device, what, most, needed: links });
    }
    Ok((limits, entries))
}

fn random() -> std::io::Result<u32> {
    let mut bytes = [0; 4];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(u32::from_ne_bytes(bytes))
}
