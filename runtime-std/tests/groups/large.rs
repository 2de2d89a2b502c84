//! Large messages of a group, sent by block multicast, in one order with all other messages, across
//! views (RDM-7).

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::group_support::{Crowd, IMPATIENCE, PATIENCE, carriers, message, send_large};
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{SendLargeError, Sender};
use tramontane_runtime::member::{SendError, Stopped};

const MAX: usize = 4 << 20;

fn crowd(carrier: Carrier, nodes: u32) -> Crowd {
    Crowd::with_large(carrier, nodes, u64::try_from(MAX).expect("it is small"))
}

/// Lengths around the boundaries of blocks, and the minimum length.
const LENGTHS: [usize; 7] = [16, 100, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3_000_000, MAX];

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

#[test]
fn large_and_small_messages_share_one_order() {
    for carrier in carriers() {
        let mut crowd = crowd(carrier, 3);
        crowd.start_all(&[0, 1, 2]);
        let mut last = None;
        for (turn, bytes) in (0..).zip(LENGTHS) {
            for node in 0..3 {
                crowd.send(node, 2 * turn);
                last = Some(crowd.send_large(node, 2 * turn + 1, bytes));
            }
        }
        crowd.await_all_of(&[0, 1, 2], &[0, 1, 2], 14);
        crowd.assert_same(&[0, 1, 2]);
        crowd.await_fate(&last.expect("some were sent"));
    }
}

/// The racks' nodes are not adjacent in the group file, and one rack loses its first members.
#[test]
fn members_in_racks_receive_large_messages() {
    let nodes = [0, 1, 2, 3, 4, 5];
    for carrier in carriers() {
        let mut crowd = crowd(carrier, 6).in_racks(&["b", "a", "b", "a", "b", "a"]);
        crowd.start_all(&nodes);
        for number in 0..3 {
            nodes.iter().for_each(|node| drop(crowd.send_large(*node, number, 2_500_000)));
        }
        crowd.await_all_of(&nodes, &nodes, 3);
        for (killed, left, number) in [(0, &[1, 2, 3, 4, 5][..], 3), (2, &[1, 3, 4, 5], 4)] {
            crowd.kill(killed);
            left.iter().for_each(|node| drop(crowd.send_large(*node, number, 2_500_000)));
            crowd.await_all_of(left, left, number + 1);
            crowd.assert_same(left);
        }
    }
}

/// Even if no message is longer than a block, a pipeline sends two blocks.
#[test]
fn longest_large_message_may_fit_in_one_block() {
    for carrier in carriers() {
        let mut crowd = Crowd::with_large(carrier, 3, 10_240);
        crowd.start_all(&[0, 1, 2]);
        for (number, bytes) in (0..).zip([10_240, 16, 5_000]) {
            for node in 0..3 {
                crowd.send_large(node, number, bytes);
            }
        }
        crowd.await_all_of(&[0, 1, 2], &[0, 1, 2], 3);
        crowd.assert_same(&[0, 1, 2]);
    }
}

/// A large message, and the time when it was sent.
type HandedOver = (u64, Instant);

/// Sends small and large messages in turn, until told to stop or until the member ends. Returns the
/// number of messages, and the large ones.
fn send_on(
    mut sender: Sender,
    node: u32,
    from: u64,
    seed: u64,
    is_over: &AtomicBool,
) -> (u64, Vec<HandedOver>) {
    let mut dice = Dice(seed ^ u64::from(node));
    let (mut number, mut large) = (from, Vec::new());
    while !is_over.load(Ordering::Relaxed) {
        let is_sent = if dice.below(2) == 0 {
            sender.send(&message(node, number), PATIENCE).is_ok()
        } else {
            let bytes = 16 + usize::try_from(dice.below(3 << 20)).expect("it is small");
            let is_sent = send_large(&mut sender, node, number, bytes, PATIENCE).is_ok();
            large.push((number, Instant::now()));
            is_sent
        };
        if !is_sent {
            break;
        }
        number += 1;
    }
    (number, large)
}

