//! A device that was chosen and opened: where the memory and the connections of any number of views
//! are made.
//!
//! # Which peer may write where
//! Each peer is told the address and the key of *its* copy and of no other: a registration a row.
//! All of them share a protection domain, so a key is no secret between members: a member that
//! makes up another's key could write to that row. Keys have 32 bits, and some devices give them
//! out in a pattern, so a guess may take few tries, though each wrong one breaks the connection
//! that it came on. It keeps faults apart, and not enemies. Regions have a domain each; all block
//! memory of a member lies in one.

mod build;
mod error;
mod handshake;
mod rows;

use std::net::IpAddr;
use std::sync::Arc;

use tramontane_core::fabric::{BlockLimits, Capabilities, Promises, Region, WRITES_MAX};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::layout::ROW_MAX;

pub use error::JoinError;
pub(crate) use handshake::Handshake;
pub use rows::Rows;

use crate::devices::{Choice, Device, Devices, GidChoice, Order, Wanted, discover};
use crate::fabric::{BlockStore, GUARD_BYTES_MAX, Verbs, block_limits};
use crate::ffi::{Context, ProtectionDomain};
use crate::settings::Limits;
use crate::timing::LossTimes;
use build::Builder;

/// Memory beside the rows, of the same size at every member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionMemory {
    /// Its name; not [`Region::ROW`].
    pub region: Region,
    /// Its size.
    pub bytes: usize,
}

/// The most regions: their numbers have five bits.
pub const REGIONS_MAX: usize = 32;

/// What was chosen, granted and rounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Device, port, address and packet size.
    pub choice: Choice,
    /// What is promised.
    pub order: Order,
    /// When a silent peer is given up.
    pub loss_times: LossTimes,
    /// Requests in flight to one peer.
    pub depth: u32,
    /// At most so many from one that is signalled to the next.
    pub signal_every: u32,
    /// Bytes that go inline.
    pub inline_bytes_max: usize,
}

/// A device that was chosen and opened, by one member.
#[derive(Debug)]
pub struct Site {
    device: Device,
    choice: Choice,
    context: Arc<Context>,
    limits: Limits,
    loss_times: LossTimes,
    order: Order,
    block_store: BlockStore,
}

/// What a view needs of memory and connections.
#[derive(Clone, Copy, Debug)]
pub struct ViewOptions<'v> {
    /// The view.
    pub view: ViewId,
    /// This member's rank in it.
    pub own: Rank,
    /// Its members, in rank order.
    pub members: &'v [NodeId],
    /// The size of each member's row, by rank.
    pub row_bytes: &'v [usize],
    /// Regions whose owners decide which peers may write; at most [`REGIONS_MAX`].
    pub regions: &'v [RegionMemory],
    /// Whether blocks are carried: a connection more with each peer. The same at all members.
    pub blocks: bool,
}

impl ViewOptions<'_> {
    fn check(&self) -> Result<(), JoinError> {
        let Self { members, row_bytes, regions, .. } = self;
        if row_bytes.len() != members.len() {
            return Err(JoinError::BadOptions("give one row size a member"));
        }
        if regions.len() > REGIONS_MAX {
            return Err(JoinError::BadOptions("give at most 32 regions"));
        }
        let is_twice = regions.iter().enumerate().any(|(index, one)| {
            one.region == Region::ROW
                || regions.iter().take(index).any(|other| other.region == one.region)
        });
        if is_twice {
            return Err(JoinError::BadOptions(
                "give each region a name of its own, and none that of the rows",
            ));
        }
        Ok(())
    }
}

