//! The creation of a view: its memory, its connections, and their sizes.

use std::sync::Mutex;

use tramontane_core::fabric::Region;
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::layout::RelayedRing;

use super::build::{Builder, ConnectionShape};
use super::handshake::row_receives;
use super::{JoinError, RegionMemory, Rows, Site, ViewCost, regions};
use crate::fabric::{MESSAGE_MEMORY_BYTES, Parts, Purpose, Verbs};
use crate::protocol::blocks::{MESSAGE_BYTES, MESSAGES_MAX};
use crate::settings::Limits;

/// Number of reads in flight to one peer that are requested from the device.
const READS_MAX: u32 = 4;

/// The memory and connections that a view needs.
#[derive(Clone, Copy, Debug)]
pub struct ViewOptions<'v> {
    /// The view to create.
    pub view: ViewId,
    /// This member's rank in the view.
    pub own: Rank,
    /// The view's members, in rank order.
    pub members: &'v [NodeId],
    /// The size of each member's row, by rank.
    pub row_bytes: &'v [usize],
    /// The rings that members pass on to each other; the same at all members (REL-1).
    pub relayed: &'v [RelayedRing],
    /// Regions whose owners decide which peers may write; at most
    /// [`REGIONS_MAX`](super::REGIONS_MAX). All members have the same regions in the same order;
    /// each owner chooses the length.
    pub regions: &'v [RegionMemory],
    /// Whether the view carries blocks, which takes a second connection with each peer. It must be
    /// the same at all members.
    pub blocks: bool,
}

impl ViewOptions<'_> {
    fn check(&self) -> Result<(), JoinError> {
        let Self { members, row_bytes, regions, .. } = self;
        if row_bytes.len() != members.len() {
            return Err(JoinError::BadOptions("give one row size per member"));
        }
        regions::check(regions)
    }
}

impl Site {
    /// Creates a view's memory, zeroed, and its connections, which lead nowhere yet. Each peer must
    /// receive its card ([`Verbs::card_for`]), and is connected when its own card has arrived
    /// ([`Verbs::connect`], [`Verbs::admit`]). The fabric has this one view; open it with
    /// [`Verbs::rows`].
    ///
    /// # Errors
    /// Fails with [`JoinError`], in which case nothing stays registered. With regions, this may
    /// also be [`JoinError::NotDenied`], which a trial finds once per site.
    pub fn view(&self, options: &ViewOptions<'_>) -> Result<Verbs, JoinError> {
        options.check()?;
        if !options.regions.is_empty() {
            self.ensure_denial()?;
        }
        let builder = Builder::new(self, options)?;
        let mut verbs = Verbs::new(Parts {
            view: options.view,
            links: builder.links(),
            regions: builder.region_links(),
            handshake: builder.handshake(self.choice().clone()),
            block_store: self.block_store.clone(),
            capabilities: self.capabilities(),
            write_order: self.write_order,
            context: self.context.clone(),
            place: self.workers.place(),
            builder,
        });
        verbs.take_failure().map_or(Ok(verbs), Err)
    }
}

impl Builder {
    /// Checks whether the view can be created, and allocates its rows. Does not call the device.
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
            relayed: options.relayed.to_vec(),
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
}

/// Lists all connections in order: those of the rows, of each region, and of the blocks.
fn shapes(options: &ViewOptions<'_>, rows: &Rows, site: &Site) -> Vec<ConnectionShape> {
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
        ConnectionShape {
            index,
            peer,
            place,
            purpose,
            region,
            receives,
            own_bytes,
            inline_bytes_max,
        }
    };
    (0..=u16::MAX).zip(all).map(shape).collect()
}

/// Returns the possible depth of the queues, and the maximum number of completions that can be
/// outstanding at once.
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