/// Sets the flag when dropped, so that a failing test stops its senders.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The way in which a member dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    /// The member closes everything.
    Closed,
    /// The member stops stepping while everything stays open. It wakes long after the others have
    /// continued without it.
    Stuck,
}

/// Makes a member die at a random moment while all members send. The survivors deliver the same
/// messages: everything that survivors have sent, and a prefix of what the dead member has sent.
/// Returns the number of large messages from survivors that were interrupted and resent.
fn one_dies(carrier: Carrier, death: Death, seed: u64) -> usize {
    let mut dice = Dice(seed);
    let mut crowd = crowd(carrier, 4).impatient();
    crowd.start_all(&[0, 1, 2, 3]);
    let victim = u32::try_from(dice.below(4)).expect("it is small");
    let living: Vec<u32> = (0..4).filter(|node| *node != victim).collect();
    let told = Arc::clone(&crowd.told[&victim]);
    let is_over = AtomicBool::new(false);
    let (died, sent) = std::thread::scope(|scope| {
        let sending: Vec<_> = (0..4)
            .map(|node| {
                let (sender, is_over) = (crowd.sender(node), &is_over);
                scope.spawn(move || send_on(sender, node, 0, seed, is_over))
            })
            .collect();
        let over = Over(&is_over);
        std::thread::sleep(Duration::from_millis(20 + dice.below(80)));
        let died = if death == Death::Closed {
            let died = Instant::now();
            crowd.kill(victim);
            std::thread::sleep(Duration::from_millis(100));
            died
        } else {
            // The member receives the next message, and waits for this lock.
            let stuck = told.lock().expect("nobody panics");
            crowd.await_members(&living, &living);
            // By then, the other members' windows have long been full of messages that this member
            // does not forward, but no member has suspected it yet.
            let died = Instant::now() - IMPATIENCE / 2;
            drop(stuck);
            crowd.await_stopped(victim, |stopped| matches!(stopped, Stopped::Halted { .. }));
            died
        };
        drop(over);
        let sent: Vec<_> =
            sending.into_iter().map(|sending| sending.join().expect("it sends")).collect();
        (died, sent)
    });
    let mut again = 0;
    for (node, (count, large)) in (0..).zip(&sent).filter(|(node, _)| *node != victim) {
        crowd.await_all_of(&living, &[node], *count);
        let cut = large.iter().filter(|(_, handed)| *handed < died);
        again +=
            cut.filter(|(number, _)| crowd.view_of(living[0], (node, *number)) > Some(1)).count();
    }
    crowd.assert_same(&living);
    let of_victim = crowd.messages_at(living[0]).into_iter().filter(|(node, _)| *node == victim);
    assert!(
        (0..).zip(of_victim).all(|(place, (_, number))| place == number),
        "its first, each once"
    );
    again
}

/// Returns the seed of a run: `TRAMONTANE_LARGE_SEED`, or else the clock.
fn seed() -> u64 {
    match std::env::var("TRAMONTANE_LARGE_SEED") {
        Ok(seed) => seed.parse().expect("TRAMONTANE_LARGE_SEED is a number"),
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs(),
    }
}

#[test]
fn others_continue_if_member_dies_during_large_messages() {
    let seed = seed();
    println!("TRAMONTANE_LARGE_SEED={seed}");
    let rounds = [Death::Closed, Death::Stuck, Death::Closed, Death::Stuck];
    for carrier in carriers() {
        let mut again = 0;
        for (turn, death) in (0..).zip(rounds) {
            again += one_dies(carrier, death, seed.wrapping_mul(10).wrapping_add(turn));
        }
        println!("{carrier:?}: {again} large messages were cut off, and sent again");
        assert!(again > 0, "inconclusive: nobody died in the middle of a large message");
    }
}

