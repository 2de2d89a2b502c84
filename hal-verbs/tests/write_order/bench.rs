//! Two members on fake devices, stepped by the test.

use tramontane_core::fabric::{ErrorKind, Event, Fabric as _, Kind, Region, ViewRows as _, Write};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_verbs::devices::DataInOrder;
use tramontane_verbs::fake::{Clock, Network, Placement, Profile};
use tramontane_verbs::{JoinError, Limits, Rows, Site, Verbs, ViewOptions};

pub const VIEW: ViewId = ViewId(1);
pub const A: Rank = Rank(0);
pub const B: Rank = Rank(1);
pub const MEMBERS: [NodeId; 2] = [NodeId(10), NodeId(11)];

/// The size of each row in bytes.
pub const ROW_BYTES: usize = 16_384;

/// Time limit, in ns, for anything in flight to land.
const PLACED_NS: u64 = 1_000_000;

/// Returns a device that places writes in every permitted way, and reports that it keeps no order.
pub fn reordering(placement: Placement) -> Profile {
    Profile {
        placement,
        placement_delay_ns: 50_000,
        completes_before_visible: true,
        late_read_ns: 10_000,
        jitter_ns: 3_000,
        data_in_order: DataInOrder::No,
        ..Profile::strict()
    }
}

/// Returns limits with which lists are sent as updates.
pub fn by_updates() -> Limits {
    Limits { write_order: Some(false), ..Limits::default() }
}

/// Returns the limits of an operator who does not know the network.
pub fn promised() -> Limits {
    Limits { write_order: Some(true), ..Limits::default() }
}

pub struct ConnectedMember {
    pub fabric: Verbs,
    pub rows: Rows,
}

/// Two connected members.
pub struct ConnectedPair {
    pub network: Network,
    pub a: ConnectedMember,
    pub b: ConnectedMember,
}

/// Opens a site on its own device.
pub fn site(network: &Network, profile: Profile, limits: &Limits) -> Result<Site, JoinError> {
    Site::open(&network.add_device(profile).wanted(), limits, None)
}

/// Creates a member without connections.
pub fn member(site: &Site, own: Rank, row_bytes: [usize; 2]) -> ConnectedMember {
    let options = ViewOptions {
        view: VIEW,
        own,
        members: &MEMBERS,
        row_bytes: &row_bytes,
        relayed: &[],
        regions: &[],
        blocks: false,
    };
    let mut fabric = site.view(&options).expect("memory");
    let rows = fabric.rows().clone();
    fabric.open(VIEW, &rows.memory()).expect("it opens");
    ConnectedMember { fabric, rows }
}

impl ConnectedPair {
    pub fn new(profile: Profile, limits: &Limits, seed: u64) -> Self {
        let network = Network::new(seed, Clock::Virtual);
        let sites = [A, B].map(|_| site(&network, profile.clone(), limits).expect("a site"));
        let [a, b] = [A, B].map(|own| member(&sites[own.index()], own, [ROW_BYTES; 2]));
        let mut pair = Self { network, a, b };
        let cards = [pair.a.fabric.card_for(B), pair.b.fabric.card_for(A)];
        assert!(pair.a.fabric.connect(B, &cards[1]) && pair.b.fabric.connect(A, &cards[0]));
        pair.a.fabric.admit(B);
        pair.b.fabric.admit(A);
        for _ in 0..1000 {
            pair.pass(1000);
            pair.a.poll();
            pair.b.poll();
        }
        assert!(pair.a.fabric.ready(VIEW, B) && pair.b.fabric.ready(VIEW, A));
        pair
    }

    /// Lets time pass.
    pub fn pass(&self, ns: u64) {
        self.network.run_until(self.network.now_ns() + ns);
    }

    /// Lets everything in flight land and be processed by both members.
    pub fn settle(&mut self) {
        for _ in 0..20 {
            self.pass(PLACED_NS);
            self.a.poll();
            self.b.poll();
        }
    }
}

impl ConnectedMember {
    /// Takes the fabric's events, as a node does at the start of each step.
    pub fn poll(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.fabric.poll()).collect()
    }

    pub fn store(&self, offset: usize, bytes: &[u8]) {
        self.rows.row().apply(offset, bytes).expect("in the row");
    }

    pub fn publish(&self, offset: usize, value: u64) {
        self.rows.row().cell(offset).expect("a cell").publish(value);
    }

    /// Returns a cell of the local copy of the other member's row.
    pub fn seen(&self, owner: Rank, offset: usize) -> u64 {
        self.rows.rows()[owner.index()].cell(offset).expect("a cell").load()
    }

    /// Returns bytes of the local copy of the other member's row.
    pub fn bytes(&self, owner: Rank, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.rows.rows()[owner.index()].read(offset, &mut bytes).expect("in the row");
        bytes
    }

    pub fn post(&mut self, to: Rank, list: &[Write]) -> Result<(), ErrorKind> {
        self.fabric.post(VIEW, to, list, None)
    }
}

pub const fn guard(offset: usize, length: usize) -> Write {
    Write::of_row(offset, length, Kind::Guard)
}

pub const fn content(offset: usize, length: usize) -> Write {
    Write::of_row(offset, length, Kind::Content)
}

/// A region, which is not part of the rows.
pub const REGION: Region = Region(1);
