//! Shared memory keeps the contract, as a fabric of the runtime. Several members run in one
//! process, each with its own files and mappings, as in separate processes. Two members race in two
//! threads. `TRAMONTANE_CONTRACT_ROUNDS` sets the number of rounds of a race.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tramontane_contract::{
    Actor, BLOCK_BYTES_MIN, Bench, BlockBench, Breach, MEMBERS, ROW_BYTES_MIN, Testbed, VIEW, Wake,
    run, run_blocks,
};
use tramontane_core::fabric::{
    BlockStore as _, BlockUse, ErrorKind, Fabric, FabricError, HostBlocks as _, HostFabric as _,
    Region, ViewPlan, ViewRows as _,
};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::memory::{Row, RowWriter};
use tramontane_runtime::fabric::{AnyBlockMemory, AnyFabric};
use tramontane_runtime::member::Memory;
use tramontane_shared_memory::{Error, Fences, GroupName, Residence, Root, SharedMemory};

use crate::members::{Members, Racer, SLEEP_MAX};

/// Groups in a separate folder, with doorbells of one kind.
struct SharedMemories {
    fences: Fences,
    rounds: u64,
}

impl Testbed for SharedMemories {
    type Bench<'b> = Group3;

    fn with(&self, scene: impl FnOnce(&mut Group3)) {
        // The folder is in the usual place if possible, and otherwise anywhere, because the fabric
        // also works on a disk.
        let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a folder");
        let root = Root::under(folder.path());
        let members = join_all(&root, self.fences);
        scene(&mut Group3 { members, rounds: self.rounds, passes: 0 });
    }
}

/// Makes all members take their places and allocate the memory of the view.
fn join_all(root: &Root, fences: Fences) -> Members<SharedMemoryMember> {
    let ids: Vec<NodeId> = (0..MEMBERS).map(|rank| NodeId(u32::from(rank) + 10)).collect();
    let ranks: Vec<Rank> = (0..MEMBERS).map(Rank).collect();
    let window = u32::try_from(ROW_BYTES_MIN.div_ceil(64)).expect("a small row");
    let subgroups = [Subgroup {
        members: &ranks,
        senders: &ranks,
        window,
        message_max: 52,
        delivery: Delivery::Ordered,
    }];
    let layout = Layout::new(Group { members: &ids, subgroups: &subgroups }).expect("a group");
    assert!(layout.row_bytes(Rank(0)) >= ROW_BYTES_MIN);
    let (root, group) = (root.clone().with_fences(fences), GroupName::new("contract"));
    let (group, never) = (group.expect("a name"), AtomicBool::new(false));
    let limit = Duration::from_secs(30);
    let join = |own: Rank| -> Result<SharedMemory, Error> {
        let (node, start) = (ids[own.index()], u64::from(own.get()) + 1);
        let residence =
            Residence::claim(&root, &group, node, layout.digest(), start, limit, &never)?;
        Ok(SharedMemory::for_residence(&Arc::new(residence)))
    };
    let member = |own: Rank| {
        let plan = ViewPlan::of_layout(VIEW, own, &layout).with_blocks();
        SharedMemoryMember::new(join(own).expect("it has its place"), &plan)
    };
    ranks.iter().copied().map(member).collect()
}

struct SharedMemoryMember {
    fabric: AnyFabric,
    mappings: Memory,
    blocks: AnyBlockMemory,
}

impl SharedMemoryMember {
    fn new(fabric: SharedMemory, plan: &ViewPlan<'_>) -> Self {
        let mut fabric = AnyFabric::SharedMemory(fabric);
        let mappings = fabric.rows(plan).expect("memory");
        let store = fabric.block_store();
        let blocks = store.memory(BLOCK_BYTES_MIN, BlockUse::Both).expect("memory");
        Self { fabric, mappings, blocks }
    }
}

/// The number of passes between two runs of a waiting member's timer.
const PASSES_PER_LOOK: u64 = 64;

struct Group3 {
    members: Members<SharedMemoryMember>,
    rounds: u64,
    passes: u64,
}

impl Bench for Group3 {
    type Fabric = AnyFabric;

    fn fabric(&mut self, member: Rank) -> &mut AnyFabric {
        &mut self.members.get_mut(member).fabric
    }

    fn members(&self) -> Vec<NodeId> {
        (0..MEMBERS).map(|rank| NodeId(u32::from(rank) + 10)).collect()
    }

    fn open(&mut self, member: Rank) -> Result<(), ErrorKind> {
        let SharedMemoryMember { fabric, mappings, .. } = self.members.get_mut(member);
        fabric.open(VIEW, &mappings.memory()).map_err(|error| error.kind())
    }

