//! Number of hops until a message is delivered (NUL-1). A hop is a step of another member, because
//! the members share one memory and each step shows all that its member knows.

use crate::common::{OneMemory, send, settle, with_group};
use tramontane_core::ids::Time;
use tramontane_core::layout::Delivery;
use tramontane_core::multicast::Batch;
use tramontane_core::node::{Node, Progress};
use tramontane_core::smc::Outbox;

/// Messages of one sender until the others count as silent.
const UNTIL_SILENT: u8 = 4;

/// Steps a node, and returns the messages that it delivered.
fn step(node: &mut Node<'_>) -> (Progress, Vec<Vec<u8>>) {
    let mut delivered = Vec::new();
    let mut upcall = |batch: &mut Batch<'_>| {
        delivered.extend(batch.map(|message| message.payload.to_vec()));
    };
    let progress = node.step(Time(0), &mut OneMemory, &mut upcall).expect("it steps");
    (progress, delivered)
}

/// Runs `body` in a group in which all members may send.
fn with_senders(members: u16, body: impl FnOnce(&mut [Node<'_>], &[&Outbox<'_>])) {
    let senders: Vec<u16> = (0..members).collect();
    with_group(members, &senders, (8, 16), Delivery::Ordered, |nodes, outboxes| {
        let outboxes: Vec<_> = outboxes.iter().flatten().collect();
        body(nodes, &outboxes);
    });
}

/// Sends messages of member 0, each of which is delivered everywhere before the next. Returns the
/// number of writes that each member posted for each message.
fn send_alone(nodes: &mut [Node<'_>], outbox: &Outbox<'_>, messages: u8) -> Vec<Vec<u32>> {
    let mut delivered = vec![Vec::new(); nodes.len()];
    let each = (0..messages).map(|message| {
        send(outbox, &[message]).expect("a slot is free");
        settle(nodes, &mut delivered)
    });
    each.collect()
}

/// The frontier that a sender publishes with its message already covers the message, because the
/// silent members have completed the round before.
#[test]
fn message_among_silent_senders_takes_one_hop() {
    for members in 2..=4_u16 {
        with_senders(members, |nodes, outboxes| {
            send_alone(nodes, outboxes[0], UNTIL_SILENT);
            for message in 100..110_u8 {
                send(outboxes[0], &[message]).expect("a slot is free");
                let expected = vec![vec![message]];
                assert_eq!(step(&mut nodes[0]).1, Vec::<Vec<u8>>::new());
                let receivers = &mut nodes[1..];
                let first: Vec<_> = receivers.iter_mut().map(|node| step(node).1).collect();
                // The last member has the frontiers of all the others, and delivers in its first
                // step. The others need its frontier, and nothing more of the sender.
                assert_eq!(first.last(), Some(&expected), "{members} members");
                for (node, first) in receivers.iter_mut().zip(first).rev().skip(1) {
                    assert_eq!((first, step(node).1), (vec![], expected.clone()));
                }
                assert_eq!(step(&mut nodes[0]).1, expected, "the sender, of {members} members");
            }
        });
    }
}

/// A completed round is published by the write of the round before it, and nothing is posted
/// without a message.
#[test]
fn completing_rounds_costs_no_write() {
    for members in 2..=4_u16 {
        with_senders(members, |nodes, outboxes| {
            let writes = send_alone(nodes, outboxes[0], 20);
            // The first message obliges nobody, and the second is answered by a null.
            for later in &writes[2..] {
                for (later, second) in later.iter().zip(&writes[1]) {
                    assert!(later <= second, "{writes:?}");
                }
            }
            for node in nodes {
                assert_eq!(step(node).0.writes, 0);
            }
        });
    }
}

/// Sends a message of member 1 and requires that member 0 delivers it in its next step, once the
/// other members have received it.
fn reply_at_once(nodes: &mut [Node<'_>], outboxes: &[&Outbox<'_>]) {
    send(outboxes[1], b"reply").expect("a slot is free");
    for node in &mut nodes[1..] {
        step(node);
    }
    assert_eq!(step(&mut nodes[0]).1.last(), Some(&b"reply".to_vec()));
}

/// A member that answers every message, or every other, or every third, keeps the round of the
/// newest message for its answer. After a longer silence it completes rounds, and its first answer
/// takes longer.
#[test]
fn reply_of_an_active_sender_takes_one_hop() {
    for requests in 1..=3 {
        with_senders(2, |nodes, outboxes| {
            for _ in 0..20 {
                for _ in 0..requests {
                    send(outboxes[0], b"request").expect("a slot is free");
                    step(&mut nodes[0]);
                    step(&mut nodes[1]);
                }
                reply_at_once(nodes, outboxes);
            }
        });
    }
}

#[test]
fn message_of_a_silent_sender_ends_its_silence() {
    with_senders(2, |nodes, outboxes| {
        for _ in 0..10 {
            send_alone(nodes, outboxes[0], UNTIL_SILENT);
            send(outboxes[1], b"back").expect("a slot is free");
            settle(nodes, &mut [Vec::new(), Vec::new()]);
            send(outboxes[0], b"request").expect("a slot is free");
            step(&mut nodes[0]);
            step(&mut nodes[1]);
            reply_at_once(nodes, outboxes);
        }
    });
}

/// A null of a silent member obliges nobody, so a member that answers keeps the round although
/// another has completed it.
#[test]
fn completed_round_obliges_no_active_sender() {
    with_senders(3, |nodes, outboxes| {
        let mut delivered = vec![Vec::new(); 3];
        for _ in 0..10 {
            for sender in [0, 1] {
                send(outboxes[sender], b"busy").expect("a slot is free");
                settle(nodes, &mut delivered);
            }
        }
        for _ in 0..10 {
            send(outboxes[0], b"request").expect("a slot is free");
            step(&mut nodes[0]);
            assert_eq!(step(&mut nodes[2]).0.nulls, 1, "the silent member completes the round");
            assert_eq!(step(&mut nodes[1]).0.nulls, 0, "the active member does not");
            reply_at_once(nodes, outboxes);
            settle(nodes, &mut delivered);
        }
    });
}
