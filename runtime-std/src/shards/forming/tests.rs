//! Groups form while their processes are killed and lose disks, in a model of the replicas.
//!
//! A model of a group: its replicas ask each other one at a time, and a process may be killed
//! between any two writes to its disk. Once a majority of the founders in a list have begun, they
//! decide something. No other list may decide anything then, as long as one disk has the list.

use proptest::prelude::*;
use proptest::test_runner::Config;
use tramontane_control::OpenSessionError;
use tramontane_core::ids::Rank;

use super::*;
use crate::shards::founding_stage::FoundingStage::{self, Apart, Begun, Listed, Lost, Ready};

const REPLICAS: usize = 3;
const QUORUM: usize = 2;

/// The content of a replica's disk: the named values, and whether there is a state.
#[derive(Clone, Debug, Default)]
struct ModelDisk {
    founders: Option<Vec<u64>>,
    stage: Option<FoundingStage>,
    has_state: bool,
}

#[derive(Debug)]
struct ModelProcess {
    forming: FormingReplica,
    answers: Vec<(Rank, FoundingAnswer)>,
}

/// The fate of a replica's disk when its process is killed.
#[derive(Clone, Copy, Debug)]
enum DiskFate {
    Kept,
    Lost,
    Damaged,
}

#[derive(Clone, Copy, Debug)]
enum ModelEvent {
    GoesOn,
    Killed(DiskFate),
}

#[derive(Debug, Default)]
struct ModelGroup {
    disks: [ModelDisk; REPLICAS],
    processes: [Option<ModelProcess>; REPLICAS],
    lives: u64,
    /// The list of founders that has decided something.
    decided: Option<Vec<u64>>,
    /// Whether another list has decided something later.
    contradicts: bool,
}

impl ModelGroup {
    fn start(&mut self, index: usize) {
        let ModelDisk { founders, stage, has_state } = self.disks[index].clone();
        let stage = FoundingStage::of_disk(stage.map(FoundingStage::byte), has_state);
        self.lives += 1;
        let rank = Rank(index as u16);
        let formation = Formation { founders, stage };
        let forming = FormingReplica { rank, life: self.lives, formation };
        self.processes[index] = Some(ModelProcess { forming, answers: Vec::new() });
    }

    /// A running replica asks one other, or acts if it has asked all.
    fn go_on(&mut self, index: usize) {
        let Some(mut process) = self.processes[index].take() else { return self.start(index) };
        let asked = process.answers.len();
        match (0..REPLICAS).filter(|other| *other != index).nth(asked) {
            Some(other) => process.answers.push((Rank(other as u16), self.ask(other))),
            None => {
                let answers = std::mem::take(&mut process.answers);
                self.act(index, &mut process.forming, &answers);
            }
        }
        self.processes[index] = Some(process);
        self.decide();
    }

    fn ask(&self, other: usize) -> FoundingAnswer {
        let FormingReplica { life, formation, .. } = self.processes[other]
            .as_ref()
            .map(|of| &of.forming)
            .ok_or(OpenSessionError::NotThere)?;
        let Formation { founders, stage } = formation.clone();
        let standing =
            Standing { founders, stage, incarnation: 0, returning: 0, clients: Vec::new() };
        Ok((*life, standing))
    }

    fn act(
        &mut self,
        index: usize,
        forming: &mut FormingReplica,
        answers: &[(Rank, FoundingAnswer)],
    ) {
        let disk = &mut self.disks[index];
        if forming.formation.stage == Begun {
            return;
        }
        if disk.has_state && forming.formation.stage != Ready {
            // The stage is saved after the first state.
            (disk.stage, forming.formation.stage) = (Some(Ready), Ready);
            return;
        }
        if forming.formation.stage == Ready {
            if may_begin(answers) {
                (disk.stage, forming.formation.stage) = (Some(Begun), Begun);
            }
            return;
        }
        match forming.next_move(answers) {
            FormingMove::Wait => {}
            FormingMove::Found => disk.has_state = true,
            FormingMove::List(list) => {
                (disk.founders, disk.stage) = (Some(list), Some(Listed));
                forming.formation = Formation { founders: disk.founders.clone(), stage: Listed };
            }
            FormingMove::Return(list) => {
                let is_member = |(_, answer): &&(Rank, FoundingAnswer)| {
                    answer.as_ref().is_ok_and(|(_, of)| of.stage == Begun)
                };
                if answers.iter().filter(is_member).count() >= QUORUM {
                    let founders = Some(list);
                    *disk = ModelDisk {
                        founders: founders.clone(),
                        stage: Some(Begun),
                        has_state: true,
                    };
                    forming.formation = Formation { founders, stage: Begun };
                }
            }
        }
    }

