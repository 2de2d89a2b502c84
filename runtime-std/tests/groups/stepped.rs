//! Members that are stepped by their caller, in both kinds of group.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use tramontane_core::ids::SubgroupId;
use tramontane_core::smc::ReserveError;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{
    Application, Description, Fate, Forming, Membership, Messages, Stepped, start_stepped,
};
use tramontane_runtime::member::{SendError, Stopped};

use crate::fixed_support::Meeting;
use crate::group_support::{PATIENCE, carriers};

/// Keeps the messages that it receives.
#[derive(Default)]
struct KeptMessages(Vec<Vec<u8>>);

impl Application for KeptMessages {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        self.0.extend(messages.map(|message| message.payload.to_vec()));
    }
}

/// Steps a member until it has delivered `count` messages, and then until it has been idle for a
/// while.
fn drive(member: &mut Stepped<KeptMessages>, count: usize) -> Vec<Vec<u8>> {
    let start = Instant::now();
    let mut rest = 0;
    while member.application().0.len() < count || rest < 2_000 {
        assert!(
            start.elapsed() < PATIENCE,
            "{} of {count} delivered",
            member.application().0.len()
        );
        let stepped = member.step();
        // A step may deliver the last message and then find that the others have left.
        let has_all = member.application().0.len() == count;
        match stepped {
            Ok(step) if step.is_idle() => rest += 1,
            Ok(_) => rest = 0,
            Err(Stopped::PeerLost { .. } | Stopped::Halted { .. }) if has_all => break,
            Err(error) => panic!("{error}"),
        }
        std::thread::yield_now();
    }
    std::mem::take(&mut member.application().0)
}

/// Runs two members, each in its own thread, in both kinds of group and over each fabric.
fn with_members<R: Send>(body: impl Fn(u32, Stepped<KeptMessages>) -> R + Sync) -> Vec<Vec<R>> {
    let mut all = Vec::new();
    for fabric in carriers() {
        for membership in [Membership::Fixed, Membership::Changing] {
            let meeting = Meeting::new(fabric, 2);
            let shape = Description::builder("stepped").nodes(2).window(2).message_max(8);
            all.push(meeting.run(shape, 2, |node, mut description, mut options| {
                description.membership = membership;
                options.forming = Forming { new_group: true, ..Forming::default() };
                let member = start_stepped(description, options, KeptMessages::default());
                body(node, member.expect("it starts"))
            }));
        }
    }
    all
}

/// Panics at the first message, and counts the calls.
#[derive(Default)]
struct PanicsAtFirst(u32);

impl Application for PanicsAtFirst {
    fn deliver(&mut self, _: &mut Messages<'_, '_>) {
        self.0 += 1;
        panic!("told to");
    }
}

/// The clock is read once per several steps. Each step after the end must find the end
/// nevertheless.
#[test]
fn ended_member_delivers_nothing_when_stepped() {
    for membership in [Membership::Fixed, Membership::Changing] {
        let meeting = Meeting::new(Carrier::SharedMemory, 1);
        let shape = Description::builder("panics").nodes(1).window(4).message_max(8);
        meeting.run(shape, 1, |_, mut description, mut options| {
            description.membership = membership;
            options.forming = Forming { new_group: true, ..Forming::default() };
            let application = PanicsAtFirst::default();
            let mut member = start_stepped(description, options, application).expect("it starts");
            // This step reads the clock, and some of the next ones do not.
            member.step().expect("nothing has been sent");
            let mut sender = member.sender().expect("it sends");
            for _ in 0..3 {
                sender.send(b"message", PATIENCE).expect("it is sent");
            }
            let panicked = Stopped::Panicked("told to".to_owned());
            let end = (0..1_000).find_map(|_| member.step().err());
            assert_eq!(end, Some(panicked.clone()), "{membership:?}");
            for _ in 0..200 {
                assert_eq!(member.step().expect_err("it has ended"), panicked);
            }
            assert_eq!(member.application().0, 1, "{membership:?}");
        });
    }
}

/// Node 1 delivers a message whose sender leaves before it has delivered the message itself.
#[test]
fn message_sent_before_fixed_leave_is_unknown() {
    let meeting = Meeting::new(Carrier::SharedMemory, 2);
    let (is_sent, is_delivered) = (Barrier::new(2), Barrier::new(2));
    let shape = Description::builder("leaver").nodes(2).window(2).message_max(8).fixed();
    meeting.run(shape, 2, |node, description, options| {
        let mut member =
            start_stepped(description, options, KeptMessages::default()).expect("it starts");
        if node == 1 {
            is_sent.wait();
            assert_eq!(drive(&mut member, 1), [b"last"]);
            is_delivered.wait();
            return;
        }
        let mut sender = member.sender().expect("a sender");
        let receipt = sender.send(b"last", PATIENCE).expect("a slot is free");
        member.step().expect("it runs");
        is_sent.wait();
        is_delivered.wait();
        member.ask_to_leave();
        // A step after a sleep begins with the requests.
        assert_eq!(member.sleep(Duration::ZERO), Err(Stopped::Left));
        assert_eq!(receipt.fate(), Fate::Unknown);
        let (_, unsent) = member.close();
        assert!(unsent.iter().all(|one| one.was_sent), "{unsent:?}");
        assert_eq!(unsent.len(), 1);
    });
}

