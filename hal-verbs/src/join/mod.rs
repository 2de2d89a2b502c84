//! Joining a group over RDMA: device, memory and connections, and a barrier at the end (VIE-12).
//!
//! In this order, so that what can fail here fails before others wait: choose and open the device; take and
//! register the memory; make the queue pairs; meet the other members over TCP ([`tramontane_mesh`]); tell each
//! peer numbers, addresses and keys; connect; when all are connected, see that a first write to each is answered;
//! and stand at the barrier. Nobody posts data before everybody's memory is registered and everybody's receives
//! are posted.
//!
//! # Who may write where
//! Each peer is told the address and the key of *its* copy and of no other: a registration a row. All of them
//! share a protection domain, so a key is no secret between members: a member that makes up another's key
//! could write to that row. It keeps faults apart, and not enemies. Regions have a domain each; all block
//! memory of a member lies in one.

mod build;
mod error;
mod probe;
mod rows;

use tramontane_core::fabric::Region;

pub use error::JoinError;
pub use rows::Rows;

use crate::devices::{Choice, Devices, GidChoice, Order, Wanted};
use crate::fabric::{Descriptors, Parts, Verbs};
use crate::settings::Limits;
use crate::timing::LossTimes;
use build::{Builder, promises};
use tramontane_mesh::{Address, Mesh, MeshOptions};

/// Memory beside the rows, of the same size at every member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionMemory {
    /// Its name; not [`Region::ROW`].
    pub region: Region,
    /// Its size.
    pub bytes: usize,
}

/// What is needed to join.
#[derive(Debug)]
pub struct JoinOptions<'j> {
    /// With whom, and how to meet them.
    pub mesh: MeshOptions<'j>,
    /// Which device, if not the first that works.
    pub device: Wanted,
    /// How the fabric behaves.
    pub limits: Limits,
    /// The size of each member's row, by rank.
    pub row_bytes: &'j [usize],
    /// Regions whose owners say who may write; at most [`REGIONS_MAX`].
    pub regions: &'j [RegionMemory],
    /// Whether blocks are carried: a connection more with each peer. Their memory is lent later
    /// ([`Verbs::block_store`]). The same at all members.
    pub blocks: bool,
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

/// A member that has joined.
#[derive(Debug)]
pub struct Joined {
    /// Its fabric, connected and not open yet.
    pub fabric: Verbs,
    /// What was chosen.
    pub report: Report,
}

/// Joins: waits for all members, and gives the fabric of this one, connected to them.
///
/// The rows are at [`Verbs::rows`]; open the fabric with them, and with the view of the options.
///
/// # Errors
/// [`JoinError`]; nothing stays registered then.
pub fn join(options: JoinOptions<'_>) -> Result<Joined, JoinError> {
    check(&options)?;
    let devices = Devices::discover()
        .map_err(|source| JoinError::from_device("libibverbs", "list the devices", source))?;
    let choice = choose(&devices, &options)?;
    let device = &devices.devices[choice.device];
    let JoinOptions { mesh, limits, .. } = &options;
    let (view, own) = (mesh.view, mesh.own);
    let loss_times = LossTimes::at_least(limits.loss_time);
    let order = Order {
        addresses: limits.address_order.unwrap_or(device.order.addresses),
        visible_upon_completion: limits.completion_visible.unwrap_or(device.order.visible_upon_completion),
        ..device.order
    };
    let mut builder = Builder::new(device, &choice, &options, loss_times)?;
    let write_bytes_max = builder.write_bytes_max(device);
    let (members, cancel) = (options.mesh.members, options.mesh.cancel);
    let mut mesh = Mesh::join(options.mesh)?;
    let cards = mesh.exchange(|rank| builder.card_for(rank).encode())?;
    builder.connect(&cards, members, own)?;
    mesh.barrier()?;
    probe::probe(&mut builder, members, loss_times.total(), cancel)?;
    mesh.barrier()?;
    let lifelines = mesh.into_lifelines(loss_times.total());
    let system = |source| JoinError::from_device(&choice.name, "watch descriptors", source);
    let bell = crate::protocol::Bell::new().map_err(|errno| system(errno.into()))?;
    let descriptors = Descriptors::new(&builder.completions, &bell, lifelines).map_err(system)?;
    let report = Report {
        order,
        loss_times,
        depth: builder.limits.depth,
        signal_every: builder.limits.signal_every,
        inline_bytes_max: builder.links.first().map_or(0, crate::fabric::Link::inline_bytes_max),
        choice: choice.clone(),
    };
    let fabric = Verbs::new(Parts {
        view,
        links: builder.links,
        regions: builder.regions,
        registered: builder.registered,
        rows: builder.rows,
        block_store: builder.block_store,
        promises: promises(order),
        write_bytes_max,
        completions: builder.completions,
        bell,
        descriptors,
        context: builder.context,
    });
    Ok(Joined { fabric, report })
}

/// Where nobody insists on anything, the address at which the members meet shows the way to the others, if a
/// device has it.
fn choose(devices: &Devices, options: &JoinOptions<'_>) -> Result<Choice, JoinError> {
    let meeting = options.mesh.addresses.get(options.mesh.own.index());
    if let (GidChoice::Auto, Some(Address::Tcp(address))) = (options.device.gid, meeting) {
        let there = Wanted { gid: GidChoice::Address(address.ip()), ..options.device.clone() };
        if let Ok(choice) = devices.choose(&there) {
            return Ok(choice);
        }
    }
    Ok(devices.choose(&options.device)?)
}

fn check(options: &JoinOptions<'_>) -> Result<(), JoinError> {
    let JoinOptions { mesh, row_bytes, regions, .. } = options;
    if row_bytes.len() != mesh.members.len() {
        return Err(JoinError::BadOptions("give one row size a member"));
    }
    if regions.len() > REGIONS_MAX {
        return Err(JoinError::BadOptions("give at most 32 regions"));
    }
    let is_twice = regions.iter().enumerate().any(|(index, one)| {
        one.region == Region::ROW || regions.iter().take(index).any(|other| other.region == one.region)
    });
    if is_twice {
        return Err(JoinError::BadOptions("give each region a name of its own, and none that of the rows"));
    }
    Ok(())
}
