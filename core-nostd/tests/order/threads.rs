//! Members stepped by one thread each, and other threads that build messages, over one memory.
//!
//! `.ci/miri` runs this too, and reports any two unordered accesses of a payload.

use crate::common::{OneMemory, send, with_group};
use tramontane_core::ids::Time;
use tramontane_core::layout::Delivery;
use tramontane_core::multicast::Batch;
use tramontane_core::node::Node;
use tramontane_core::smc::Outbox;

const BUILDERS: u8 = 2;
/// Number of messages that each building thread sends.
const MESSAGES: u8 = if cfg!(miri) { 5 } else { 250 };
/// Limit on steps or tries: far more than a run needs unless it is stuck.
const TRIES: u32 = 100_000_000;

#[test]
fn concurrently_built_messages_keep_each_threads_order() {
    with_group(2, &[0, 1], (3, 16), Delivery::Ordered, |nodes, outboxes| {
        let delivered: Vec<Vec<Vec<u8>>> = std::thread::scope(|threads| {
            for (sender, outbox) in (0..).zip(outboxes.iter().flatten()) {
                for builder in 0..BUILDERS {
                    threads.spawn(move || build(outbox, sender * BUILDERS + builder));
                }
            }
            let stepping: Vec<_> =
                nodes.iter_mut().map(|node| threads.spawn(move || step(node))).collect();
            stepping.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert_eq!(delivered[0], delivered[1]);
        let mut next = [0; 2 * BUILDERS as usize];
        for message in &delivered[0] {
            let author = usize::from(message[0]);
            assert_eq!(*message, payload(message[0], next[author]), "of {author}");
            next[author] += 1;
        }
        assert_eq!(next, [MESSAGES; 2 * BUILDERS as usize]);
    });
}

/// Returns a payload whose length varies and whose bytes, except the first, hold its number.
fn payload(author: u8, number: u8) -> Vec<u8> {
    let mut payload = vec![number; 2 + usize::from(number % 15)];
    payload[0] = author;
    payload
}

fn build(outbox: &Outbox<'_>, author: u8) {
    for number in 0..MESSAGES {
        let payload = payload(author, number);
        let sent = (0..TRIES).any(|_| {
            let sent = send(outbox, &payload).is_ok();
            if !sent {
                std::thread::yield_now();
            }
            sent
        });
        assert!(sent, "no slot becomes free");
    }
}

/// Steps until all messages from all threads have been delivered.
fn step(node: &mut Node<'_>) -> Vec<Vec<u8>> {
    let expected = 2 * usize::from(BUILDERS) * usize::from(MESSAGES);
    let mut delivered = Vec::new();
    for tried in 0..TRIES {
        let mut take =
            |batch: &mut Batch<'_>| delivered.extend(batch.map(|message| message.payload.to_vec()));
        node.step(Time(u64::from(tried)), &mut OneMemory, &mut take).expect("it steps");
        if delivered.len() >= expected {
            return delivered;
        }
        std::thread::yield_now();
    }
    panic!("{} of {expected} messages are delivered", delivered.len())
}