    /// Lets the replicas that have begun decide something, if they are enough.
    fn decide(&mut self) {
        let begun = self.processes.iter().flatten().map(|of| &of.forming.formation);
        let lists: Vec<&Vec<u64>> =
            begun.filter(|of| of.stage == Begun).filter_map(|of| of.founders.as_ref()).collect();
        for list in &lists {
            if lists.iter().filter(|other| *other == list).count() < QUORUM {
                continue;
            }
            let before = self.decided.get_or_insert_with(|| (*list).clone());
            self.contradicts |= before != *list;
        }
    }

    fn happen(&mut self, index: usize, event: ModelEvent) {
        let ModelEvent::Killed(fate) = event else { return self.go_on(index) };
        self.processes[index] = None;
        let disk = &mut self.disks[index];
        match fate {
            DiskFate::Kept => {}
            DiskFate::Lost => *disk = ModelDisk::default(),
            DiskFate::Damaged => disk.has_state = false,
        }
        if self.disks.iter().all(|disk| disk.founders != self.decided) {
            self.decided = None;
        }
    }

    fn has_formed(&self) -> bool {
        let begun = |process: &Option<ModelProcess>| {
            process.as_ref().is_some_and(|of| of.forming.formation.stage == Begun)
        };
        self.processes.iter().all(begun)
    }
}

/// Draws events. For a while each, only some of the replicas are scheduled.
fn events(fates: &'static [DiskFate]) -> impl Strategy<Value = Vec<(usize, ModelEvent)>> {
    let killed = proptest::sample::select(fates).prop_map(ModelEvent::Killed);
    let event = prop_oneof![20 => Just(ModelEvent::GoesOn), 1 => killed];
    let some = proptest::sample::subsequence((0..REPLICAS).collect::<Vec<_>>(), 1..=REPLICAS);
    let phase = (some, prop::collection::vec((any::<prop::sample::Index>(), event), 0..40));
    prop::collection::vec(phase, 0..10).prop_map(|phases| {
        let of_phase = |(some, events): (Vec<usize>, Vec<(prop::sample::Index, ModelEvent)>)| {
            events.into_iter().map(move |(index, event)| (*index.get(&some), event))
        };
        phases.into_iter().flat_map(of_phase).collect()
    })
}

/// If a founder began, it could decide something with another one, and lose its disk with that one.
/// The third, which has only the list, would form the group again.
#[test]
fn founders_wait_until_all_have_a_state() {
    let mut group = ModelGroup::default();
    while group.disks[2].stage != Some(Listed) {
        (0..REPLICAS).for_each(|index| group.go_on(index));
    }
    (0..100).for_each(|turn| group.go_on(turn % 2));
    assert!(group.disks[0].has_state && group.disks[1].has_state && !group.disks[2].has_state);
    assert_eq!((group.disks[0].stage, group.disks[1].stage), (Some(Ready), Some(Ready)));
    (0..100).for_each(|turn| group.go_on(turn % REPLICAS));
    assert!(group.has_formed());
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::with_cases(2_000) })]

    #[test]
    fn no_second_group_decides_while_a_disk_remains(
        events in events(&[DiskFate::Kept, DiskFate::Kept, DiskFate::Lost, DiskFate::Damaged]),
    ) {
        let mut group = ModelGroup::default();
        for (index, event) in events {
            group.happen(index, event);
            prop_assert!(!group.contradicts, "{group:?}");
        }
    }

    /// A group whose processes were killed, but whose disks remain, forms once nothing more
    /// happens.
    #[test]
    fn killed_group_forms_without_further_kills(events in events(&[DiskFate::Kept])) {
        let mut group = ModelGroup::default();
        events.into_iter().for_each(|(index, event)| group.happen(index, event));
        (0..100).for_each(|turn| group.go_on(turn % REPLICAS));
        prop_assert!(group.has_formed(), "{group:?}");
    }
}

#[test]
fn lost_state_differs_from_new_disk() {
    assert_eq!(FoundingStage::of_disk(None, false), Apart);
    assert_eq!(FoundingStage::of_disk(Some(Ready.byte()), false), Lost);
    assert_eq!(FoundingStage::of_disk(Some(Listed.byte()), true), Ready);
}