#[test]
fn joiner_receives_and_sends_large_messages() {
    for carrier in carriers() {
        let mut crowd = crowd(carrier, 3);
        crowd.start_all(&[0, 1, 2]);
        crowd.send_large(0, 0, MAX);
        crowd.leave(2);
        crowd.send_large(1, 0, MAX);
        let is_over = AtomicBool::new(false);
        let sent = std::thread::scope(|scope| {
            let (sender, over) = (crowd.sender(0), &is_over);
            let sending = scope.spawn(move || send_on(sender, 0, 1, 7, over));
            // The node restores the state while messages arrive, and those after the state are
            // replayed.
            crowd.start(2);
            is_over.store(true, Ordering::Relaxed);
            sending.join().expect("it sends").0
        });
        crowd.send_large(2, 0, 100_000);
        crowd.await_all_of(&[0, 1, 2], &[0], sent);
        crowd.await_all_of(&[0, 1, 2], &[1, 2], 1);
        crowd.assert_same_with_state(&[0, 1, 2]);
        // The last member has no other member to send blocks to.
        crowd.leave(2);
        crowd.leave(1);
        let receipt = crowd.send_large(0, sent, MAX);
        crowd.await_all_of(&[0], &[0], sent + 1);
        crowd.await_fate(&receipt);
    }
}

#[test]
fn large_window_bounds_large_messages_in_flight() {
    let mut crowd = crowd(Carrier::SharedMemory, 2);
    crowd.start_all(&[0, 1]);
    let told = std::sync::Arc::clone(&crowd.told[&1]);
    // The application is slow: its member receives the next message, and then nothing.
    let busy = told.lock().expect("nobody panics");
    crowd.send_large(0, 0, 1_000_000);
    crowd.send_large(0, 1, 1_000_000);
    let mut sender = crowd.sender(0);
    let unsent = send_large(&mut sender, 0, 2, 1_000_000, Duration::from_millis(100));
    let unsent = unsent.expect_err("two are under way");
    assert!(matches!(unsent.why, SendLargeError::Send(SendError::TimedOut(_))), "{unsent}");
    assert_eq!(unsent.buffer.expect("it comes back").len(), 1_000_000);
    // Small messages pass, as far as there are slots.
    crowd.send(0, 2);
    crowd.await_all_of(&[0], &[0], 1);
    let (stopped, unsent) = crowd.close(0);
    drop(busy);
    assert_eq!(stopped, Stopped::Closed);
    let lengths: Vec<usize> = unsent.iter().map(|one| one.payload.len()).collect();
    assert_eq!(lengths, [1_000_000, 16], "the second large one, and what came after it");
    assert_eq!(unsent[0].payload[8], 1);
}

#[test]
fn refused_large_send_returns_buffer() {
    let mut crowd = crowd(Carrier::SharedMemory, 1);
    crowd.start(0);
    let mut sender = crowd.sender(0);
    assert_eq!(sender.large_max(), Some(MAX));
    assert!(matches!(sender.buffer(MAX + 1), Err(SendLargeError::TooLarge { limit: MAX, .. })));
    let buffer = sender.buffer(10).expect("there is memory");
    let unsent = sender.send_large(buffer, 11, PATIENCE).expect_err("it is longer than its buffer");
    assert!(matches!(unsent.why, SendLargeError::TooLarge { bytes: 11, limit: 10 }), "{unsent}");
    let mut small = Crowd::of(Carrier::SharedMemory, 1);
    small.start(0);
    let mut sender = small.sender(0);
    let unsent = sender.send_large(unsent.buffer.expect("it comes back"), 10, PATIENCE);
    assert!(matches!(unsent.expect_err("it takes none").why, SendLargeError::NotAllowed));
    assert!(matches!(sender.buffer(10), Err(SendLargeError::NotAllowed)));
}

#[test]
fn unordered_large_messages_keep_sender_order() {
    for carrier in carriers() {
        let mut crowd = crowd(carrier, 3).unordered();
        crowd.start_all(&[0, 1, 2]);
        for number in 0..6 {
            for node in 0..3 {
                crowd.send_large(node, number, 300_000);
            }
        }
        crowd.await_all_of(&[0, 1, 2], &[0, 1, 2], 6);
    }
}
