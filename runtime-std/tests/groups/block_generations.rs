//! Tests more groups on a node than a view has channels: the supply of numbers is unlimited, and
//! nothing from an old group reaches a new one.

use std::collections::VecDeque;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use tramontane_core::fabric::LossCause;
use tramontane_core::ids::NodeId;
use tramontane_core::rdmc::transfer::Cause;
use tramontane_runtime::blocks::{CloseFailure, CreateError, Ended};
use tramontane_runtime::carrier::Carrier;

use crate::block_group_support::*;
use crate::fixed_support::Meeting;
use crate::group_support::carriers_of_processes;

/// The number of group numbers that have channels in one view.
const GENERATION: u64 = 1024;

/// The delay, in groups, after which the other members create a group that the root has created.
const LATE: usize = 100;

/// Random numbers that never repeat: the splitmix64 of Steele, Lea and Flood.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }
}

/// A group whose root has sent everything and is closing the group.
struct Begun {
    number: u64,
    members: Vec<u32>,
    sizes: Vec<usize>,
    /// The member that has no memory for the first message, if any.
    fails: Option<u32>,
    root: Part,
}

impl Begun {
    /// Begins a group of 2 or 3 of the nodes, with any of them as the root. One group in 32 fails
    /// with blocks in flight.
    fn begin(crowd: &Crowd, number: u64, dice: &mut Dice) -> Self {
        let mut members = vec![0, 1, 2];
        members.rotate_left(dice.below(3) as usize);
        members.truncate(2 + dice.below(2) as usize);
        let fails = (dice.below(32) == 0).then(|| members[1]);
        let fewest = u64::from(fails.is_some());
        let sizes = (0..fewest + dice.below(3)).map(|_| dice.below(4 * BLOCK as u64) as usize);
        let sizes: Vec<usize> = sizes.collect();
        let root = crowd.create(members[0], number, &members, OPTIONS, usize::MAX);
        for (message, bytes) in (0..).zip(&sizes) {
            let buffer = crowd.filled(members[0], &content(8 * number + message, *bytes));
            root.group.send(buffer, *bytes).expect("it is sent");
        }
        // The group may end before others have begun.
        let closed = root.group.close(Duration::ZERO);
        assert!(matches!(closed, Err(CloseFailure::TimedOut(_)) | Ok(Ended::Closed)), "{closed:?}");
        Self { number, members, sizes, fails, root }
    }

    /// Creates the group at the other members, late. Each receives exactly what belongs to this
    /// group.
    fn end(self, crowd: &Crowd) {
        let Self { number, members, sizes, fails, root } = self;
        let room = |id| if fails == Some(id) { 0 } else { usize::MAX };
        let others =
            members[1..].iter().map(|id| crowd.create(*id, number, &members, OPTIONS, room(*id)));
        for part in std::iter::once(root).chain(others.collect::<Vec<_>>()) {
            let Some(node) = fails.map(NodeId) else {
                for (message, bytes) in (0..).zip(&sizes) {
                    part.expect_message(message, &content(8 * number + message, *bytes));
                }
                assert_eq!(part.expect_end(), Ended::Closed, "group {number}");
                continue;
            };
            assert_eq!(part.expect_end(), Ended::Failed { node, cause: Cause::NoMemory });
        }
    }
}

#[test]
fn channels_are_reused_with_blocks_in_flight() {
    Crowd::each(3, |crowd| {
        let mut dice = Dice(13);
        let mut begun = VecDeque::new();
        let mut number = 0;
        // Most channels are used more than once, and out of order.
        while number < 3 * GENERATION + 100 {
            begun.push_back(Begun::begin(&crowd, number, &mut dice));
            number += 1 + dice.below(6);
            if begun.len() > LATE {
                begun.pop_front().expect("it is there").end(&crowd);
            }
        }
        begun.into_iter().for_each(|group| group.end(&crowd));
    });
}

