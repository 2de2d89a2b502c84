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
//! could write to that row. Keys have 32 bits, and some devices give them out in a pattern, so a guess may take
//! few tries, though each wrong one breaks the connection that it came on. It keeps faults apart, and not enemies.
//! Regions have a domain each; all block memory of a member lies in one.

mod build;
mod error;
mod handshake;
mod probe;
mod rows;
mod site;

use tramontane_core::fabric::Region;
use tramontane_mesh::{Address, Mesh, MeshOptions};

pub use error::JoinError;
pub(crate) use handshake::Handshake;
pub use rows::Rows;
pub use site::{Site, ViewOptions};

use crate::devices::{Choice, Order, Wanted};
use crate::fabric::Verbs;
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
    let JoinOptions { mesh, device, limits, row_bytes, regions, blocks } = options;
    let meeting = match mesh.addresses.get(mesh.own.index()) {
        Some(Address::Tcp(address)) => Some(address.ip()),
        _ => None,
    };
    let view = ViewOptions {
        view: mesh.view,
        own: mesh.own,
        members: mesh.members,
        row_bytes,
        regions,
        blocks,
    };
    // Before anything is opened: wrong options are wrong on every machine.
    view.check()?;
    let site = Site::open(&device, &limits, meeting)?;
    let loss_time = site.loss_times().total();
    let mut builder = Builder::new(&site, &view)?;
    let cancel = mesh.cancel;
    let mut mesh = Mesh::join(mesh)?;
    let cards = mesh.exchange(|rank| builder.card_for(rank))?;
    builder.connect(&cards)?;
    mesh.barrier()?;
    probe::probe(&mut builder, loss_time, cancel)?;
    mesh.barrier()?;
    let report = Report {
        depth: builder.limits.depth,
        signal_every: builder.limits.signal_every,
        inline_bytes_max: builder.links.first().map_or(0, crate::fabric::Link::inline_bytes_max),
        ..site.report()
    };
    let fabric = builder.into_fabric(mesh.into_lifelines(loss_time), true)?;
    Ok(Joined { fabric, report })
}
