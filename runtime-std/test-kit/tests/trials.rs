//! State machines with planted faults are found, and a correct one passes.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tramontane::StateMachine;
use tramontane_test_kit::{Proposer, Trials, Violation};

const KEYS: u64 = 5;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum AgedCommand {
    Put(u64, u64),
    Take(u64),
    Oldest,
}

/// Draws a command.
fn draw<S>(proposer: &mut Proposer<'_, S>) -> AgedCommand
where
    S: StateMachine<Command = AgedCommand>,
{
    let key = proposer.below(KEYS);
    match proposer.below(10) {
        0..6 => AgedCommand::Put(key, proposer.below(1000)),
        6..9 => AgedCommand::Take(key),
        _ => AgedCommand::Oldest,
    }
}

/// A map whose entries are numbered by age. The parameter plants a fault.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Aged<const FAULT: u8> {
    entries: BTreeMap<u64, (u64, u64)>,
    puts: u64,
    #[serde(skip)]
    hidden: u64,
}

const NONE: u8 = 0;
const SKIPPED_FIELD: u8 = 1;
const HASH_ORDER: u8 = 2;
const CLOCK: u8 = 3;
const PANIC: u8 = 4;
const WRONG_ANSWER: u8 = 5;
const SIXTH_KEY: u8 = 6;
const HIDDEN_CLOCK: u8 = 7;

/// Stands for a clock: no two members read the same number.
fn clock() -> u64 {
    static TICKS: AtomicU64 = AtomicU64::new(0);
    TICKS.fetch_add(1, Ordering::Relaxed)
}

impl<const FAULT: u8> StateMachine for Aged<FAULT> {
    type Command = AgedCommand;
    type Answer = Option<u64>;

    fn apply(&mut self, command: AgedCommand) -> Option<u64> {
        match command {
            AgedCommand::Put(key, value) => {
                self.puts += 1;
                if FAULT == SKIPPED_FIELD {
                    self.hidden += 1;
                }
                let key = if FAULT == SIXTH_KEY && value > 990 { KEYS } else { key };
                let age = match FAULT {
                    CLOCK => clock(),
                    HIDDEN_CLOCK if self.puts == 40 => clock(),
                    _ => self.puts,
                };
                self.entries.insert(key, (age, value)).map(|(_, value)| value)
            }
            AgedCommand::Take(key) => {
                assert!(FAULT != PANIC || key != 3 || self.entries.len() < 4, "key 3 is taken");
                let taken = self.entries.remove(&key).map(|(_, value)| value);
                if FAULT == WRONG_ANSWER && self.entries.is_empty() { Some(0) } else { taken }
            }
            AgedCommand::Oldest if FAULT == HASH_ORDER => {
                let hashed: HashMap<_, _> = self.entries.iter().collect();
                hashed.keys().next().map(|key| **key)
            }
            AgedCommand::Oldest => {
                self.entries.iter().min_by_key(|(_, (age, _))| *age).map(|(key, _)| *key)
            }
        }
    }
}

/// The model: a list of keys in the order of age.
fn answer(model: &mut Vec<(u64, u64)>, command: AgedCommand) -> Option<u64> {
    let mut take = |key| {
        let at = model.iter().position(|(has, _)| *has == key)?;
        Some(model.remove(at).1)
    };
    match command {
        AgedCommand::Put(key, value) => {
            let previous = take(key);
            model.push((key, value));
            previous
        }
        AgedCommand::Take(key) => take(key),
        AgedCommand::Oldest => model.first().map(|(key, _)| *key),
    }
}

fn trials<S>() -> Trials<S>
where
    S: StateMachine<Command = AgedCommand, Answer = Option<u64>>
        + Debug
        + Default
        + PartialEq
        + DeserializeOwned,
{
    Trials::new(S::default, draw)
}

fn violation<const FAULT: u8>() -> Violation {
    let found = trials::<Aged<FAULT>>()
        .model(Vec::new, answer)
        .invariant(|aged| match aged.entries.last_key_value() {
            Some((key, _)) if *key >= KEYS => Err(format!("a key {key}")),
            _ => Ok(()),
        })
        .violation();
    found.expect("the fault is found")
}

#[test]
fn correct_machine_passes_all_events() {
    let ran = trials::<Aged<NONE>>().model(Vec::new, answer).seeds(1..=200).run();
    assert_eq!(ran.groups, 200);
    assert!(ran.answered > 10_000 && ran.answered < ran.proposed, "{ran:?}");
    assert!(ran.crashes > 50 && ran.joins > 50 && ran.partitions > 10, "{ran:?}");
}

