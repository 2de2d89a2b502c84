//! The shared-memory fabric keeps the contract: several members in one process, each with its own files and
//! mappings, as processes have them; two members race in two threads.
//!
//! `cargo test -p tramontane-conformance --test contract_shared_memory -- --nocapture` prints the verdicts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tramontane_conformance::contract::{
    Actor, BLOCK_BYTES_MIN, Bench, BlockBench, Breach, MEMBERS, Next, ROW_BYTES_MIN, Seat, Testbed, VIEW,
    Wake, run, run_blocks,
};
use tramontane_core::fabric::{ErrorKind, Fabric, FabricError, Region, ViewMemory};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::memory::{Row, RowWriter};
use tramontane_runtime::shared_memory::{
    self, BlockMemory, Fences, GroupName, Mappings, Rendezvous, Root, RowPlan, SharedMemory,
};

/// Longer than a machine that does something else as well takes to ring.
const SLEEP_MAX: Duration = Duration::from_secs(5);

/// Longer than any race takes.
const RACE_MAX: Duration = Duration::from_secs(120);

/// Groups in a folder of their own, with doorbells of one kind.
struct SharedMemories {
    fences: Fences,
    rounds: u64,
}

impl Testbed for SharedMemories {
    type Bench<'b> = Group3;

    fn with(&self, scene: impl FnOnce(&mut Group3)) {
        // Beside the real thing, or wherever there is room: on a disk it works as well.
        let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a folder");
        let root = Root::under(folder.path());
        let members = join_all(&root, self.fences);
        scene(&mut Group3 { members, rounds: self.rounds });
    }
}

/// All members join, each in a thread of its own, since each waits for the others.
fn join_all(root: &Root, fences: Fences) -> Vec<Option<Member>> {
    let ids: Vec<NodeId> = (0..MEMBERS).map(|rank| NodeId(u32::from(rank) + 10)).collect();
    let ranks: Vec<Rank> = (0..MEMBERS).map(Rank).collect();
    let window = u32::try_from(ROW_BYTES_MIN.div_ceil(64)).expect("a small row");
    let subgroups =
        [Subgroup { members: &ranks, senders: &ranks, window, message_max: 52, delivery: Delivery::Ordered }];
    let layout = Layout::new(Group { members: &ids, subgroups: &subgroups }).expect("a group");
    assert!(layout.row_bytes(Rank(0)) >= ROW_BYTES_MIN);
    let group = GroupName::new("contract").expect("a name");
    let never = AtomicBool::new(false);
    let join = |own: Rank| -> Result<Mappings, shared_memory::Error> {
        let plan = RowPlan::of_layout(&layout).with_blocks();
        let rendezvous = Rendezvous::of_rows(root, &group, plan, own)?.with_fences(fences);
        rendezvous.join(Duration::from_secs(30), &never)
    };
    std::thread::scope(|scope| {
        let joining: Vec<_> = ranks.iter().map(|own| scope.spawn(move || join(*own))).collect();
        joining
            .into_iter()
            .map(|member| member.join().expect("no panic").expect("it joins"))
            .map(|mappings| Some(Member::new(mappings)))
            .collect()
    })
}

struct Member {
    fabric: SharedMemory,
    mappings: Mappings,
    blocks: BlockMemory,
}

impl Member {
    fn new(mappings: Mappings) -> Self {
        let mut fabric = SharedMemory::new(&mappings);
        let blocks = mappings.residence().block_memory(BLOCK_BYTES_MIN).expect("memory");
        fabric.lend_blocks(&blocks).expect("of the same process");
        Self { fabric, mappings, blocks }
    }
}

/// Three members; one that was lost is gone.
struct Group3 {
    members: Vec<Option<Member>>,
    rounds: u64,
}

impl Group3 {
    fn member(&self, rank: Rank) -> &Member {
        self.members[rank.index()].as_ref().expect("nobody uses who was lost")
    }

    fn member_mut(&mut self, rank: Rank) -> &mut Member {
        self.members[rank.index()].as_mut().expect("nobody uses who was lost")
    }
}

impl Bench for Group3 {
    type Fabric = SharedMemory;

    fn fabric(&mut self, member: Rank) -> &mut SharedMemory {
        &mut self.member_mut(member).fabric
    }

    fn open(&mut self, member: Rank) -> Result<(), ErrorKind> {
        let Member { fabric, mappings, .. } = self.member_mut(member);
        let rows = mappings.rows();
        let memory =
            ViewMemory { own: mappings.own(), members: mappings.members(), row: mappings.row(), rows: &rows };
        fabric.open(VIEW, &memory).map_err(|error| error.kind())
    }

