//! How many messages each stage of a step takes at once, and when a step posts.

use crate::common::{Carries, OneMemory, fabric, send, with_options};
use core::cell::RefCell;
use tramontane_core::fabric::{Capabilities, ErrorKind, Write};
use tramontane_core::ids::{NodeId, Rank, Time};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::multicast::{Application, Batch, EachMessage, Message, Switches};
use tramontane_core::node::{Node, Options, Progress};
use tramontane_core::smc::Outbox;

/// Number of messages that are waiting when a step begins.
const WAITING: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Happening {
    Delivered { messages: usize },
    Posted { writes: usize },
}

/// Records each post.
struct Recorder<'l>(&'l RefCell<Vec<Happening>>);

impl Carries for Recorder<'_> {
    fn limits(&self) -> Capabilities {
        OneMemory.limits()
    }
    fn carry(&mut self, _: Rank, writes: &[Write]) -> Result<(), ErrorKind> {
        self.0.borrow_mut().push(Happening::Posted { writes: writes.len() });
        Ok(())
    }
}

fabric!(Recorder<'_>);

/// Opens a group with these members, senders and options.
fn with_senders(
    members: &[Rank],
    senders: &[Rank],
    delivery: Delivery,
    options: Options,
    body: impl FnOnce(&mut [Node<'_>], &[Option<Outbox<'_>>]),
) {
    let ids: Vec<NodeId> = members.iter().map(|rank| NodeId(u32::from(rank.0))).collect();
    let subgroups = [Subgroup { members, senders, window: 8, message_max: 16, delivery }];
    let layout = Layout::new(Group { members: &ids, subgroups: &subgroups }).expect("a good group");
    with_options(&layout, options, |nodes, outboxes, _| body(nodes, outboxes));
}

/// Opens two members; the first is the only sender.
fn with_pair(switches: Switches, body: impl FnOnce(&mut Node<'_>, &mut Node<'_>, &Outbox<'_>)) {
    let options = Options { switches, ..Options::default() };
    let ranks = [Rank(0), Rank(1)];
    with_senders(&ranks, &ranks[..1], Delivery::Ordered, options, |nodes, outboxes| {
        let [sender, receiver] = nodes else { panic!("two members") };
        body(sender, receiver, outboxes[0].as_ref().expect("a sender"));
    });
}

/// Steps the node, and returns its deliveries and posts in order.
fn step(node: &mut Node<'_>) -> (Progress, Vec<Happening>) {
    let log = RefCell::new(Vec::new());
    let mut application = |batch: &mut Batch<'_>| {
        log.borrow_mut().push(Happening::Delivered { messages: batch.count() });
    };
    let progress = node.step(Time(0), &mut Recorder(&log), &mut application).expect("it steps");
    (progress, log.into_inner())
}

fn send_all(outbox: &Outbox<'_>) {
    for message in 0..WAITING {
        send(outbox, &message.to_le_bytes()).expect("a slot is free");
    }
}

/// BAT-1: returns the number of waiting messages that the sender's first step sends, and the
/// numbers that the receiver's first step then receives and delivers.
fn taken_at_once(switches: Switches) -> (u32, u32, u64) {
    let mut taken = (0, 0, 0);
    with_pair(switches, |sender, receiver, outbox| {
        send_all(outbox);
        let sent = step(sender).0.sent;
        let (did, _) = step(receiver);
        taken = (sent, did.received, did.delivered);
    });
    taken
}

#[test]
fn unbatched_stage_handles_one_message_per_step() {
    let all = Switches::all();
    assert_eq!(taken_at_once(all), (WAITING, WAITING, u64::from(WAITING)));
    assert_eq!(taken_at_once(all.difference(Switches::SEND_BATCHING)), (1, 1, 1));
    assert_eq!(taken_at_once(all.difference(Switches::RECEIVE_BATCHING)), (WAITING, 1, 1));
    assert_eq!(taken_at_once(all.difference(Switches::DELIVERY_BATCHING)), (WAITING, WAITING, 1));
}

/// BAT-1: with receive batching off, a step receives one message, from any sender that has one.
#[test]
fn unbatched_step_receives_from_any_active_sender() {
    let ranks = [Rank(0), Rank(1), Rank(2)];
    let switches = Switches::all().difference(Switches::RECEIVE_BATCHING);
    let options = Options { switches, ..Options::default() };
    with_senders(&ranks, &ranks, Delivery::Ordered, options, |nodes, outboxes| {
        send_all(outboxes[2].as_ref().expect("a sender"));
        step(&mut nodes[2]);
        for _ in 0..WAITING {
            assert_eq!(step(&mut nodes[0]).0.received, 1);
        }
        assert_eq!(step(&mut nodes[0]).0.received, 0);
    });
}

/// Opens three members that all send and whose steps take at most `messages_max` messages.
fn with_limit(
    delivery: Delivery,
    messages_max: u32,
    body: impl FnOnce(&mut [Node<'_>], &[Option<Outbox<'_>>]),
) {
    let ranks = [Rank(0), Rank(1), Rank(2)];
    let options = Options { messages_max, ..Options::default() };
    with_senders(&ranks, &ranks, delivery, options, body);
}

/// COR-1: a step takes messages from as many senders as are needed to reach its limit.
#[test]
fn limited_step_receives_messages_from_several_senders() {
    with_limit(Delivery::Ordered, 3, |nodes, outboxes| {
        for (outbox, node) in outboxes[1..].iter().flatten().zip(&mut nodes[1..]) {
            send(outbox, &[1]).expect("a slot is free");
            send(outbox, &[2]).expect("a slot is free");
            step(node);
        }
        assert_eq!([step(&mut nodes[0]).0.received, step(&mut nodes[0]).0.received], [3, 1]);
    });
}

/// COR-1: a sender that always has messages does not keep a limited step from taking another
/// sender's.
#[test]
fn limited_steps_serve_senders_in_turn() {
    with_limit(Delivery::Unordered, 1, |nodes, outboxes| {
        for (outbox, node) in outboxes[1..].iter().flatten().zip(&mut nodes[1..]) {
            for _ in 0..3 {
                send(outbox, &[1]).expect("a slot is free");
                step(node);
            }
        }
        let mut ranks = Vec::new();
        for _ in 0..6 {
            let mut take = |batch: &mut Batch<'_>| ranks.extend(batch.map(|one| one.rank.0));
            nodes[0].step(Time(0), &mut OneMemory, &mut take).expect("it steps");
        }
        assert_eq!(ranks, [1, 2, 1, 2, 1, 2]);
    });
}

/// BAT-2, BAT-4: the received and delivered frontiers go out together, in one write.
#[test]
fn receiver_acknowledges_a_window_with_one_write() {
    with_pair(Switches::all(), |sender, receiver, outbox| {
        send_all(outbox);
        step(sender);
        let (did, happened) = step(receiver);
        assert_eq!((did.received, did.delivered), (WAITING, u64::from(WAITING)));
        assert_eq!(happened.last(), Some(&Happening::Posted { writes: 1 }));
        assert_eq!((did.lists, did.writes), (1, 1));
    });
}

/// BAT-3.
#[test]
fn late_posting_delays_posts_until_after_upcalls() {
    let delivered = Happening::Delivered { messages: 5 };
    for late in [true, false] {
        let mut switches = Switches::all();
        switches.set(Switches::LATE_POSTING, late);
        with_pair(switches, |sender, receiver, outbox| {
            send_all(outbox);
            step(sender);
            let (_, happened) = step(receiver);
            let upcall = happened.iter().position(|one| *one == delivered).expect("an upcall");
            let (before, behind) = (&happened[..upcall], &happened[upcall + 1..]);
            assert_eq!(before.is_empty(), late, "{happened:?}");
            assert!(!behind.is_empty(), "what was delivered is told: {happened:?}");
        });
    }
}

/// DEL-1: delivers the waiting messages to an application.
fn calls(application: &mut impl Application) {
    with_pair(Switches::all(), |sender, receiver, outbox| {
        send_all(outbox);
        step(sender);
        receiver.step(Time(0), &mut OneMemory, application).expect("it steps");
    });
}

/// DEL-1.
#[test]
fn upcall_receives_whole_batch_or_single_messages() {
    let mut batches = Vec::new();
    calls(&mut |batch: &mut Batch<'_>| {
        let (least, most) = batch.size_hint();
        assert!(least <= WAITING as usize && most >= Some(WAITING as usize), "{least}, {most:?}");
        batches.push(batch.map(|message| message.payload.to_vec()).collect::<Vec<_>>());
    });
    let expected: Vec<_> = (0..WAITING).map(|message| message.to_le_bytes().to_vec()).collect();
    assert_eq!(batches, std::slice::from_ref(&expected));
    let mut messages = Vec::new();
    calls(&mut EachMessage(|message: Message<'_>| messages.push(message.payload.to_vec())));
    assert_eq!(messages, expected);
}