    fn row(&self, member: Rank) -> RowWriter<'_> {
        self.members.get(member).mappings.row()
    }

    fn copy(&self, holder: Rank, owner: Rank) -> Row<'_> {
        self.members.get(holder).mappings.rows()[owner.index()]
    }

    fn pass(&mut self) {
        // Lists are never in flight here, but blocks are: they make progress while members wait for
        // something else.
        for member in self.members.iter_mut() {
            let AnyFabric::SharedMemory(fabric) = &mut member.fabric else { continue };
            fabric.carry_blocks();
        }
        // Rows appear when members check for them, as their timers do.
        self.passes += 1;
        if self.passes.is_multiple_of(PASSES_PER_LOOK) {
            for member in self.members.iter_mut() {
                member.fabric.check_peers();
            }
        }
        std::thread::yield_now();
    }

    fn settle(&mut self) {
        // The work of a member's timer, and a few pieces of blocks each.
        for _ in 0..8 {
            self.pass();
        }
        for member in self.members.iter_mut() {
            member.fabric.check_peers();
        }
    }

    fn sleep(&mut self, member: Rank) -> Wake {
        SharedMemoryMember::sleep(&mut self.members.get_mut(member).fabric)
    }

    fn lose(&mut self, member: Rank) -> Result<(), &'static str> {
        // Like a process that exits: its locks are released, but it has not announced that it is
        // leaving.
        self.members.lose(member);
        Ok(())
    }

    fn rounds(&self) -> u64 {
        self.rounds
    }

    fn race(&mut self, actors: [(Rank, &mut dyn Actor<AnyFabric>); 2]) -> Result<(), Breach> {
        self.members.race(actors)
    }
}

impl BlockBench for Group3 {
    fn block_region(&self) -> Region {
        self.members.iter().next().expect("a member").blocks.region()
    }

    fn fill_blocks(&mut self, member: Rank, offset: usize, bytes: &[u8]) {
        self.members.get_mut(member).blocks.write(offset, bytes).expect("inside");
    }

    fn look_blocks(&mut self, member: Rank, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.members.get(member).blocks.read(offset, &mut bytes).expect("inside");
        bytes
    }
}

impl Racer for SharedMemoryMember {
    type Fabric = AnyFabric;

    const TURNS_PER_LOOK: u32 = 1024;

    fn seat(&mut self) -> (&mut AnyFabric, RowWriter<'_>, Vec<Row<'_>>) {
        let Self { fabric, mappings, .. } = self;
        (fabric, mappings.row(), mappings.rows().to_vec())
    }

    fn begin(_: &mut AnyFabric) {}

    fn sleep(fabric: &mut AnyFabric) -> Wake {
        let until = Instant::now() + SLEEP_MAX;
        loop {
            if fabric.sleep(until.saturating_duration_since(Instant::now())) {
                return Wake::Rung;
            }
            // A signal, or the late half of an earlier ring, ends a sleep early.
            if Instant::now() >= until {
                return Wake::Overslept;
            }
        }
    }
}

/// Clauses that do not apply to shared memory: nothing is transferred, so nothing is late or
/// queued.
const SILENT: [&str; 5] = [
    "queue-full-refused-whole",
    "queue-full-passes",
    "queue-full-alone",
    "guard-as-posted",
    "content-until-completed",
];

#[test]
fn shared_memory_keeps_the_contract() {
    // If other programs use all processors, each round may have to wait for both threads' turns.
    // The kind of fence affects only the doorbell, so the second run has fewer rounds.
    let wanted = std::env::var("TRAMONTANE_CONTRACT_ROUNDS").ok();
    let rounds = wanted.map_or(12_000, |text| text.parse().expect("a number"));
    let kinds = [
        ("the sleeper pays", Fences::Sleeper, rounds),
        ("both ends fence", Fences::Both, rounds / 4),
    ];
    for (what, fences, rounds) in kinds {
        let report = run(&SharedMemories { fences, rounds });
        println!("Shared memory, {what}:\n{report}");
        report.assert_kept();
        assert_eq!(report.not_applicable().collect::<Vec<_>>(), SILENT, "clauses that say nothing");
    }
}

#[test]
fn blocks_on_shared_memory_keep_the_contract() {
    let report = run_blocks(&SharedMemories { fences: Fences::default(), rounds: 6_000 });
    println!("Blocks on shared memory:\n{report}");
    report.assert_kept();
    assert_eq!(report.not_applicable().count(), 0, "clauses that say nothing");
}
