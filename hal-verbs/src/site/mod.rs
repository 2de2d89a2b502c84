//! An opened device on which the memory and connections of any number of views are created.
//!
//! # Write access of peers
//! Each peer receives the address and the key of *its* copy only, which has a registration of its
//! own. A peer that passes on messages also receives those of the rings that it writes. All rows
//! share a protection domain, so their keys are not secret between members: a member that guesses
//! another's key could write to that row. Keys have 32 bits, and some devices assign them in a
//! pattern, so a few guesses may be enough, but each wrong guess breaks the connection on which it
//! is made. This isolates faults but does not stop attackers. Each region has its own domain; all
//! block memory of a member shares one.

mod build;
mod cost;
mod error;
mod events;
mod handshake;
mod regions;
mod renewal;
mod rights;
mod rows;
mod view;
mod write_order;

use std::net::IpAddr;
use std::sync::OnceLock;

use tramontane_core::fabric::{BlockLimits, Capabilities, Promises, WRITES_MAX};
use tramontane_core::layout::ROW_MAX;

pub(crate) use build::{Builder, Prepared, ViewObjects};
pub use cost::ViewCost;
pub use error::JoinError;
pub use events::DeviceNews;
pub(crate) use handshake::{
    Handshake, NOTICES_MAX, NewConnection, card_of, ring_places, route_to, target_of,
};
pub use regions::{REGIONS_MAX, RegionMemory};
pub use rows::Rows;
pub(crate) use rows::{PROBE_BYTES_MAX, probe_offset};
pub use view::ViewOptions;

use crate::adapter::{self, Context, PageSize, ProtectionDomain};
use crate::commands::Workers;
use crate::devices::ask::data_in_order;
use crate::devices::{Choice, Device, DeviceKind, Devices, Order, Wanted};
use crate::fabric::{BlockStore, GUARD_BYTES_MAX, block_limits};
use crate::settings::{Limits, WriteOrder};
use crate::timing::LossTimes;
use events::DeviceEvents;

/// Size, in bytes, of the headers of a write's packet: Ethernet, IP, UDP, BTH, RETH and both
/// checksums of RoCE v2. InfiniBand has fewer.
const WRITE_HEADER_BYTES: usize = 78;

/// The values that were chosen, granted and rounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The device, port, address and packet size.
    pub choice: Choice,
    /// The order that is guaranteed.
    pub order: Order,
    /// The party that keeps the order of writes.
    pub write_order: WriteOrder,
    /// The times after which a silent peer is given up.
    pub loss_times: LossTimes,
    /// Maximum number of requests in flight to one peer.
    pub depth: u32,
    /// Maximum number of requests from one signalled request to the next.
    pub signal_every: u32,
    /// Maximum number of bytes sent inline.
    pub inline_bytes_max: usize,
    /// Size, in bytes, of the send ring of each connection. Each view has one connection with each
    /// peer, and a second one if it carries blocks. The total cost of a view is reported when the
    /// view is created.
    pub send_ring_bytes: u64,
}

/// A device that one member has chosen and opened.
#[derive(Debug)]
pub struct Site {
    wanted: Wanted,
    /// The address at which the members meet.
    meeting: Option<IpAddr>,
    device: Device,
    choice: Choice,
    context: Context,
    events: DeviceEvents,
    limits: Limits,
    loss_times: LossTimes,
    order: Order,
    write_order: WriteOrder,
    block_store: BlockStore,
    /// Set once a trial has shown that the device denies writes with ended keys.
    denial: OnceLock<()>,
    workers: Workers,
}

