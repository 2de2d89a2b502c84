//! The verdict compared with a model that counts members one by one and examines every record
//! separately.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::answers::{Disk, OwnedLog, Promised, with_restart};
use tramontane_core::ids::DurableCount;
use tramontane_core::restart::{LogNote, Verdict, Want};

type Disks = Vec<(u32, Disk)>;

/// The model's verdict, in plain numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Said {
    NoGroup,
    Waits(u64, Want, BTreeSet<u32>),
    Goes { members: Vec<u32>, adopted: bool, ends: Vec<Option<u64>> },
}

struct NaiveModel<'a> {
    disks: &'a Disks,
    subgroups: &'a [Vec<u32>],
    with_less: bool,
}

impl NaiveModel<'_> {
    /// Returns a node's answer, if it has any state of the group.
    fn any_disk(&self, node: u32) -> Option<&Disk> {
        let found = self.disks.iter().find(|(other, _)| *other == node).map(|(_, disk)| disk);
        found.filter(|disk| disk.decided.is_some() || disk.logs.iter().any(Option::is_some))
    }

    /// Returns a node's answer if it counts: each of its logs is the original one, and has at least
    /// what the newest view has seen of it.
    fn disk(&self, node: u32) -> Option<&Disk> {
        self.any_disk(node).filter(|disk| {
            self.with_less
                || disk.logs.iter().flatten().all(has_its_end) && self.is_up_to_date(node)
        })
    }

    fn base(&self) -> Option<(u64, Vec<u32>)> {
        self.disks.iter().filter_map(|(_, disk)| disk.decided.clone()).max_by_key(|view| view.0)
    }

    /// Returns the logs of a subgroup at all nodes that know the newest view.
    fn logs_in_base(&self, at: usize) -> Vec<&OwnedLog> {
        let base = self.base().map(|base| base.0);
        let knowing = self.disks.iter().filter(|(_, disk)| {
            disk.decided.as_ref().is_some_and(|decided| Some(decided.0) == base)
        });
        knowing.filter_map(|(_, disk)| disk.logs[at].as_ref()).collect()
    }

    fn is_up_to_date(&self, node: u32) -> bool {
        let (Some(base), Some(disk)) = (self.base(), self.any_disk(node)) else { return true };
        let restarts = disk.promise.as_ref().is_some_and(|promise| promise.ballot.0 > 0);
        if restarts || !base.1.contains(&node) {
            return true;
        }
        let mut ours = (0..self.subgroups.len()).filter(|at| self.subgroups[*at].contains(&node));
        ours.all(|at| {
            let seen = self.logs_in_base(at).iter().map(|log| log.note.everywhere.0).max();
            let seen = seen.unwrap_or(0);
            let is_in_base = disk.decided.as_ref().is_some_and(|decided| decided.0 == base.0);
            let end = disk.logs[at].as_ref().map_or(0, |log| log.end);
            seen == 0 || is_in_base && end >= seen
        })
    }

    /// Returns the only node that knows the newest view, if most members of the previous view
    /// remained in it.
    fn unsupported(&self, base: &(u64, Vec<u32>)) -> Option<u32> {
        let knows = |disk: &Disk| disk.decided.as_ref().map(|decided| decided.0);
        let of_base: Vec<_> =
            self.disks.iter().filter(|(_, disk)| knows(disk) == Some(base.0)).collect();
        let [(claimant, disk)] = of_base[..] else { return None };
        let others = || self.disks.iter().filter(|(node, _)| node != claimant);
        let before = others().filter_map(|(_, disk)| disk.decided.clone());
        let before = before.max_by_key(|view| view.0)?;
        if self.with_less || disk.with_less.is_some_and(|id| id > before.0) {
            return None;
        }
        let stays = |(node, disk): &&(u32, Disk)| {
            let promised = disk.promise.as_ref().map_or(0, |promise| promise.id);
            before.1.contains(node) && knows(disk) == Some(before.0) && promised <= before.0
        };
        (others().filter(stays).count() * 2 > before.1.len()).then_some(*claimant)
    }

    fn has_whole_log(&self, node: u32, base: u64) -> bool {
        self.disk(node).is_some_and(|disk| {
            self.with_less
                || disk.decided.as_ref().is_some_and(|decided| decided.0 >= base)
                || disk.promise.as_ref().is_some_and(|promise| promise.id == base)
        })
    }

    /// Returns what a view still lacks.
    fn missing(&self, members: &[u32]) -> Option<(Want, BTreeSet<u32>)> {
        let everybody: BTreeSet<u32> = members.iter().copied().collect();
        let mut quorums = vec![(Want::Majority, everybody.clone())];
        for (at, subgroup) in self.subgroups.iter().enumerate() {
            let concerned = everybody.iter().copied().filter(|node| subgroup.contains(node));
            quorums.push((Want::SubgroupMajority(at), concerned.collect()));
        }
        for (want, all) in quorums {
            let (here, away): (BTreeSet<u32>, BTreeSet<u32>) =
                all.iter().partition(|node| self.disk(**node).is_some());
            let enough = if self.with_less { !here.is_empty() } else { here.len() > away.len() };
            if !enough && !all.is_empty() {
                let away = away.into_iter().filter(|node| self.any_disk(*node).is_none());
                return Some((want, away.collect()));
            }
        }
        None
    }

    fn says(&self) -> Said {
        let decided = self.disks.iter().filter_map(|(_, disk)| disk.decided.clone());
        let Some(base) = decided.max_by_key(|view| view.0) else { return Said::NoGroup };
        if let Some(node) = self.unsupported(&base) {
            let away = base.1.iter().copied().filter(|of| self.any_disk(*of).is_none()).collect();
            let want = Want::Support(tramontane_core::ids::NodeId(node));
            return Said::Waits(base.0, want, away);
        }
        let mut promises: Vec<&Promised> =
            self.disks.iter().filter_map(|(_, disk)| disk.promise.as_ref()).collect();
        promises.retain(|promise| promise.id == base.0 + 1);
        promises.sort_by_key(|promise| promise.ballot);
        let promise = promises.last().copied().filter(|promise| !promise.members.is_empty());
        if let Some((want, away)) = self.missing(&base.1) {
            return Said::Waits(base.0, want, away);
        }
        let next = promise.map(|promise| (promise.id, promise.members.clone()));
        if let Some(next) = &next
            && let Some((want, away)) = self.missing(&next.1)
        {
            return Said::Waits(next.0, want, away);
        }
        for at in 0..self.subgroups.len() {
            let (all, away) = self.concerned(at, &base);
            if !all.is_empty() && !all.iter().any(|node| self.has_whole_log(*node, base.0)) {
                return Said::Waits(base.0, Want::WholeLog(at), away);
            }
        }
        let mut ends = Vec::new();
        for at in 0..self.subgroups.len() {
            match self.end(at, &base, promise) {
                Ok(end) => {
                    let durable = self.logs_in_base(at).iter().map(|log| log.note.majority.0).max();
                    let durable = durable.unwrap_or(0);
                    if end.is_some_and(|end| end < durable) && !self.with_less {
                        let want = Want::Durable(at, DurableCount(durable));
                        return Said::Waits(base.0, want, self.concerned(at, &base).1);
                    }
                    ends.push(end);
                }
                Err(lost) => {
                    let want = Want::Record(at, DurableCount(lost));
                    return Said::Waits(base.0, want, self.concerned(at, &base).1);
                }
            }
        }
        let here = base.1.iter().copied().filter(|node| self.disk(*node).is_some());
        let members = next.as_ref().map_or_else(|| here.collect(), |next| next.1.clone());
        Said::Goes { members, adopted: next.is_some(), ends }
    }

    /// Returns the members of a subgroup in the base, and those of them that have not answered.
    fn concerned(&self, at: usize, base: &(u64, Vec<u32>)) -> (BTreeSet<u32>, BTreeSet<u32>) {
        let of_subgroup = base.1.iter().copied().filter(|node| self.subgroups[at].contains(node));
        let all: BTreeSet<u32> = of_subgroup.collect();
        let away = all.iter().copied().filter(|node| self.any_disk(*node).is_none()).collect();
        (all, away)
    }

    /// Returns the end of the log chosen for a subgroup, or the first lost record.
    fn end(
        &self,
        at: usize,
        base: &(u64, Vec<u32>),
        promise: Option<&Promised>,
    ) -> Result<Option<u64>, u64> {
        let members = || base.1.iter().filter(|node| self.subgroups[at].contains(node));
        let counting = members().filter(|node| self.has_whole_log(**node, base.0));
        let logs: Vec<&OwnedLog> =
            counting.filter_map(|node| self.disk(*node)?.logs[at].as_ref()).collect();
        let mut limit = u64::MAX;
        if let Some(promise) = promise {
            let same = self.disks.iter().filter_map(|(_, disk)| disk.promise.as_ref());
            let same = same.filter(|own| own.ballot == promise.ballot && own.id == promise.id);
            limit = same.filter_map(|own| own.ends[at]).max().unwrap_or(limit);
        }
        let best = |log: &&&OwnedLog| (!log.note.is_of_another, log.view, log.end.min(limit));
        let mut taken: Option<&OwnedLog> = None;
        for log in &logs {
            if taken.is_none_or(|taken| best(&log) > best(&&taken)) {
                taken = Some(log);
            }
        }
        let Some(taken) = taken else { return Ok(None) };
        let end = taken.end.min(limit);
        for record in (0..end).filter(|record| taken.is_damaged(*record)) {
            let has = |log: &&OwnedLog| {
                log.first <= record && record < log.end && !log.is_damaged(record)
            };
            if logs.iter().any(has) {
                continue;
            }
            let lacks = |node: &&u32| {
                let log = self.disk(**node).and_then(|disk| disk.logs[at].as_ref());
                log.is_some_and(|log| log.end <= record)
            };
            let half_lacks = members().filter(lacks).count() * 2 >= members().count();
            if half_lacks || self.with_less {
                return Ok(Some(record));
            }
            return Err(record);
        }
        Ok(Some(end))
    }
}

