//! Restarts of all nodes from their logs and snapshots.

use std::collections::HashMap;
use std::fmt::Debug;

use tramontane::StateMachine;
use tramontane_core::ids::NodeId;
use tramontane_fixtures::random::Random;

use crate::replay::{Proposal, Replay, apply, text};
use crate::violation::Violation;

/// Percentage of a member's durable notices at which it begins a snapshot.
const SNAPSHOT_PERCENT: u64 = 20;

/// An encoded state, and the number of commands that it contains.
struct StateSnapshot {
    commands: usize,
    encoded: Vec<u8>,
}

/// A node's newest snapshot, and one whose commands are not all durable yet.
#[derive(Default)]
struct NodeSnapshots {
    newest: Option<StateSnapshot>,
    begun: Option<StateSnapshot>,
}

/// The snapshots of all nodes.
pub(crate) struct Snapshots {
    nodes: HashMap<NodeId, NodeSnapshots>,
    random: Random,
}

impl Snapshots {
    pub(crate) fn new(seed: u64) -> Self {
        Self { nodes: HashMap::new(), random: Random::stream(seed, "snapshots") }
    }
}

impl<S> Replay<'_, S>
where
    S: StateMachine + Debug + PartialEq,
    S::Command: Debug,
    S::Answer: Debug + PartialEq,
{
    /// A disk is lost, or comes back changed. Its snapshots are lost with it.
    pub(crate) fn change_disk(&mut self, node: NodeId) {
        self.snapshots.nodes.remove(&node);
        self.ran.disks_lost += 1;
    }

    /// A process knows that its first `count` commands are durable. It may begin a snapshot, which
    /// is complete once all its commands are durable.
    pub(crate) fn durable(&mut self, process: usize, count: usize) -> Result<(), Violation> {
        self.answer(process, count);
        let Some(replica) = &self.replicas[process] else { return Ok(()) };
        let Snapshots { nodes, random } = &mut self.snapshots;
        let snapshots = nodes.entry(self.history.processes[process].node).or_default();
        if let Some(snapshot) = snapshots.begun.take_if(|begun| begun.commands <= count) {
            snapshots.newest = Some(snapshot);
        }
        if snapshots.begun.is_none() && random.chance(SNAPSHOT_PERCENT) {
            let encoded = postcard::to_stdvec(&replica.state).map_err(|error| {
                let before = text(&replica.state);
                Violation::StateChangedInTransfer { before, after: error.to_string() }
            })?;
            snapshots.begun = Some(StateSnapshot { commands: replica.applied.len(), encoded });
        }
        Ok(())
    }

    /// All processes are killed. These processes begin with the logs of their nodes.
    pub(crate) fn kill_all(&mut self, restarting: &[usize]) -> Result<(), Violation> {
        self.compare_all()?;
        self.replicas.iter_mut().for_each(|replica| *replica = None);
        self.snapshots.nodes.values_mut().for_each(|snapshots| snapshots.begun = None);
        self.restarting = restarting.iter().copied().collect();
        self.restarted_with = None;
        self.ran.restarts += 1;
        Ok(())
    }

    /// A process applies its log, as far as its node's snapshot does not contain it.
    pub(crate) fn restart_from_log(
        &mut self,
        process: usize,
        log: &[Proposal],
    ) -> Result<(), Violation> {
        match &self.restarted_with {
            Some(first) if first != log => {
                let what = "two nodes restart with different commands".into();
                return Err(Violation::Order { what });
            }
            Some(_) => {}
            None => {
                self.cut_order(log)?;
                self.restarted_with = Some(log.to_vec());
            }
        }
        self.begin(process);
        for proposal in log {
            self.apply_next(process, *proposal, true)?;
        }
        let node = self.history.processes[process].node;
        let snapshot = self.snapshots.nodes.get(&node).and_then(|of| of.newest.as_ref());
        let Some(snapshot) = snapshot.filter(|snapshot| snapshot.commands <= log.len()) else {
            return Ok(());
        };
        let Some(replica) = &self.replicas[process] else { return Ok(()) };
        let differs = |after| Violation::RestartDiffers { before: text(&replica.state), after };
        let mut state: S =
            postcard::from_bytes(&snapshot.encoded).map_err(|error| differs(error.to_string()))?;
        let rest = log[snapshot.commands..].iter();
        for proposed in rest.filter_map(|proposal| self.proposed.get(proposal)) {
            apply(&mut state, proposed)?;
        }
        if state != replica.state {
            return Err(differs(text(&state)));
        }
        self.replica(process).state = state;
        Ok(())
    }

    /// Ends the order of commands where the logs end, which must contain every durable answer.
    fn cut_order(&mut self, log: &[Proposal]) -> Result<(), Violation> {
        let model = self.trials.model.as_ref().map(|model| model());
        let Some(order) = self.orders.last_mut() else { return Ok(()) };
        if let Some((lost, _)) = order.applied[..order.answered].get(log.len()) {
            let command = self.proposed.get(lost).map_or("", |proposed| &proposed.text);
            let what = format!("{command} was durable when it was answered, and is lost");
            return Err(Violation::Order { what });
        }
        if log.len() < order.applied.len() {
            order.applied.truncate(log.len());
            order.model = model;
            for (proposal, answer) in order.applied.clone() {
                if let Some(proposed) = self.proposed.get(&proposal) {
                    order.model_answers(proposed, &answer)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};
    use tramontane_core::ids::ViewId;
    use tramontane_fixtures::world::{History, ProcessName, Record, Recorded};

    use super::*;
    use crate::plan::plan;
    use crate::trials::Trials;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Total(u64);

    impl StateMachine for Total {
        type Command = u64;
        type Answer = u64;

        fn apply(&mut self, number: u64) -> u64 {
            self.0 += number;
            self.0
        }
    }

    /// Replays a run of two nodes, in which the first applies two commands and knows that the first
    /// command is durable. Then both restart with these logs.
    fn restarted_with(logs: [&[Proposal]; 2]) -> Result<(), Violation> {
        let node = |number: usize| NodeId(number as u32 % 2);
        let name = |number| ProcessName { node: node(number), life: 1 + number as u32 / 2 };
        let view = ViewId(1);
        let state = |process, messages: &[Proposal]| {
            let messages = messages.to_vec();
            Record::State { process, view, subgroup: 0, messages }
        };
        let propose =
            |index| Record::Multicast { process: 0, subgroup: 0, index, bytes: 12, large: false };
        let deliver = |index| Record::Deliver {
            process: 0,
            view,
            subgroup: 0,
            sender: 0,
            author: 0,
            index,
            place: index,
            bytes: 12,
            intact: true,
        };
        let records = vec![
            state(0, &[]),
            state(1, &[]),
            propose(0),
            propose(1),
            deliver(0),
            deliver(1),
            Record::Durable { process: 0, count: 1 },
            Record::Crash { process: 0 },
            Record::Crash { process: 1 },
            Record::Restarted { processes: vec![2, 3] },
            state(2, logs[0]),
            state(3, logs[1]),
        ];
        let records = records.into_iter().map(|record| Recorded { at: 0, record }).collect();
        let history = History { processes: (0..4).map(name).collect(), records };
        let trials = Trials::new(Total::default, |proposer| 1 + proposer.number()).logged();
        Replay::new(&trials, &history, &plan(1, true)).run()
    }

    #[test]
    fn lost_durable_answer_is_found() {
        let lost = restarted_with([&[], &[]]).expect_err("the first command is durable");
        assert!(lost.to_string().contains("1 was durable when it was answered"), "{lost}");
        let both: &[Proposal] = &[(0, 0), (0, 1)];
        assert_eq!(restarted_with([both, both]), Ok(()));
        assert_eq!(restarted_with([&both[..1], &both[..1]]), Ok(()), "the second was not durable");
    }

    #[test]
    fn restarts_with_different_logs_are_found() {
        let both: &[Proposal] = &[(0, 0), (0, 1)];
        for logs in [[both, &both[..1]], [&both[..1], both], [&both[1..], &both[1..]]] {
            let found = restarted_with(logs);
            assert!(matches!(found, Err(Violation::Order { .. })), "{found:?}");
        }
    }
}