impl Site {
    /// Chooses a device and opens it. Where nobody insists on anything, the address at which the
    /// members meet shows the way to the others, if a device has it.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn open(
        wanted: &Wanted,
        limits: &Limits,
        meeting: Option<IpAddr>,
    ) -> Result<Self, JoinError> {
        let devices = Devices::discover()
            .map_err(|source| JoinError::from_device("libibverbs", "list the devices", source))?;
        let choice = choose(&devices, wanted, meeting)?;
        let device = devices.devices[choice.device].clone();
        let failed = |action| move |source| (action, source);
        let open = || {
            let context = discover::open(&device.name).map_err(failed("open it"))?;
            let domain =
                ProtectionDomain::new(&context).map_err(failed("make a protection domain"))?;
            Ok((context, BlockStore::new(Arc::new(domain))))
        };
        let opened: Result<_, (&'static str, std::io::Error)> = open();
        let (context, block_store) = opened
            .map_err(|(action, source)| JoinError::from_device(&device.name, action, source))?;
        let order = Order {
            addresses: limits.address_order.unwrap_or(device.order.addresses),
            visible_upon_completion: limits
                .completion_visible
                .unwrap_or(device.order.visible_upon_completion),
            ..device.order
        };
        Ok(Self {
            loss_times: LossTimes::at_least(limits.loss_time),
            limits: limits.clone(),
            device,
            choice,
            context,
            order,
            block_store,
        })
    }

    /// Makes a view's memory, fresh and all zero, and its connections, none of which leads anywhere
    /// yet: each peer is to be told its card ([`Verbs::card_for`]), and comes when its own is here
    /// ([`Verbs::connect`], [`Verbs::admit`]). The fabric knows the view and no other; open it with
    /// [`Verbs::rows`].
    ///
    /// # Errors
    /// [`JoinError`]; nothing stays registered then.
    pub fn view(&self, options: &ViewOptions<'_>) -> Result<Verbs, JoinError> {
        Ok(Builder::new(self, options)?.into_fabric())
    }

    /// What was chosen, rounded, and is promised.
    #[must_use]
    pub fn report(&self) -> Report {
        Report {
            choice: self.choice.clone(),
            order: self.order,
            loss_times: self.loss_times,
            depth: self.limits.depth,
            signal_every: self.limits.signal_every,
            inline_bytes_max: usize::try_from(self.device.limits.inline_bytes_max)
                .unwrap_or(usize::MAX),
        }
    }

    /// What the fabric of each view promises, and how much it takes.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        let port = self.device.ports.iter().find(|port| port.number == self.choice.port);
        let most = port.map_or(0, |port| port.message_bytes_max);
        Capabilities {
            promises: promises(self.order),
            writes_max: WRITES_MAX,
            write_bytes_max: usize::try_from(most).unwrap_or(usize::MAX).min(ROW_MAX),
            guard_bytes_max: GUARD_BYTES_MAX,
        }
    }

    /// How blocks go in each view.
    #[must_use]
    pub fn block_limits(&self) -> BlockLimits {
        block_limits(&self.capabilities())
    }

    /// What makes memory for blocks, of all views.
    #[must_use]
    pub const fn block_store(&self) -> &BlockStore {
        &self.block_store
    }

    const fn device(&self) -> &Device {
        &self.device
    }

    const fn choice(&self) -> &Choice {
        &self.choice
    }

    const fn context(&self) -> &Arc<Context> {
        &self.context
    }

    const fn limits(&self) -> &Limits {
        &self.limits
    }

    const fn loss_times(&self) -> &LossTimes {
        &self.loss_times
    }

    fn domain(&self) -> Result<Arc<ProtectionDomain>, JoinError> {
        let domain = ProtectionDomain::new(&self.context).map(Arc::new);
        domain.map_err(|source| self.failed("make a protection domain", source))
    }

    /// A call that failed.
    fn failed(&self, action: &'static str, source: std::io::Error) -> JoinError {
        JoinError::from_device(&self.device.name, action, source)
    }
}

fn choose(
    devices: &Devices,
    wanted: &Wanted,
    meeting: Option<IpAddr>,
) -> Result<Choice, JoinError> {
    if let (GidChoice::Auto, Some(address)) = (wanted.gid, meeting) {
        let there = Wanted { gid: GidChoice::Address(address), ..wanted.clone() };
        if let Ok(choice) = devices.choose(&there) {
            return Ok(choice);
        }
    }
    Ok(devices.choose(wanted)?)
}

/// What the fabric promises of an order.
fn promises(order: Order) -> Promises {
    let mut promises = Promises::empty();
    promises.set(Promises::WRITE_ORDER, order.writes);
    promises.set(Promises::ADDRESS_ORDER, order.addresses);
    promises.set(Promises::COMPLETION_VISIBLE, order.visible_upon_completion);
    promises
}