impl Site {
    /// Chooses a device and opens it. Without constraints from the caller, it prefers the device
    /// that has the address at which the members meet, because that address reaches the others.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn open(
        wanted: &Wanted,
        limits: &Limits,
        meeting: Option<IpAddr>,
    ) -> Result<Self, JoinError> {
        let devices =
            Devices::within_reach(wanted.device.as_deref()).map_err(JoinError::from_discovery)?;
        let choice = devices.choose_for_meeting(wanted, meeting)?;
        let mut device = devices.devices[choice.device].clone();
        check_vector(&device, limits)?;
        let failed = |action| move |source| (action, source);
        let open = || {
            let context = adapter::open(&device.name).map_err(failed("open it"))?;
            let domain =
                ProtectionDomain::new(&context).map_err(failed("create a protection domain"))?;
            let size = if limits.huge_pages { PageSize::Huge } else { PageSize::Usual };
            Ok((context, BlockStore::new(domain, size)))
        };
        let opened: Result<_, (&'static str, std::io::Error)> = open();
        let (context, block_store) = opened
            .map_err(|(action, source)| JoinError::from_device(&device.name, action, source))?;
        if device.kind == DeviceKind::Adapter && limits.write_order.is_none() {
            // The device is queried on the chosen port.
            device.data_in_order = data_in_order(&context, &choice);
            device.order = device.kind.order(device.data_in_order);
        }
        let (order, write_order) = write_order::decide(&device, limits)?;
        Ok(Self {
            loss_times: LossTimes::at_least(
                limits.loss_time,
                device.kind,
                limits.timeout_exponent_floor,
            ),
            limits: limits.clone(),
            wanted: wanted.clone(),
            meeting,
            device,
            choice,
            context,
            events: DeviceEvents::default(),
            order,
            write_order,
            block_store,
            denial: OnceLock::new(),
            workers: Workers::at_once(),
        })
    }

    /// Starts the workers that run the kernel commands of views from then on.
    ///
    /// # Errors
    /// Fails if the system has no descriptor or thread left.
    pub(crate) fn start_workers(&mut self) -> std::io::Result<()> {
        self.workers = Workers::start(&self.context)?;
        Ok(())
    }

    /// Returns whether the device has failed and has not been reopened since.
    pub(crate) const fn has_failed(&self) -> bool {
        self.events.has_failed()
    }

    /// Returns whether the port in use has no link, according to the device's events.
    pub(crate) const fn is_link_down(&self) -> bool {
        self.events.is_link_down()
    }

    /// Returns whether the network interface in use has no link, according to the kernel. A
    /// software device ends its connections before it reports this.
    pub(crate) fn lacks_link(&self) -> bool {
        let Choice { port, gid, .. } = &self.choice;
        let ports = self.device.ports.iter().filter(|there| there.number == *port);
        let mut interfaces = ports.flat_map(|port| &port.interfaces);
        interfaces.any(|there| there.gids.contains(&gid.index) && there.lacks_link())
    }

    /// Returns the number of times that the port in use has lost its link.
    pub(crate) const fn link_losses(&self) -> u64 {
        self.events.link_losses()
    }

    pub(crate) const fn workers(&self) -> &Workers {
        &self.workers
    }

    /// Returns the values that were chosen, rounded and guaranteed.
    #[must_use]
    pub fn report(&self) -> Report {
        Report {
            choice: self.choice.clone(),
            order: self.order,
            write_order: self.write_order,
            loss_times: self.loss_times,
            depth: self.limits.depth,
            signal_every: self.limits.signal_every,
            inline_bytes_max: usize::try_from(self.inline_bytes_max()).unwrap_or(usize::MAX),
            send_ring_bytes: cost::send_ring_bytes(self.limits.depth, self.inline_bytes_max()),
        }
    }

    /// Returns the guarantees and limits of each view's fabric.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        let port = self.device.ports.iter().find(|port| port.number == self.choice.port);
        let most = port.map_or(0, |port| port.message_bytes_max);
        Capabilities {
            promises: promises(self.order),
            writes_max: WRITES_MAX,
            write_bytes_max: usize::try_from(most).unwrap_or(usize::MAX).min(ROW_MAX),
            guard_bytes_max: GUARD_BYTES_MAX,
            write_overhead_bytes: WRITE_HEADER_BYTES,
        }
    }

    /// Returns the block limits of each view.
    #[must_use]
    pub fn block_limits(&self) -> BlockLimits {
        block_limits(&self.capabilities())
    }

    /// Returns the allocator of block memory for all views.
    #[must_use]
    pub const fn block_store(&self) -> &BlockStore {
        &self.block_store
    }

    /// Returns the maximum number of bytes sent inline on each connection.
    fn inline_bytes_max(&self) -> u32 {
        self.limits.inline_bytes_within(self.device.limits.inline_bytes_max)
    }

    /// Returns the page size in which memory is allocated.
    const fn page_size(&self) -> PageSize {
        if self.limits.huge_pages { PageSize::Huge } else { PageSize::Usual }
    }

    const fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) const fn choice(&self) -> &Choice {
        &self.choice
    }

    pub(crate) const fn context(&self) -> &Context {
        &self.context
    }

    const fn limits(&self) -> &Limits {
        &self.limits
    }

    const fn write_order(&self) -> WriteOrder {
        self.write_order
    }

    pub(crate) const fn loss_times(&self) -> &LossTimes {
        &self.loss_times
    }

    /// Converts the error of a failed registration.
    pub(crate) fn registration_failed(&self, bytes: usize, source: std::io::Error) -> JoinError {
        JoinError::from_registration(&self.device.name, bytes, source)
    }

    /// Converts the error of a failed call.
    pub(crate) fn failed(&self, action: &'static str, source: std::io::Error) -> JoinError {
        JoinError::from_device(&self.device.name, action, source)
    }
}

/// Checks that the requested completion vector exists.
fn check_vector(device: &Device, limits: &Limits) -> Result<(), JoinError> {
    let vectors = device.completion_vectors;
    match limits.completion_vector {
        Some(wanted) if wanted >= vectors => {
            Err(JoinError::NoSuchVector { device: device.name.clone(), wanted, vectors })
        }
        _ => Ok(()),
    }
}

/// Converts an order into the fabric's promises.
fn promises(order: Order) -> Promises {
    let mut promises = Promises::RELAYS;
    promises.set(Promises::WRITE_ORDER, order.writes);
    promises.set(Promises::ADDRESS_ORDER, order.addresses);
    promises.set(Promises::COMPLETION_VISIBLE, order.visible_upon_completion);
    promises
}
