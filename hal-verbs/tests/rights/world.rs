//! Members with one region each, on fake devices in virtual time, which all run in one thread.

use std::time::Duration;

use tramontane_core::fabric::{
    Area, ErrorKind, Event, Fabric, Kind, PermissionEvent, Permissions, Region, Token,
    ViewRows as _, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_verbs::fake::{Clock, Network, Profile};
use tramontane_verbs::{Limits, Site, Verbs, ViewOptions};

pub const VIEW: ViewId = ViewId(1);
pub const LOG: Region = Region(5);
pub const BYTES: usize = 1 << 16;

/// The state of a run; members by rank.
pub struct RightsRun {
    pub network: Network,
    pub fabrics: Vec<Verbs>,
}

impl RightsRun {
    /// Creates connected members, each on its own device.
    pub fn new(members: u16, seed: u64, profile: &Profile) -> Self {
        Self::with_limits(members, seed, profile, &Limits::default())
    }

    pub fn with_limits(members: u16, seed: u64, profile: &Profile, limits: &Limits) -> Self {
        // Writes to regions go straight into memory, because their order does not affect rights.
        let (loss_time, write_order) = (Duration::from_millis(20), Some(true));
        let limits = Limits { loss_time, write_order, ..limits.clone() };
        let network = Network::new(seed, Clock::Virtual);
        let ids: Vec<NodeId> = (0..members).map(|rank| NodeId(u32::from(rank) + 10)).collect();
        let row_bytes = vec![4096; ids.len()];
        let member = |own| {
            let device = network.add_device(profile.clone());
            let site = Site::open(&device.wanted(), &limits, None).expect("it opens");
            let regions = [site.region(LOG, BYTES).expect("memory")];
            let options = ViewOptions {
                view: VIEW,
                own,
                members: &ids,
                row_bytes: &row_bytes,
                relayed: &[],
                regions: &regions,
                blocks: false,
            };
            let mut fabric = site.view(&options).expect("a view");
            let rows = fabric.rows().clone();
            fabric.open(VIEW, &rows.memory()).expect("it opens");
            fabric
        };
        let fabrics = (0..members).map(Rank).map(member).collect();
        let mut world = Self { network, fabrics };
        world.connect();
        world
    }

    fn connect(&mut self) {
        let pairs = self.pairs();
        for (own, peer) in &pairs {
            let card = self.fabrics[peer.index()].card_for(*own);
            assert!(self.fabrics[own.index()].connect(*peer, &card));
        }
        for (own, peer) in &pairs {
            self.fabrics[own.index()].admit(*peer);
        }
        self.run_until(|world| {
            let is_ready =
                |(own, peer): &(Rank, Rank)| world.fabrics[own.index()].ready(VIEW, *peer);
            pairs.iter().all(is_ready)
        });
        for fabric in &mut self.fabrics {
            while fabric.poll().is_some() {}
        }
    }

    /// Returns all ordered pairs of different members.
    pub fn pairs(&self) -> Vec<(Rank, Rank)> {
        let ranks = || (0..).map(Rank).take(self.fabrics.len());
        let pairs = ranks().flat_map(|one| ranks().map(move |other| (one, other)));
        pairs.filter(|(one, other)| one != other).collect()
    }

    /// Carries out the next event, if there is one, without polling.
    pub fn pass(&self) -> bool {
        let next = self.network.next_at();
        if let Some(at) = next {
            self.network.run_until(at);
        }
        next.is_some()
    }

    /// Lets this much time pass without polling.
    pub fn pass_ns(&self, ns: u64) {
        self.network.run_until(self.network.now_ns() + ns);
    }

    /// Steps all members as time passes, until a condition holds.
    #[track_caller]
    pub fn run_until(&mut self, mut holds: impl FnMut(&mut Self) -> bool) {
        for _ in 0..100_000 {
            if holds(self) {
                return;
            }
            for fabric in &mut self.fabrics {
                fabric.collect();
            }
            if !self.pass() {
                self.pass_ns(1000);
            }
        }
        panic!("it does not come to hold");
    }

    /// Steps all members until no event is left.
    pub fn settle(&mut self) {
        let mut quiet = 0;
        while quiet < 3 {
            for fabric in &mut self.fabrics {
                fabric.collect();
                fabric.flush();
            }
            quiet = if self.pass() { 0 } else { quiet + 1 };
        }
    }

    /// Returns bytes of an owner's region.
    pub fn look(&self, owner: Rank, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let memory = self.fabrics[owner.index()].rows().region(LOG).expect("a region");
        memory.reader().read(offset, &mut bytes).expect("inside");
        bytes
    }

    pub fn fill(&self, member: Rank, offset: usize, bytes: &[u8]) {
        let memory = self.fabrics[member.index()].rows().region(LOG).expect("a region");
        memory.apply(offset, bytes).expect("inside");
    }

    /// Posts a write from a member's region to the same offset in another member's.
    pub fn post(
        &mut self,
        from: Rank,
        to: Rank,
        offset: usize,
        length: usize,
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        let area = Area { region: LOG, offset };
        let write = Write { source: area, target: area, length, kind: Kind::Content };
        self.fabrics[from.index()].post(VIEW, to, &[write], token)
    }

    pub fn grant(&mut self, owner: Rank, peer: Rank) {
        self.fabrics[owner.index()].grant(VIEW, peer, LOG).expect("it is there");
    }

    pub fn revoke(&mut self, owner: Rank, peer: Rank) {
        self.fabrics[owner.index()].revoke(VIEW, peer, LOG).expect("it is there");
    }

    /// Returns the changes of permissions that have been reported to a member.
    pub fn told(&mut self, member: Rank) -> Vec<PermissionEvent> {
        std::iter::from_fn(|| self.fabrics[member.index()].poll_permission()).collect()
    }

    /// Returns a member's other events.
    pub fn events(&mut self, member: Rank) -> Vec<Event> {
        std::iter::from_fn(|| self.fabrics[member.index()].poll()).collect()
    }
}
