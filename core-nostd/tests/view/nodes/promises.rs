//! Members of a logged subgroup: the state of the disk before a view is sealed (DUR-6).
//!
//! Each member's log is a list that grows by the messages shown in advance and by those delivered.
//! Its disk is slow: a promise takes a few steps, and so does the next view's memory (VIE-11).

use std::collections::BTreeMap;

use tramontane_core::ids::{NodeId, Time};
use tramontane_core::multicast::{Application, Batch};
use tramontane_core::node::Preparation;
use tramontane_core::view::{Ballot, NextView, Status};

use super::SUBGROUP;
use super::members::{Laid, NodeMember, open_laid};

/// A log: the delivered messages, and those shown in advance after them.
#[derive(Default)]
struct PromisedLog {
    delivered: Vec<Vec<u8>>,
    ahead: Vec<Vec<u8>>,
    shown: u32,
}

impl Application for &mut PromisedLog {
    fn deliver(&mut self, batch: &mut Batch<'_>) {
        for message in batch {
            if !self.ahead.is_empty() {
                assert_eq!(self.ahead.remove(0), message.payload, "it was shown in its place");
            }
            self.delivered.push(message.payload.to_vec());
        }
    }

    fn append(&mut self, batch: &mut Batch<'_>) {
        self.shown += 1;
        self.ahead = batch.map(|message| message.payload.to_vec()).collect();
    }
}

/// A disk on which a promise lands some calls after it was requested.
struct SlowDisk<'d> {
    calls: &'d mut u32,
    /// Number of requests for the next view's memory.
    prepared: &'d mut u32,
    asked: &'d mut Option<(Ballot, Vec<NodeId>)>,
}

impl Preparation for SlowDisk<'_> {
    fn prepare(&mut self, _: NextView<'_>) -> bool {
        *self.prepared += 1;
        *self.prepared > 4
    }

    fn promise(&mut self, next: NextView<'_>, ballot: Ballot) -> bool {
        let asked = Some((ballot, next.members.to_vec()));
        if *self.asked != asked {
            *self.asked = asked;
            *self.calls = 0;
        }
        *self.calls += 1;
        *self.calls > 4
    }
}

/// Steps a member, and asserts that its row has no seal before its promise is on disk and it has
/// the next view's memory.
fn step(
    member: &mut NodeMember,
    log: &mut PromisedLog,
    prepared: &mut u32,
    asked: &mut Option<(Ballot, Vec<NodeId>)>,
    now: u64,
) -> Status {
    let NodeMember { node, fabric, calls, .. } = member;
    let disk = SlowDisk { calls, prepared: &mut *prepared, asked };
    let (_, status) = node.step_logged(Time(now), fabric, &mut &mut *log, disk).expect("it steps");
    if matches!(status, Status::Decided | Status::Installed) {
        assert!(*calls > 4, "it goes on without its promise");
        assert!(*prepared > 4, "it goes on without memory");
    }
    status
}

#[test]
fn log_receives_final_messages_before_sealing() {
    let mut behind = 0;
    for seed in 0..40_u64 {
        let ids: Vec<NodeId> = (1..=4).map(NodeId).collect();
        let laid = Laid { is_logged: true, ..Laid::default() };
        let mut members = open_laid(1, &ids, seed % 2 == 0, seed * 7919 + 1, laid);
        let mut logs: Vec<PromisedLog> = (0..4).map(|_| PromisedLog::default()).collect();
        let (mut asked, mut prepared) = (vec![None; 4], [0; 4]);
        let (mut now, mut sent) = (0, BTreeMap::<usize, u8>::new());
        let victim = seed as usize % 4;
        for turn in 0..4_000_u64 {
            let mut going = false;
            for rank in 0..4 {
                let is_dead = rank == victim && turn > 6 + seed % 7;
                if is_dead {
                    continue;
                }
                if members[rank].fabric.chance(40) && turn < 60 {
                    let outbox = members[rank].node.node().outbox(SUBGROUP).expect("a sender");
                    if let Ok(mut slot) = outbox.reserve(2) {
                        let count = sent.entry(rank).or_default();
                        slot.payload().copy_from_slice(&[rank as u8, *count]);
                        *count += 1;
                        slot.commit();
                    }
                }
                now += 100;
                let before = logs[rank].delivered.len();
                let (log, prepared) = (&mut logs[rank], &mut prepared[rank]);
                let status = step(&mut members[rank], log, prepared, &mut asked[rank], now);
                let decided = matches!(status, Status::Decided | Status::Installed);
                if decided && logs[rank].delivered.len() == before {
                    behind += logs[rank].ahead.len();
                }
                if status == Status::Installed {
                    assert!(logs[rank].shown > 0, "seed {seed}: it was shown before the seal");
                    assert!(logs[rank].ahead.is_empty(), "seed {seed}: all of it was delivered");
                }
                going |= !(status.is_final() && members[rank].node.is_all_posted());
            }
            if !going {
                break;
            }
        }
        let first = (0..4).find(|rank| *rank != victim).expect("a survivor");
        for rank in (0..4).filter(|rank| *rank != victim) {
            assert_eq!(members[rank].node.status(), Status::Installed, "seed {seed}");
            assert_eq!(logs[rank].delivered, logs[first].delivered, "seed {seed}");
        }
    }
    assert!(behind > 20, "only {behind} messages were shown before they were delivered");
}