fn has_its_end(log: &OwnedLog) -> bool {
    !log.note.is_of_another && log.note.end.0 <= log.end
}

/// Generates a note of a log with this end; the note usually covers only part of the log.
fn log_note(end: u64) -> impl Strategy<Value = LogNote> {
    let part = move |more: f64| {
        (prop::bool::weighted(more), 0..=end, 0_u64..9)
            .prop_map(|(more, within, any)| DurableCount(if more { any } else { within }))
    };
    (prop::bool::weighted(0.05), part(0.1), part(0.1), part(0.1)).prop_map(
        |(is_of_another, end, majority, everywhere)| LogNote {
            is_of_another,
            end,
            majority,
            everywhere,
        },
    )
}

fn log() -> impl Strategy<Value = OwnedLog> {
    let runs = prop::collection::btree_set(0_u64..9, 0..3);
    let plain = (0_u64..2, 1_u64..4, 0_u64..9, runs);
    let log = |(first, view, end, starts): (u64, u64, u64, BTreeSet<u64>)| {
        let damaged = starts.iter().map(|at| (*at, at + 1)).filter(|run| run.1 <= end).collect();
        let log = OwnedLog { first: first.min(end), view, end, damaged, ..OwnedLog::default() };
        let noted = prop_oneof![1 => Just(LogNote::default()), 1 => log_note(end)];
        noted.prop_map(move |note| OwnedLog { note, ..log.clone() })
    };
    plain.prop_flat_map(log)
}