    fn row(&self, member: Rank) -> RowWriter<'_> {
        self.member(member).mappings.row()
    }

    fn copy(&self, holder: Rank, owner: Rank) -> Row<'_> {
        self.member(holder).mappings.rows()[owner.index()]
    }

    fn pass(&mut self) {
        // Of lists nothing is ever under way. Blocks are, and go on at members that wait for something else.
        for member in self.members.iter_mut().flatten() {
            member.fabric.carry_blocks();
        }
        std::thread::yield_now();
    }

    fn settle(&mut self) {
        // What a member's timer does, and blocks: a few pieces each.
        for _ in 0..8 {
            self.pass();
        }
        for member in self.members.iter_mut().flatten() {
            member.fabric.check_peers();
        }
    }

    fn sleep(&mut self, member: Rank) -> Wake {
        sleep(&mut self.member_mut(member).fabric)
    }

    fn lose(&mut self, member: Rank) -> Result<(), &'static str> {
        // As a process that ends gives back its locks, without having said that it leaves.
        self.members[member.index()] = None;
        Ok(())
    }

    fn rounds(&self) -> u64 {
        self.rounds
    }

    fn race(&mut self, actors: [(Rank, &mut dyn Actor<SharedMemory>); 2]) -> Result<(), Breach> {
        let stop = AtomicBool::new(false);
        let mut members: Vec<Option<&mut Member>> = self.members.iter_mut().map(Option::as_mut).collect();
        std::thread::scope(|scope| {
            let racing = actors.map(|(rank, actor)| {
                let member = members[rank.index()].take().expect("two different members");
                let stop = &stop;
                scope.spawn(move || {
                    let ended = act(member, actor, stop);
                    if ended.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    ended
                })
            });
            let [first, second] = racing.map(|thread| thread.join().expect("no panic"));
            first.and(second)
        })
    }
}

impl BlockBench for Group3 {
    fn block_region(&self) -> Region {
        self.member(Rank(0)).blocks.region()
    }

    fn fill_blocks(&mut self, member: Rank, offset: usize, bytes: &[u8]) {
        self.member_mut(member).blocks.write(offset, bytes).expect("inside");
    }

    fn look_blocks(&mut self, member: Rank, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.member(member).blocks.read(offset, &mut bytes).expect("inside");
        bytes
    }
}

fn sleep(fabric: &mut SharedMemory) -> Wake {
    let until = Instant::now() + SLEEP_MAX;
    loop {
        match fabric.sleep(until.saturating_duration_since(Instant::now())) {
            shared_memory::Wake::Rung => return Wake::Rung,
            // A signal, or the late half of an earlier ring, ends a sleep early.
            shared_memory::Wake::Unrung if Instant::now() < until => {}
            shared_memory::Wake::Unrung => return Wake::Overslept,
        }
    }
}

/// Gives an actor its turns until it is done, or the other found a breach.
fn act(member: &mut Member, actor: &mut dyn Actor<SharedMemory>, stop: &AtomicBool) -> Result<(), Breach> {
    let until = Instant::now() + RACE_MAX;
    let Member { fabric, mappings, .. } = member;
    let (row, rows) = (mappings.row(), mappings.rows());
    let mut slept = None;
    let mut turns = 0_u32;
    while !stop.load(Ordering::Relaxed) {
        match actor.turn(&mut Seat { fabric: &mut *fabric, row, rows: &rows }, slept.take())? {
            Next::Done => return Ok(()),
            Next::Sleep => slept = Some(sleep(fabric)),
            Next::Turn => {}
        }
        turns = turns.wrapping_add(1);
        if turns.is_multiple_of(1024) {
            if Instant::now() > until {
                return Err(Breach(format!("after {RACE_MAX:?} the two members are not done")));
            }
            // Both may have to share a processor.
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// What says nothing about memory that is shared: nothing is carried, so nothing is carried late or queued.
const SILENT: [&str; 5] = [
    "queue-full-refused-whole",
    "queue-full-passes",
    "queue-full-alone",
    "guard-as-posted",
    "content-until-completed",
];

#[test]
fn shared_memory_keeps_the_contract() {
    // Who pays for the fences matters to the doorbell alone, so the second run hunts less.
    let kinds = [("the sleeper pays", Fences::Sleeper, 60_000), ("both ends fence", Fences::Both, 6_000)];
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
