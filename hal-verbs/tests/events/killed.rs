//! Whole nodes with changing membership whose processes are killed, and members that are cut off.

use super::members::nodes::{self, Seat};
use super::members::{DeviceMembers, LONG_NS, MILLISECOND_NS, node};
use tramontane_core::fabric::{
    BlockStore as _, BlockUse, Blocks as _, Channel, ErrorKind, Fabric as _, HostBlocks as _,
    LossCause, Token, Way,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::view::Status;
use tramontane_verbs::BlockMemory;
use tramontane_verbs::fake::Profile;
use tramontane_verbs::status::WorkStatus;

const STEP_NS: u64 = 5_000;
const BLOCK_BYTES: usize = 4096;
const VICTIM: usize = 1;

/// Nodes, and blocks that all members send to one of them.
struct KilledRun {
    members: DeviceMembers,
    seats: Vec<Seat>,
    /// The memory from which each process sends or into which it receives.
    memories: Vec<BlockMemory>,
    steps: u64,
    /// The status of the first request to the victim, at each of the other members.
    ends: Vec<Option<WorkStatus>>,
}

impl KilledRun {
    fn new(count: usize, seed: u64) -> Self {
        let late = Profile { latency_ns: 2_000 + seed % 7 * 900, ..Profile::strict() };
        let mut members = DeviceMembers::new(&late, count);
        let seats = nodes::start(&mut members);
        // Block memory is allocated last, and therefore destroyed first.
        let memory = |process: usize| {
            let store = members.member(process).fabric.block_store();
            store.memory(BLOCK_BYTES * count, BlockUse::Both).expect("memory")
        };
        let memories = (0..count).map(memory).collect();
        Self { members, seats, memories, steps: 0, ends: vec![None; count] }
    }

    /// Steps all members once, and advances the time.
    fn step(&mut self) {
        self.exchange_blocks();
        for seat in &mut self.seats {
            seat.step(&mut self.members);
        }
        for seat in &self.seats {
            let process = seat.process();
            let fabric = &self.members.members[process].as_ref().expect("it steps").fabric;
            let loss = fabric.loss_of(ViewId(1), Rank(u16::try_from(VICTIM).expect("small")));
            self.ends[process] = self.ends[process].or(loss.and_then(|loss| loss.status));
        }
        let next = self.members.network.now_ns() + STEP_NS;
        self.members.run_until(next);
        self.steps += 1;
    }

    /// Posts as many blocks as possible in the first view, from all other members to the one that
    /// will be killed.
    fn exchange_blocks(&mut self) {
        let way = |peer: usize| Way {
            view: ViewId(1),
            channel: Channel(0),
            peer: Rank(u16::try_from(peer).expect("small")),
        };
        let Self { members, memories, .. } = self;
        let senders: Vec<usize> =
            (0..members.members.len()).filter(|process| *process != VICTIM).collect();
        if let Some(victim) = &mut members.members[VICTIM] {
            for sender in &senders {
                let area = memories[VICTIM].area(BLOCK_BYTES * sender);
                let _ = victim.fabric.post_receive(way(*sender), area, BLOCK_BYTES, Token(0));
            }
            while victim.fabric.poll_block().is_some() {}
        }
        for sender in senders {
            let Some(member) = &mut members.members[sender] else { continue };
            let area = memories[sender].area(0);
            let _ = member.fabric.send(way(VICTIM), area, BLOCK_BYTES, 0, Token(0));
            while member.fabric.poll_block().is_some() {}
        }
    }

    /// Returns whether all survivors are in the next view, without the one that was killed.
    fn is_over(&self, survivors: &[NodeId]) -> bool {
        let is_there = |seat: &Seat| {
            seat.place() == (ViewId(2), Status::Steady) && seat.members() == survivors
        };
        self.seats.iter().all(|seat| is_there(seat) && seat.reaches_all(&self.members))
    }
}

/// Runs a group in which one member is killed after `kill_after` steps. Returns the status of
/// requests to it.
fn survive(count: usize, kill_after: u64, object_ns: u64) -> Vec<Option<WorkStatus>> {
    let mut run = KilledRun::new(count, kill_after);
    let what = format!("killed after {kill_after} steps, {object_ns} ns an object");
    while run.steps < kill_after {
        run.step();
    }
    run.seats.retain(|seat| seat.process() != VICTIM);
    run.members.kill(VICTIM, object_ns);
    let survivors: Vec<NodeId> =
        (0..count).filter(|process| *process != VICTIM).map(node).collect();
    let most = run.steps + 100 * MILLISECOND_NS / STEP_NS;
    while !run.is_over(&survivors) {
        run.step();
        for seat in &run.seats {
            let (view, status) = seat.place();
            let process = seat.process();
            assert!(
                !matches!(status, Status::Halted(_)),
                "{what}: {process} in {view}: {status:?}"
            );
        }
        assert!(
            run.steps < most,
            "{what}: {:?}",
            run.seats.iter().map(Seat::place).collect::<Vec<_>>()
        );
    }
    run.ends
}

/// The kernel destroys the newest objects first: block memory has been destroyed while queue pairs
/// still answer, so they refuse requests.
#[test]
fn survivors_continue_with_any_destruction_order() {
    let (mut refused, mut silent) = (0, 0);
    for moment in 0..36 {
        let (count, object_ns) = if moment % 3 == 0 { (5, 20_000) } else { (3, 1 + moment * 300) };
        // The earliest of these moments precede the first view.
        for end in survive(count, moment * 7, object_ns) {
            refused += u64::from(end == Some(WorkStatus::RemoteAccess));
            silent += u64::from(end == Some(WorkStatus::RetriesExceeded));
        }
    }
    println!("{refused} survivors were refused, {silent} had no answer");
    assert!(refused > 20, "{refused} survivors were refused: this is what the test is for");
}

/// A cut is a message from a live peer, so the side channel reports it whatever the device has
/// reported before.
#[test]
fn side_channel_informs_disconnected_member() {
    let mut members = DeviceMembers::new(&Profile::strict(), 2);
    members.open(ViewId(1), &[0, 1]);
    members.losses();
    members.member(0).fabric.cut(ViewId(1), Rank(1));
    assert_eq!(members.post(ViewId(1), 1, 5), [Ok(())], "it does not know yet");
    members.pass(LONG_NS);
    assert_eq!(members.losses(), [(1, ViewId(1), Rank(0), LossCause::Denied)]);
    assert_eq!(members.post(ViewId(1), 1, 6), [Err(ErrorKind::Revoked)]);
}
