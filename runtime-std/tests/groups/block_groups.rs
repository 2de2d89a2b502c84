//! Groups for block multicast. Their nodes are threads of this process, over each fabric, including
//! RDMA if there is a device (`hal-verbs/lab/ci groups`) or a fake one is requested.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::block_group_support::*;
use tramontane_core::fabric::LossCause;
use tramontane_core::ids::NodeId;
use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::{Cause, OpenError, Window};
use tramontane_runtime::blocks::{
    Buffer, CloseFailure, CreateError, Ended, GroupOptions, Recipient, SendRefusal,
};
use tramontane_runtime::member::Stopped;

#[test]
fn every_member_receives_whole_messages_in_order() {
    let sizes = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 7 * BLOCK + 3, 100 * BLOCK];
    let racks = std::num::NonZeroU16::new(2).expect("two");
    let algorithms = [
        Algorithm::Pipeline,
        Algorithm::Sequential,
        Algorithm::Interleaved,
        Algorithm::Chain,
        Algorithm::Tree,
        Algorithm::Hybrid { racks },
    ];
    Crowd::each(5, |crowd| {
        for (number, algorithm) in (0..).zip(algorithms) {
            let members = [2, 0, 4, 1, 3];
            let parts = crowd.create_all(number, &members, GroupOptions { algorithm, ..OPTIONS });
            let root = &parts[0].group;
            for (message, bytes) in (0..).zip(sizes) {
                let buffer = crowd.filled(2, &content(message, bytes));
                assert_eq!(root.send(buffer, bytes).expect("it is sent"), message);
            }
            assert_eq!(root.close(PATIENCE), Ok(Ended::Closed));
            for part in &parts {
                for (message, bytes) in (0..).zip(sizes) {
                    part.expect_message(message, &content(message, bytes));
                }
                assert_eq!(part.expect_end(), Ended::Closed);
            }
        }
    });
}

#[test]
fn overlapping_groups_wait_for_late_members() {
    Crowd::each(3, |crowd| {
        let rotations = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        let roots: Vec<Part> = (0..)
            .zip(rotations)
            .map(|(number, members)| {
                crowd.create(members[0], number, &members, OPTIONS, usize::MAX)
            })
            .collect();
        for (number, (part, members)) in (0..).zip(roots.iter().zip(rotations)) {
            for message in 0..10 {
                let bytes = content(number * 100 + message, 5 * BLOCK);
                part.group.send(crowd.filled(members[0], &bytes), bytes.len()).expect("it is sent");
            }
        }
        // The other members create the group after everything has been sent.
        for (number, members) in (0..).zip(rotations) {
            let late = members[1..]
                .iter()
                .map(|id| crowd.create(*id, number, &members, OPTIONS, usize::MAX));
            for part in late.collect::<Vec<_>>() {
                for message in 0..10 {
                    part.expect_message(message, &content(number * 100 + message, 5 * BLOCK));
                }
            }
        }
        for part in roots {
            assert_eq!(part.group.close(PATIENCE), Ok(Ended::Closed));
        }
    });
}

#[test]
fn failed_memory_allocation_ends_only_that_group() {
    Crowd::each(3, |crowd| {
        let members = [0, 1, 2];
        let other = crowd.create_all(7, &members, OPTIONS);
        let room = |id| if id == 1 { 4 * BLOCK } else { usize::MAX };
        let parts: Vec<Part> =
            members.iter().map(|id| crowd.create(*id, 3, &members, OPTIONS, room(*id))).collect();
        let root = &parts[0].group;
        for bytes in [3 * BLOCK, 30 * BLOCK] {
            root.send(crowd.filled(0, &content(0, bytes)), bytes).expect("it is sent");
        }
        let failed = Ended::Failed { node: NodeId(1), cause: Cause::NoMemory };
        for part in &parts {
            part.expect_message(0, &content(0, 3 * BLOCK));
            assert_eq!(part.expect_end(), failed);
        }
        let refused = root.send(crowd.filled(0, &[1]), 1).expect_err("it is over");
        assert_eq!(refused.why, SendRefusal::Ended(failed));
        other[0].group.send(crowd.filled(0, &content(9, BLOCK)), BLOCK).expect("it is sent");
        for part in &other {
            part.expect_message(0, &content(9, BLOCK));
        }
    });
}