#[test]
fn the_same_seed_runs_the_same_commands() {
    let ran = || trials::<Aged<NONE>>().seeds(7..=9).run();
    assert_eq!(ran(), ran());
}

#[test]
fn skipped_field_is_found_by_a_join() {
    let found = violation::<SKIPPED_FIELD>();
    assert!(matches!(found, Violation::StateChangedInTransfer { .. }), "{found}");
}

#[test]
fn correct_machine_survives_restarts_and_lost_disks() {
    let ran = trials::<Aged<NONE>>().model(Vec::new, answer).logged().seeds(1..=100).run();
    assert!(ran.restarts > 100 && ran.disks_lost > 20, "{ran:?}");
    assert!(ran.answered > 2_000 && ran.answered < ran.proposed, "{ran:?}");
}

/// Returns whether one of the first groups that log shows a fault at a restart.
fn is_found_by_a_restart<const FAULT: u8>() -> bool {
    (1..=30).any(|seed| {
        let found = trials::<Aged<FAULT>>().logged().seeds(seed..=seed).violation();
        matches!(found, Some(Violation::RestartDiffers { .. }))
    })
}

#[test]
fn snapshot_without_a_field_fails_at_restart() {
    assert!(is_found_by_a_restart::<SKIPPED_FIELD>());
    assert!(!is_found_by_a_restart::<NONE>());
}

#[test]
fn order_of_a_hash_map_is_found() {
    let found = trials::<Aged<HASH_ORDER>>().violation().expect("the fault is found");
    assert!(matches!(found, Violation::AnswersDiffer { .. }), "{found}");
}

#[test]
fn clock_in_apply_is_found() {
    let found = trials::<Aged<CLOCK>>().violation().expect("the fault is found");
    let is_difference = matches!(
        found,
        Violation::AnswersDiffer { .. }
            | Violation::StatesDiffer { .. }
            | Violation::RestartDiffers { .. }
    );
    assert!(is_difference, "{found}");
    let found = violation::<HIDDEN_CLOCK>();
    assert!(!matches!(found, Violation::Order { .. }), "{found}");
}

#[test]
fn panic_names_its_command() {
    let found = violation::<PANIC>();
    let Violation::Panicked { command, message } = found else { panic!("{found}") };
    assert_eq!((&command[..], &message[..]), ("Take(3)", "key 3 is taken"));
}

#[test]
fn wrong_answer_is_found_by_the_model() {
    let found = violation::<WRONG_ANSWER>();
    let Violation::ModelDiffers { answer, model, .. } = found else { panic!("{found}") };
    assert_eq!(answer, "Some(0)");
    assert_ne!(model, answer);
}

#[test]
fn broken_invariant_is_found() {
    let found = violation::<SIXTH_KEY>();
    let Violation::Invariant { what, .. } = found else { panic!("{found}") };
    assert_eq!(what, "a key 5");
}

/// A command that is encoded differently from how it is decoded.
#[derive(Debug, Serialize)]
struct Lossy(u64);

impl<'de> Deserialize<'de> for Lossy {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self(u64::deserialize(from)? / 2))
    }
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Sum(u64);

impl StateMachine for Sum {
    type Command = Lossy;
    type Answer = u64;

    fn apply(&mut self, Lossy(number): Lossy) -> u64 {
        self.0 += number;
        self.0
    }
}

#[test]
fn command_that_changes_on_its_way_is_found() {
    let found = Trials::new(Sum::default, |proposer| Lossy(1 + proposer.below(9))).violation();
    assert!(matches!(found, Some(Violation::CommandChangedInTransfer { .. })), "{found:?}");
}

#[test]
fn report_names_seed_and_smallest_group() {
    let failing = || {
        let _ = trials::<Aged<SIXTH_KEY>>()
            .invariant(|aged| if aged.entries.len() <= 5 { Ok(()) } else { Err("six".into()) })
            .run();
    };
    let panic = std::panic::catch_unwind(failing).expect_err("it fails");
    let report = panic.downcast_ref::<String>().expect("a report");
    println!("{report}");
    assert!(report.starts_with("the invariant does not hold after Put("), "{report}");
    assert!(report.contains("\nRepeat it with TRAMONTANE_SEED="), "{report}");
    assert!(report.lines().count() < 50, "{report}");
}