#[test]
fn stepped_member_progresses_only_when_stepped() {
    let all = with_members(|node, mut member| {
        let mut sender = member.sender_of(SubgroupId(0)).expect("a sender");
        for number in 0..2 {
            sender.send(&[node as u8, number], PATIENCE).expect("two slots are free");
        }
        assert!(matches!(sender.try_reserve(1), Err(ReserveError::Full)));
        let refused = sender.send(&[], Duration::from_millis(20));
        assert!(matches!(refused, Err(SendError::TimedOut(_))), "{refused:?}");
        let refused = sender.reserve_run(1, Duration::from_millis(20)).map(drop);
        assert!(matches!(refused, Err(SendError::TimedOut(_))), "{refused:?}");
        let refused = sender.send(&[0; 9], PATIENCE);
        assert!(matches!(refused, Err(SendError::TooLarge { length: 9, limit: 8 })), "{refused:?}");
        let delivered = drive(&mut member, 4);
        assert!(member.settle(PATIENCE) || member.stopped().is_some());
        delivered
    });
    for delivered in all {
        assert_eq!(delivered[0], [[0, 0], [1, 0], [0, 1], [1, 1]]);
        assert_eq!(delivered[0], delivered[1]);
    }
}

#[test]
fn every_send_method_returns_a_valid_receipt() {
    with_members(|node, mut member| {
        let mut sender = member.sender_of(SubgroupId(0)).expect("a sender");
        if node == 1 {
            // The other member's messages then need not wait for this node's rounds.
            sender.declare_silence(100);
            assert_eq!(drive(&mut member, 4).len(), 4);
            return;
        }
        let mut receipts = Vec::new();
        let mut run = sender.reserve_run(2, PATIENCE).expect("two slots are free");
        while let Ok(Some(mut slot)) = run.next(1) {
            slot.payload()[0] = 7;
            receipts.push(slot.commit());
        }
        drop(run);
        let mut receipts: Vec<_> = receipts.into_iter().map(|of| sender.receipt(of)).collect();
        assert_eq!(receipts.len(), 2);
        assert!(receipts.iter().all(|receipt| receipt.fate() == Fate::UnderWay));
        assert_eq!(drive(&mut member, 2), [[7], [7]]);
        receipts.push(sender.send_with(1, PATIENCE, |bytes| bytes[0] = 8).expect("it is sent"));
        let mut slot = sender.reserve(3, PATIENCE).expect("a slot is free");
        slot.payload()[0] = 9;
        slot.truncate(1);
        let ordinal = slot.commit();
        receipts.push(sender.receipt(ordinal));
        assert_eq!(drive(&mut member, 2), [[8], [9]]);
        assert!(receipts.iter().all(|receipt| receipt.fate() == Fate::Delivered));
        // If this member left before the other had delivered everything, the other would have no
        // majority.
        assert!(member.settle(PATIENCE) || member.stopped().is_some());
    });
}

#[test]
fn sleeping_member_wakes_for_message_and_leaves() {
    let ends = with_members(|node, mut member| {
        let start = Instant::now();
        let mut sender = member.sender_of(SubgroupId(0)).expect("a sender");
        let mut idle = member.idle();
        if node == 0 {
            std::thread::sleep(Duration::from_millis(50));
            sender.send(b"now", PATIENCE).expect("it is sent");
        }
        while member.application().0.is_empty() {
            assert!(start.elapsed() < PATIENCE, "it slept on");
            let is_idle = member.step().expect("it runs").is_idle();
            if is_idle && idle.pause() {
                member.sleep(Duration::from_millis(100)).expect("it runs");
            }
        }
        if node == 0 {
            return member.leave(PATIENCE).map(|unsent| unsent.len());
        }
        // One member leaves first. That ends a fixed group; in the other kind of group, this member
        // continues, and then leaves at once. Its leave must not deprive the first member of its
        // majority.
        while member.stopped().is_none() && member.status().members.len() == 2 {
            assert!(start.elapsed() < PATIENCE, "the other stays");
            let _ = member.sleep(Duration::from_millis(5));
        }
        if member.stopped().is_some() {
            let _ = member.close();
            return Ok(0);
        }
        member.leave(PATIENCE).map(|unsent| unsent.len())
    });
    assert!(ends.iter().flatten().all(|end| *end == Ok(0)), "{ends:?}");
}