#[test]
fn open_group_delays_groups_reusing_its_channel() {
    Crowd::each(2, |crowd| {
        let both = [0, 1];
        let first = crowd.create_all(0, &both, OPTIONS);
        let second = crowd.create_all(2 * GENERATION - 1, &both, OPTIONS);
        let refused = |number| {
            let (told, _heard) = mpsc::channel();
            let keeper = Keeper { store: crowd.node(0).store().clone(), told, room: 0 };
            crowd.node(0).create(number, &[NodeId(0), NodeId(1)], OPTIONS, keeper).err()
        };
        assert!(matches!(refused(9 * GENERATION), Some(CreateError::NumberTooLarge(_))));
        std::thread::scope(|scope| {
            let (created, creation) = mpsc::channel();
            let crowd = &crowd;
            scope.spawn(move || {
                let _ = created.send(crowd.create(0, 2 * GENERATION, &both, OPTIONS, usize::MAX));
            });
            let early = creation.recv_timeout(Duration::from_millis(500));
            assert!(early.is_err(), "the first group is open");
            // The node works as before.
            let bytes = content(1, 9 * BLOCK);
            first[0].group.send(crowd.filled(0, &bytes), bytes.len()).expect("it is sent");
            first[1].expect_message(0, &bytes);
            assert_eq!(first[0].group.close(PATIENCE), Ok(Ended::Closed));
            let third = creation.recv_timeout(PATIENCE).expect("it goes on");
            let other = crowd.create(1, 2 * GENERATION, &both, OPTIONS, usize::MAX);
            third.group.send(crowd.filled(0, &bytes), bytes.len()).expect("it is sent");
            other.expect_message(0, &bytes);
            assert_eq!(third.group.close(PATIENCE), Ok(Ended::Closed));
        });
        assert!(matches!(refused(1), Some(CreateError::NumberPassed(1))));
        assert_eq!(second[0].group.close(PATIENCE), Ok(Ended::Closed));
    });
}

const ALL: [u32; 3] = [0, 1, 2];
const KILLED: u32 = 2;

/// Does nothing unless this program was started again to play this role. Takes part in one group
/// after another until it is killed, as a member that announces nothing.
#[test]
fn role_take_part_until_killed() {
    let Ok(role) = std::env::var("TRAMONTANE_ROLE") else { return };
    let crowd = Crowd::of_one(Meeting::of_role(&role), KILLED, 3);
    for number in 0.. {
        let part = crowd.create(0, number, &ALL, OPTIONS, usize::MAX);
        if part.group.wait(PATIENCE) != Some(Ended::Closed) {
            return;
        }
    }
}

#[test]
fn killed_process_ends_only_its_own_groups() {
    std::thread::scope(|scope| {
        for fabric in carriers_of_processes() {
            scope.spawn(move || kill_during_a_group(fabric));
        }
    });
}

/// Kills a process during a group whose channel has been used before. The others use this channel
/// again.
fn kill_during_a_group(fabric: Carrier) {
    const LAST: u64 = GENERATION + 10;
    const END: u64 = LAST + GENERATION + 10;
    let mut meeting = Meeting::new(fabric, 3);
    meeting.leave_listening_to_another(KILLED);
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "block_generations::role_take_part_until_killed"])
        .env("TRAMONTANE_ROLE", meeting.role())
        .stdout(Stdio::null())
        .spawn()
        .expect("a child");
    let crowd = Crowd::of(meeting, 2, 3);
    let begin = |number, members: &[u32], blocks| {
        let parts = [0, 1].map(|id| crowd.create(id, number, members, OPTIONS, usize::MAX));
        let bytes = content(number, blocks * BLOCK);
        parts[0].group.send(crowd.filled(0, &bytes), bytes.len()).expect("it is sent");
        (parts, bytes)
    };
    let end = |(parts, bytes): ([Part; 2], Vec<u8>)| {
        assert_eq!(parts[0].group.close(PATIENCE), Ok(Ended::Closed));
        parts.iter().for_each(|part| part.expect_message(0, &bytes));
        parts.iter().for_each(|part| assert_eq!(part.expect_end(), Ended::Closed));
    };
    (0..LAST).for_each(|number| end(begin(number, &ALL, 3)));
    let (with, _) = begin(LAST, &ALL, 100);
    let without = begin(LAST + 1, &ALL[..2], 3);
    child.kill().expect("killed");
    child.wait().expect("ended");
    for part in &with {
        let Ended::Failed { node, cause } = part.expect_end() else { panic!("{fabric:?}") };
        assert_eq!(node, NodeId(KILLED), "{fabric:?}");
        // A post may be refused before the fabric has reported the reason.
        let is_dead = matches!(cause, Cause::Lost(LossCause::Exited | LossCause::Unreachable));
        assert!(is_dead, "{fabric:?}: {cause:?}");
    }
    end(without);
    (LAST + 2..END).for_each(|number| end(begin(number, &ALL[..2], 3)));
    // A group with a node that was lost long ago does not wait for that node.
    for id in [0, 1] {
        let part = crowd.create(id, END, &ALL, OPTIONS, usize::MAX);
        let is_failed = matches!(part.expect_end(), Ended::Failed { node: NodeId(KILLED), .. });
        assert!(is_failed, "{fabric:?}");
    }
}
