//! The simulated fabric, put to the contract: members on a simulated network, in virtual time.

use std::collections::BTreeSet;

use tramontane_conformance::contract::{
    Actor, BLOCK_BYTES_MIN, Bench, BlockBench, Breach, MEMBERS, Next, ROW_BYTES_MIN, Seat, Testbed,
    VIEW, Wake,
};
use tramontane_core::fabric::{ErrorKind, Fabric, FabricError, Region, ViewMemory};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::memory::{Row, RowWriter};
use tramontane_fixtures::fabric::SimFabric;
use tramontane_fixtures::memory::ViewRows;
use tramontane_fixtures::network::{BLOCKS, BlockMemory, Network, SharedNetwork};
use tramontane_fixtures::plan::Plan;
use tramontane_fixtures::profile::Profile;

/// What is put around each member's fabric before it is judged.
pub trait Wrap {
    /// The fabric that the contract sees.
    type Fabric<'m>: Fabric;

    /// Puts it around a member's fabric.
    fn wrap<'m>(&self, inner: SimFabric<'m>) -> Self::Fabric<'m>;
}

/// Simulated networks of one profile and seed.
pub struct Simulated<W> {
    pub profile: Profile,
    pub seed: u64,
    pub wrap: W,
}

impl<W: Wrap> Testbed for Simulated<W> {
    type Bench<'b> = SimBench<'b, W::Fabric<'b>>;

    fn with(&self, scene: impl FnOnce(&mut Self::Bench<'_>)) {
        let nodes = usize::from(MEMBERS);
        let rows = ViewRows::with_sizes(&vec![ROW_BYTES_MIN; nodes]);
        let mut network = Network::new(self.profile.clone(), nodes, self.seed, &Plan::calm());
        network.add_view(VIEW, (0..nodes).collect(), &rows);
        for node in 0..nodes {
            network.lend_blocks(node, BlockMemory::Bytes(vec![0; BLOCK_BYTES_MIN]));
        }
        let network = network.shared();
        let fabrics =
            (0..nodes).map(|node| self.wrap.wrap(SimFabric::new(network.clone(), node))).collect();
        let held = (0..nodes).map(|node| rows.held_by(node)).collect();
        let members = (0..MEMBERS).map(|rank| NodeId(u32::from(rank) + 10)).collect();
        scene(&mut SimBench {
            network,
            rows: &rows,
            fabrics,
            held,
            members,
            rung: BTreeSet::new(),
            passed: 0,
        });
    }
}

/// A group on one simulated network.
pub struct SimBench<'m, F> {
    network: SharedNetwork<'m>,
    rows: &'m ViewRows,
    fabrics: Vec<F>,
    held: Vec<Vec<Row<'m>>>,
    members: Vec<NodeId>,
    /// Sleepers whose doorbell rang and who were not told yet.
    rung: BTreeSet<usize>,
    passed: u64,
}

/// Virtual time in which everything has come: longer than a card tries again.
const ALL_NS: u64 = 10_000_000;

/// Virtual time after which a sleeper was forgotten: far above any way of a write.
const SLEEP_NS: u64 = 1_000_000;

/// Turns after which two actors will never be done.
const TURNS_MAX: u64 = 5_000_000;

impl<F: Fabric> SimBench<'_, F> {
    /// Moves the time, and collects who is rung. A ring of one who is awake again has done its work.
    fn advance(&mut self, nanoseconds: u64) {
        let mut network = self.network.borrow_mut();
        self.rung.retain(|node| network.is_armed(*node));
        network.advance(nanoseconds);
        self.rung.extend(network.take_rung());
    }

    fn seat(&mut self, member: usize) -> Seat<'_, F> {
        Seat {
            fabric: &mut self.fabrics[member],
            row: self.rows.own(member),
            rows: &self.held[member],
        }
    }

    fn now(&self) -> u64 {
        self.network.borrow().now()
    }
}

impl<F: Fabric> Bench for SimBench<'_, F> {
    type Fabric = F;

    fn fabric(&mut self, member: Rank) -> &mut F {
        &mut self.fabrics[member.index()]
    }

    fn open(&mut self, member: Rank) -> Result<(), ErrorKind> {
        let own = member.index();
        let memory = ViewMemory {
            own: member,
            members: &self.members,
            row: self.rows.own(own),
            rows: &self.held[own],
        };
        self.fabrics[own].open(VIEW, &memory).map_err(|error| error.kind())
    }

    fn row(&self, member: Rank) -> RowWriter<'_> {
        self.rows.own(member.index())
    }

    fn copy(&self, holder: Rank, owner: Rank) -> Row<'_> {
        self.held[holder.index()][owner.index()]
    }

    fn pass(&mut self) {
        // Steps of changing length, so that no rhythm of the network's hides a moment.
        self.passed = self.passed.wrapping_add(1);
        self.advance(1 + self.passed.wrapping_mul(2_654_435_761) % 83);
    }

    fn settle(&mut self) {
        self.advance(ALL_NS);
    }

    fn sleep(&mut self, member: Rank) -> Wake {
        let until = self.now() + SLEEP_NS;
        loop {
            if self.rung.remove(&member.index()) {
                return Wake::Rung;
            }
            let next = self.network.borrow().next_at().map_or(until, |at| at.min(until));
            let now = self.now();
            if now >= until {
                return Wake::Overslept;
            }
            self.advance(next.saturating_sub(now).max(1));
        }
    }

    fn lose(&mut self, member: Rank) -> Result<(), &'static str> {
        self.network.borrow_mut().crash(member.index());
        Ok(())
    }

    fn rounds(&self) -> u64 {
        200
    }

    fn race(&mut self, actors: [(Rank, &mut dyn Actor<F>); 2]) -> Result<(), Breach> {
        /// What an actor does, and since when.
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            Awake,
            AsleepSince(u64),
            Done,
        }
        let mut actors = actors.map(|(rank, actor)| (rank.index(), actor, State::Awake));
        for _ in 0..TURNS_MAX {
            for (member, actor, state) in &mut actors {
                let now = self.now();
                let slept = match state {
                    State::Done => continue,
                    State::Awake => None,
                    State::AsleepSince(_) if self.rung.remove(member) => Some(Wake::Rung),
                    State::AsleepSince(since) if now - *since > SLEEP_NS => Some(Wake::Overslept),
                    State::AsleepSince(_) => continue,
                };
                *state = match actor.turn(&mut self.seat(*member), slept)? {
                    Next::Turn => State::Awake,
                    Next::Sleep => State::AsleepSince(now),
                    Next::Done => State::Done,
                };
            }
            if actors.iter().all(|(_, _, state)| *state == State::Done) {
                return Ok(());
            }
            self.pass();
        }
        Err(Breach(format!("after {TURNS_MAX} turns the two members are not done")))
    }
}

impl<'m> BlockBench for SimBench<'m, SimFabric<'m>> {
    fn block_region(&self) -> Region {
        BLOCKS
    }

    fn fill_blocks(&mut self, member: Rank, offset: usize, bytes: &[u8]) {
        if let BlockMemory::Bytes(memory) = self.network.borrow_mut().block_memory(member.index()) {
            memory[offset..offset + bytes.len()].copy_from_slice(bytes);
        }
    }

    fn look_blocks(&mut self, member: Rank, offset: usize, length: usize) -> Vec<u8> {
        match self.network.borrow_mut().block_memory(member.index()) {
            BlockMemory::Bytes(memory) => memory[offset..offset + length].to_vec(),
            BlockMemory::Identities { .. } => Vec::new(),
        }
    }
}
