//! The cost of whole nodes of the core: for known messages, all counters equal the design's
//! predictions.
//!
//! One member sends one message at a time. All members step in turn, and every post lands before
//! the next step. A message then costs each pair of members:
//!
//! | member | step | list to each peer |
//! |---|---|---|
//! | 0, which sends | it publishes, and counts its own message as received | the message, its counter, its frontiers |
//! | 1 to the last | it received | its frontiers; the last also delivers |
//! | 0, and 1 to the last but one | it delivers | its frontiers |

use std::time::Duration;

use tramontane_verbs::{Counters, Limits};

use super::group::nodes::{NodeSeat, with_nodes};
use super::wait_for;

/// Posted bytes of a message of 1000 B with its length and its counter: a multiple of 8, without
/// the padding of its slot.
const POSTED: u64 = 1016;
const FRONTIERS: u64 = 24;

/// Number of messages: many laps of the ring, and a multiple of the requests between two
/// completions.
const MESSAGES: u64 = 320;

/// Waits until every copy of a member's row equals the row, that is, until all its posts have
/// landed.
fn land(seats: &[NodeSeat<'_>], owner: usize) {
    let bytes = |seat: &NodeSeat<'_>| {
        let row = seat.rows[owner];
        let mut bytes = vec![0; row.bytes()];
        row.read(0, &mut bytes).expect("the whole row");
        bytes
    };
    let own = bytes(&seats[owner]);
    wait_for("what was posted", Duration::from_secs(20), || {
        seats.iter().all(|seat| bytes(seat) == own)
    });
}

/// Steps every seat in turn, twice, letting all writes land between steps. Returns each seat's
/// number of posted lists and writes.
fn turns(seats: &mut [NodeSeat<'_>]) -> Vec<(u32, u32)> {
    let mut posted = vec![(0, 0); seats.len()];
    for _ in 0..2 {
        for index in 0..seats.len() {
            let progress = seats[index].step();
            posted[index].0 += progress.lists;
            posted[index].1 += progress.writes;
            land(seats, index);
        }
    }
    posted
}

/// Returns the counters of one member's fabric, after its last completions have arrived.
fn counted(seat: &mut NodeSeat<'_>) -> Counters {
    wait_for("the completions", Duration::from_secs(20), || {
        seat.fabric.collect();
        let counters = seat.fabric.counters();
        counters.completions == counters.signalled
    });
    *seat.fabric.counters()
}

/// Returns the predicted lists and writes per message to each peer, by rank.
fn predicted(members: usize) -> Vec<(u64, u64)> {
    let mut costs = vec![(2, 2); members];
    costs[0] = (2, 4);
    costs[members - 1] = (1, 1);
    costs
}

fn assert_costs(members: u16) {
    with_nodes(members, Limits::default(), |seats| {
        let mut progress = vec![(0, 0); seats.len()];
        for number in 0..MESSAGES {
            assert!(
                seats[0].send(number),
                "a slot is free: the last message was delivered everywhere"
            );
            for (sum, (lists, writes)) in progress.iter_mut().zip(turns(seats)) {
                *sum = (sum.0 + u64::from(lists), sum.1 + u64::from(writes));
            }
        }
        let peers = u64::from(members) - 1;
        for (rank, (lists, writes)) in predicted(seats.len()).into_iter().enumerate() {
            assert_eq!(seats[rank].delivered, MESSAGES);
            let counters = counted(&mut seats[rank]);
            println!("{MESSAGES} messages, member {rank} of {members}: {counters:?}");
            let (lists, writes) = (lists * peers * MESSAGES, writes * peers * MESSAGES);
            assert_eq!(progress[rank], (lists, writes), "what the core says that it posted");
            let messages = if rank == 0 { peers * MESSAGES } else { 0 };
            let expected = Counters {
                lists,
                writes,
                // Each list ends with the frontiers.
                bytes: messages * POSTED + lists * FRONTIERS,
                // All except the messages themselves, which are longer than the device sends
                // inline.
                inline: writes - messages,
                doorbells: lists,
                // Each connection carries 4, 2 or 1 requests per message, and 32 is a multiple of
                // each.
                signalled: writes / 32,
                completions: writes / 32,
                ..Counters::default()
            };
            assert_eq!(counters, expected);
        }
    });
}

#[test]
fn message_costs_two_doorbells_and_four_writes() {
    assert_costs(2);
    assert_costs(3);
}

#[test]
fn address_order_merges_message_and_counter() {
    let limits = Limits { address_order: Some(true), signal_every: 1, ..Limits::default() };
    with_nodes(2, limits, |seats| {
        for number in 0..MESSAGES {
            assert!(seats[0].send(number));
            turns(seats);
        }
        let counters = counted(&mut seats[0]);
        println!("{MESSAGES} messages with address order: {counters:?}");
        assert_eq!((counters.lists, counters.writes), (2 * MESSAGES, 3 * MESSAGES));
        assert_eq!(counters.bytes, MESSAGES * (POSTED + 2 * FRONTIERS));
        assert_eq!(counters.inline, 2 * MESSAGES);
        assert_eq!((counters.doorbells, counters.signalled), (2 * MESSAGES, 2 * MESSAGES));
        assert_eq!(seats[1].delivered, MESSAGES);
    });
}

#[test]
fn waiting_messages_share_one_post() {
    with_nodes(2, Limits::default(), |seats| {
        for burst in 0..40 {
            for number in 0..8 {
                assert!(seats[0].send(burst * 8 + number), "the window has eight slots");
            }
            turns(seats);
        }
        let counters = counted(&mut seats[0]);
        println!("40 bursts of 8 messages: {counters:?}");
        // 8 messages and their counters fill a list of 16; the frontiers are sent in a second list,
        // and in a third after the delivery.
        assert_eq!((counters.lists, counters.doorbells), (40 * 3, 40 * 3));
        assert_eq!(counters.writes, 40 * 18);
        let other = counted(&mut seats[1]);
        assert_eq!((other.lists, other.writes), (40, 40), "one acknowledgement for eight messages");
        assert_eq!(seats[1].delivered, 320);
    });
}