fn members() -> impl Strategy<Value = Vec<u32>> {
    prop::sample::subsequence(vec![1_u32, 2, 3, 4, 5], 1..=5)
}

/// Generates members; earlier versions also promised views without members.
fn promised_members() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![9 => members(), 1 => Just(Vec::new())]
}

fn disks() -> impl Strategy<Value = (Disks, Vec<Vec<u32>>)> {
    // Views and proposals are the same at all nodes; each node keeps a selection of them.
    let views = prop::collection::vec(members(), 3);
    let proposals = prop::collection::vec(promised_members(), 6);
    let node = (
        prop::option::weighted(0.8, 1_usize..4),
        prop::option::weighted(0.5, (2_usize..5, 0_usize..2)),
        prop::collection::vec(prop::option::weighted(0.9, log()), 2),
        prop::collection::vec(prop::option::weighted(0.7, 0_u64..9), 2),
        prop::option::weighted(0.1, 1_u64..4),
    );
    let nodes = prop::collection::vec(prop::option::weighted(0.8, node), 5);
    (views, proposals, nodes, members()).prop_map(|(views, proposals, nodes, second)| {
        let mut disks = Vec::new();
        for (node, parts) in (1..).zip(nodes) {
            let Some((decided, promise, logs, ends, with_less)) = parts else { continue };
            let decided = decided.map(|at| (at as u64, views[at - 1].clone()));
            let promise = promise.map(|(id, which)| Promised {
                ballot: (which as u32, 1),
                id: id as u64,
                members: proposals[(id - 2) * 2 + which].clone(),
                ends,
            });
            disks.push((node, Disk { decided, promise, logs, with_less, ..Disk::default() }));
        }
        (disks, vec![vec![1, 2, 3, 4, 5], second])
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn restart_verdict_matches_the_model(
        (disks, subgroups) in disks(),
        with_less in prop::bool::weighted(0.2),
    ) {
        let expected = NaiveModel { disks: &disks, subgroups: &subgroups, with_less }.says();
        let lent: Vec<(u32, &Disk)> = disks.iter().map(|(node, disk)| (*node, disk)).collect();
        let said = with_restart(&lent, &subgroups, |restart| {
            let restart = if with_less { restart.with_less() } else { restart };
            match restart.verdict() {
                Verdict::NoGroup => Said::NoGroup,
                Verdict::Wait(wait) => {
                    let missing = restart.missing(wait).map(|node| node.0).collect();
                    Said::Waits(wait.view.id.0, wait.want, missing)
                }
                Verdict::Go(plan) => {
                    let end = |at| {
                        let taken = restart.log_of(&plan, at).expect("it goes on")?;
                        Some(taken.end.end.0)
                    };
                    let members = restart.next_members(&plan).map(|node| node.0).collect();
                    let ends = (0..subgroups.len()).map(end).collect();
                    Said::Goes { members, adopted: plan.adopted.is_some(), ends }
                }
            }
        });
        prop_assert_eq!(said, expected);
    }
}