#[test]
fn leaving_node_ends_only_its_own_groups() {
    Crowd::each(4, |mut crowd| {
        let with = crowd.create_all(0, &[0, 1, 2, 3], OPTIONS);
        let without = crowd.create_all(1, &[1, 0, 2], OPTIONS);
        let own = crowd.create_all(2, &[3, 1], OPTIONS);
        with[0].group.send(crowd.filled(0, &content(1, 9 * BLOCK)), 9 * BLOCK).expect("it is sent");
        for part in &with {
            part.expect_message(0, &content(1, 9 * BLOCK));
        }
        drop(crowd.nodes[3].take());
        assert_eq!(with[3].expect_end(), Ended::Stopped(Stopped::Closed));
        assert_eq!(own[0].expect_end(), Ended::Stopped(Stopped::Closed));
        for part in with[..3].iter().chain(&own[1..]) {
            let Ended::Failed { node, cause } = part.expect_end() else {
                panic!("it was not closed")
            };
            assert_eq!(node, NodeId(3));
            let is_loss = matches!(
                cause,
                Cause::Lost(LossCause::Left | LossCause::Exited | LossCause::Unreachable)
            );
            assert!(is_loss, "{cause:?}");
        }
        without[0]
            .group
            .send(crowd.filled(1, &content(2, 40 * BLOCK)), 40 * BLOCK)
            .expect("it is sent");
        for part in &without {
            part.expect_message(0, &content(2, 40 * BLOCK));
        }
        assert_eq!(without[0].group.close(PATIENCE), Ok(Ended::Closed));
    });
}

#[test]
fn refused_block_message_returns_reason_and_buffer() {
    Crowd::each(2, |crowd| {
        let parts = crowd.create_all(0, &[0, 1], OPTIONS);
        let refused =
            parts[1].group.send(crowd.filled(1, &[5]), 1).expect_err("it is not the root");
        assert_eq!((refused.why, refused.buffer[0]), (SendRefusal::NotRoot, 5));
        let why = |bytes, limit| {
            let sent = parts[0].group.send(crowd.filled(0, &vec![1; limit]), bytes);
            sent.expect_err("too large").why
        };
        let most = 100 * BLOCK;
        assert_eq!(why(most + 1, most + 1), SendRefusal::TooLarge { bytes: most + 1, limit: most });
        assert!(
            matches!(why(most, most / 2), SendRefusal::TooLarge { .. }),
            "more than the buffer has"
        );
        assert_eq!(parts[1].group.close(PATIENCE), Err(CloseFailure::NotRoot));
        let again = |members: &[NodeId], number| {
            let (told, _) = mpsc::channel();
            let keeper = Keeper { store: crowd.node(0).store().clone(), told, room: 0 };
            crowd.node(0).create(number, members, OPTIONS, keeper).expect_err("it is refused")
        };
        let both = [NodeId(0), NodeId(1)];
        assert!(matches!(again(&both, 0), CreateError::NumberUsed(0)));
        assert!(matches!(again(&[NodeId(0), NodeId(2)], 1), CreateError::Unknown(NodeId(2))));
        assert!(matches!(again(&[NodeId(1)], 2), CreateError::Open(_)));
        assert!(matches!(again(&both, 1 << 20), CreateError::NumberTooLarge(_)));
        assert_eq!(parts[0].group.close(PATIENCE), Ok(Ended::Closed));
        assert_eq!(parts[1].group.wait(PATIENCE), Some(Ended::Closed));
    });
}

#[test]
fn closing_block_group_refuses_messages() {
    Crowd::each(2, |crowd| {
        let root = crowd.create(0, 3, &[0, 1], OPTIONS, usize::MAX);
        let bytes = content(1, 3 * BLOCK);
        root.group.send(crowd.filled(0, &bytes), bytes.len()).expect("it is sent");
        // The other member is late, so the group cannot have ended.
        let short = Duration::from_millis(1);
        assert_eq!(root.group.close(short), Err(CloseFailure::TimedOut(short)));
        let refused = root.group.send(crowd.filled(0, &[5]), 1).expect_err("it closes");
        assert_eq!((refused.why, refused.buffer[0]), (SendRefusal::Closing, 5));
        let late = crowd.create(1, 3, &[0, 1], OPTIONS, usize::MAX);
        assert_eq!(root.group.close(PATIENCE), Ok(Ended::Closed));
        late.expect_message(0, &bytes);
        assert_eq!(late.expect_end(), Ended::Closed);
        let refused = root.group.send(crowd.filled(0, &[5]), 1).expect_err("it is over");
        assert_eq!(refused.why, SendRefusal::Ended(Ended::Closed));
    });
}

