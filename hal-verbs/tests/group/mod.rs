//! A small group on one device. Each member has its own context, memory and connections, as in
//! separate processes. `try_join_all` brings up the connections of one view by hand; [`beside`] has
//! members that meet over TCP, as in programs.

use std::time::{Duration, Instant};

use tramontane_core::fabric::{ErrorKind, Fabric, Region, ViewRows as _};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::layout::RelayedRing;
use tramontane_verbs::devices::Wanted;
use tramontane_verbs::{JoinError, Limits, Report, Site, Verbs, ViewOptions};

#[allow(dead_code, reason = "not every test has members that meet over TCP")]
pub mod beside;
#[allow(dead_code, reason = "not every test asks it all")]
pub mod device;
#[allow(dead_code, reason = "not every test runs whole nodes")]
pub mod nodes;

/// The view of all groups in these tests.
pub const VIEW: ViewId = ViewId(1);

/// The configuration of a group.
#[derive(Clone, Debug)]
pub struct GroupShape {
    pub members: u16,
    pub row_bytes: usize,
    /// The rings that members pass on to each other.
    pub relayed: Vec<RelayedRing>,
    /// The size of each member's row, if sizes differ.
    pub row_sizes: Option<Vec<usize>>,
    pub limits: Limits,
    /// Regions with their sizes.
    pub regions: Vec<(Region, usize)>,
    /// The regions of the last member, if they differ from those of the others.
    pub last_regions: Option<Vec<(Region, usize)>>,
    pub blocks: bool,
    pub wanted: Wanted,
    /// The constraints of the last member, if they differ.
    pub last_wanted: Option<Wanted>,
}

impl Default for GroupShape {
    fn default() -> Self {
        Self {
            members: 3,
            row_bytes: 16_384,
            relayed: Vec::new(),
            row_sizes: None,
            limits: Limits::default(),
            regions: Vec::new(),
            last_regions: None,
            blocks: false,
            wanted: device::wanted(),
            last_wanted: None,
        }
    }
}

/// A member whose connections are up.
#[derive(Debug)]
pub struct Joined {
    pub fabric: Verbs,
    #[allow(dead_code, reason = "not every test looks at it")]
    pub report: Report,
}

/// Time limit for connecting.
const PATIENCE: Duration = Duration::from_secs(30);

/// Creates a member without connections.
fn alone(shape: &GroupShape, members: &[NodeId], own: Rank) -> Result<Joined, JoinError> {
    let sizes = shape.row_sizes.clone().unwrap_or_else(|| vec![shape.row_bytes; members.len()]);
    let is_last = own.index() + 1 == members.len();
    let other = shape.last_wanted.as_ref().filter(|_| is_last);
    let site = Site::open(other.unwrap_or(&shape.wanted), &shape.limits, None)?;
    let regions = shape.last_regions.as_ref().filter(|_| is_last).unwrap_or(&shape.regions);
    let regions = regions.iter().map(|(region, bytes)| site.region(*region, *bytes));
    let regions = regions.collect::<Result<Vec<_>, _>>()?;
    let fabric = site.view(&ViewOptions {
        view: VIEW,
        own,
        members,
        row_bytes: &sizes,
        relayed: &shape.relayed,
        regions: &regions,
        blocks: shape.blocks,
    })?;
    Ok(Joined { fabric, report: site.report() })
}

/// Connects all members to each other, and opens the view on each.
#[allow(dead_code, reason = "not every test wants to see failures")]
pub fn try_join_all(shape: &GroupShape) -> Vec<Result<Joined, JoinError>> {
    let ranks: Vec<Rank> = (0..shape.members).map(Rank).collect();
    let members: Vec<NodeId> = ranks.iter().map(|rank| NodeId(u32::from(rank.0) + 10)).collect();
    let made: Result<Vec<Joined>, _> =
        ranks.iter().map(|own| alone(shape, &members, *own)).collect();
    let mut all = match made {
        Ok(all) => all,
        Err(error) => return vec![Err(error)],
    };
    for joined in &mut all {
        open(&mut joined.fabric).expect("it opens");
    }
    let pairs = || ranks.iter().flat_map(|one| ranks.iter().map(move |other| (*one, *other)));
    for (own, peer) in pairs().filter(|(own, peer)| own != peer) {
        let card = all[peer.index()].fabric.card_for(own);
        all[own.index()].fabric.connect(peer, &card);
    }
    for (own, peer) in pairs().filter(|(own, peer)| own != peer) {
        all[own.index()].fabric.admit(peer);
    }
    let until = Instant::now() + PATIENCE;
    let is_over = |joined: &Joined, own: Rank| {
        let fabric = &joined.fabric;
        let mut peers = ranks.iter().filter(|peer| **peer != own);
        peers.all(|peer| fabric.ready(VIEW, *peer) || fabric.loss_of(*peer).is_some())
    };
    while !ranks.iter().all(|own| is_over(&all[own.index()], *own)) && Instant::now() < until {
        all.iter_mut().for_each(|joined| joined.fabric.collect());
        std::thread::sleep(Duration::from_micros(100));
    }
    let judged = |(own, joined): (&Rank, Joined)| {
        let silent = ranks.iter().find(|peer| *peer != own && !joined.fabric.ready(VIEW, **peer));
        let Some(peer) = silent else { return Ok(joined) };
        Err(JoinError::NoAnswer {
            device: joined.report.choice.name.clone(),
            peer: members[peer.index()],
            own: joined.report.choice.gid.address,
            why: joined.fabric.loss_of(*peer).map_or("no answer".into(), ToString::to_string),
        })
    };
    ranks.iter().zip(all).map(judged).collect()
}

/// Connects all members as [`try_join_all`] does, and panics unless all succeed.
pub fn join_all(shape: &GroupShape) -> Vec<Joined> {
    let joined = try_join_all(shape).into_iter();
    joined.map(|joined| joined.unwrap_or_else(|error| panic!("cannot join: {error}"))).collect()
}

/// Opens the view at a member, with the memory that was allocated for it.
pub fn open(fabric: &mut tramontane_verbs::Verbs) -> Result<(), ErrorKind> {
    let rows = fabric.rows().clone();
    fabric.open(VIEW, &rows.memory())
}