#[test]
fn refused_excessive_window_frees_the_group_number() {
    Crowd::each(2, |crowd| {
        let both = [NodeId(0), NodeId(1)];
        let wrong = |window| {
            let (told, _) = mpsc::channel();
            let keeper = Keeper { store: crowd.node(0).store().clone(), told, room: 0 };
            crowd
                .node(0)
                .create(3, &both, GroupOptions { window, ..OPTIONS }, keeper)
                .expect_err("it is refused")
        };
        for window in [Window { receives: 1000, sends: 2 }, Window { receives: 2, sends: 1000 }] {
            let refused = wrong(window);
            assert!(
                matches!(refused, CreateError::Open(OpenError::Window)),
                "{window:?}: {refused}"
            );
        }
        let parts = crowd.create_all(3, &[0, 1], OPTIONS);
        assert_eq!(parts[0].group.close(PATIENCE), Ok(Ended::Closed));
        assert!(matches!(wrong(OPTIONS.window), CreateError::NumberUsed(3)), "over, and not free");
    });
}

/// Blocks its node at the first message until it is released.
struct SlowRecipient {
    begun: Sender<()>,
    go_on: Receiver<()>,
}

impl Recipient for SlowRecipient {
    fn incoming(&mut self, _: u64, _: usize) -> Option<Buffer> {
        let _ = self.begun.send(());
        // With a time limit, because if it had not confirmed the close before, all members would
        // wait for it.
        let _ = self.go_on.recv_timeout(PATIENCE / 4);
        None
    }

    fn completed(&mut self, _: u64, _: Buffer, _: usize) {}
}

/// Two members know that the group is closed, and leave while the third is stalled. The third then
/// finds both the decision and their departure.
#[test]
fn leaving_closed_group_does_not_fail_others() {
    Crowd::each(3, |mut crowd| {
        let root = crowd.create(0, 0, &[0, 1, 2], OPTIONS, usize::MAX);
        let third = crowd.create(2, 0, &[0, 1, 2], OPTIONS, usize::MAX);
        let short = Duration::from_millis(200);
        assert_eq!(root.group.close(short), Err(CloseFailure::TimedOut(short)), "one is not there");
        let ((begun, begins), (release, go_on)) = (mpsc::channel(), mpsc::channel());
        let holding = crowd.create(0, 1, &[0, 2], OPTIONS, usize::MAX);
        let pair = [NodeId(0), NodeId(2)];
        let _held = crowd
            .node(2)
            .create(1, &pair, OPTIONS, SlowRecipient { begun, go_on })
            .expect("a group");
        holding.group.send(crowd.filled(0, &[1]), 1).expect("it is sent");
        begins.recv_timeout(PATIENCE).expect("it stands still");
        let second = crowd.create(1, 0, &[0, 1, 2], OPTIONS, usize::MAX);
        assert_eq!(root.group.close(PATIENCE), Ok(Ended::Closed));
        assert_eq!(second.group.wait(PATIENCE), Some(Ended::Closed));
        drop(crowd.nodes[1].take());
        drop(crowd.nodes[0].take());
        let _ = release.send(());
        assert_eq!(third.expect_end(), Ended::Closed);
    });
}

/// Panics at the first message.
struct Careless(Arc<Mutex<bool>>);

impl Recipient for Careless {
    fn incoming(&mut self, _: u64, _: usize) -> Option<Buffer> {
        *self.0.lock().expect("nobody panics with it") = true;
        panic!("careless")
    }

    fn completed(&mut self, _: u64, _: Buffer, _: usize) {}
}

#[test]
fn application_panic_stops_node_and_ends_waits() {
    Crowd::each(2, |mut crowd| {
        let asked = Arc::new(Mutex::new(false));
        let both = [NodeId(0), NodeId(1)];
        let root = crowd.create(0, 4, &[0, 1], OPTIONS, 0);
        let careless = crowd.node(1).create(4, &both, OPTIONS, Careless(Arc::clone(&asked)));
        let careless = careless.expect("a group");
        root.group.send(crowd.filled(0, &[1; 10]), 10).expect("it is sent");
        let Some(Ended::Stopped(Stopped::Panicked(text))) = careless.wait(PATIENCE) else {
            panic!("{:?}", careless.ended())
        };
        assert!(text.contains("careless") && *asked.lock().expect("nobody holds it"));
        assert!(crowd.node(1).stopped().is_some());
        let late = crowd.node(1).create(5, &both, OPTIONS, Careless(asked));
        assert!(
            matches!(late, Err(CreateError::Stopped(Stopped::Panicked(_)))),
            "nobody answers: {late:?}"
        );
        drop(crowd.nodes[1].take());
        let Some(Ended::Failed { node, .. }) = root.group.wait(PATIENCE) else {
            panic!("{:?}", root.group.ended())
        };
        assert_eq!(node, NodeId(1));
    });
}
