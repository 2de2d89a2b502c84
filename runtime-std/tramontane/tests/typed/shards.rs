//! State machines over shards, whose replicas are threads of this process.

use std::collections::BTreeMap;
use std::time::Duration;

use tempfile::TempDir;
use tramontane::serde::{Deserialize, Serialize};
use tramontane::shards::{ClientError, Description, Destinations, GroupId, Places, StartOptions};
use tramontane::shards::{ReplicaId, ReplicaState};
use tramontane::typed::{NoAnswers, ReplicatedOptions, ShardNotStarted};
use tramontane::{ShardClient, ShardReplica, StateMachine};

use crate::support::{PATIENCE, await_that, block_on};

/// Numbers the commands of its group.
#[derive(Default, Serialize, Deserialize)]
#[serde(crate = "tramontane::serde")]
pub struct NumberedCommands {
    group: u16,
    commands: u64,
    bytes: u64,
}

impl StateMachine for NumberedCommands {
    type Command = String;
    /// The group, the number of the command in the group, and the command.
    type Answer = (u16, u64, String);

    fn apply(&mut self, command: String) -> (u16, u64, String) {
        self.commands += 1;
        self.bytes += command.len() as u64;
        (self.group, self.commands, command)
    }
}

/// An overlay of two groups of three, and its running replicas.
pub struct TallyShards {
    pub description: Description,
    places: Places,
    pub replicas: BTreeMap<(u16, u16), ShardReplica<NumberedCommands>>,
    root: TempDir,
}

pub const FIRST: GroupId = GroupId(0);
pub const SECOND: GroupId = GroupId(1);

pub fn both() -> Destinations {
    Destinations::of(FIRST).with(SECOND)
}

pub fn options() -> StartOptions<'static> {
    let mut options = StartOptions::default();
    options.time_limit = PATIENCE;
    options
}

impl TallyShards {
    pub fn start() -> Self {
        Self::start_with(|_| {})
    }

    pub fn start_with(change: impl FnOnce(&mut Description)) -> Self {
        let root = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let mut description = Description::local("tally", &[None, Some(0)], 3);
        description.shm_dir = Some(root.path().to_owned());
        description.answer_max = 64;
        description.failure_timeout_ms = 1_000;
        change(&mut description);
        let places = Places::new(&description, description.overlay().expect("a tree"));
        let mut shards = Self { description, places, replicas: BTreeMap::new(), root };
        shards.start_all(0);
        shards
    }

    /// Starts all replicas, whose machines have already counted `commands` commands.
    fn start_all(&mut self, commands: u64) {
        let all: Vec<_> = self.places.replicas().collect();
        let shards = &*self;
        let started: BTreeMap<_, _> = std::thread::scope(|scope| {
            let starting: Vec<_> =
                all.iter().map(|id| scope.spawn(move || shards.started(*id, commands))).collect();
            let started = starting.into_iter().map(|one| one.join().expect("no panic"));
            all.iter().map(|id| (id.group.0, id.rank.0)).zip(started).collect()
        });
        self.replicas = started;
    }

    fn started(&self, id: ReplicaId, commands: u64) -> ShardReplica<NumberedCommands> {
        let mut options = options();
        options.data = self.description.durable.then(|| self.root.path().join("data"));
        let tally = NumberedCommands { group: id.group.0, commands, bytes: 0 };
        ShardReplica::start(&self.description, id, options, tally).expect("it starts")
    }

    pub fn connect(&self) -> ShardClient<NumberedCommands> {
        ShardClient::connect(&self.description, Destinations::default(), options())
            .expect("a place")
    }

    /// Ends the leader of a group, and lets it return once the group has another.
    fn replace_leader(&mut self, group: u16) {
        let leads = |shards: &Self| {
            let is_leader =
                |((of, _), replica): &(&(u16, u16), &ShardReplica<NumberedCommands>)| {
                    *of == group && replica.status().state == ReplicaState::Leading
                };
            shards.replicas.iter().find(is_leader).map(|(id, _)| *id)
        };
        await_that("a leader", || leads(self).is_some());
        let leader = leads(self).expect("it was there");
        self.replicas.remove(&leader).expect("it runs").close();
        await_that("another leader", || leads(self).is_some());
        let id =
            self.places.replicas().find(|id| (id.group.0, id.rank.0) == leader).expect("it is one");
        let returned = self.started(id, 0);
        self.replicas.insert(leader, returned);
        await_that("all count", || self.replicas.values().all(|one| one.status().state.counts()));
    }

    /// Waits until all replicas of a group have applied this number of commands.
    pub fn await_commands(&self, group: u16, commands: u64) {
        let of_group = || self.replicas.iter().filter(|((of, _), _)| *of == group);
        let applied = |replica: &ShardReplica<NumberedCommands>| {
            replica.query_local(|tally| tally.commands).expect("it runs")
        };
        await_that("all apply", || of_group().all(|(_, replica)| applied(replica) == commands));
    }
}

/// Checks that the groups numbered all answered commands, each once, and in the same order.
pub fn check_numbers(answers: &[BTreeMap<GroupId, (u16, u64, String)>]) {
    for group in [FIRST, SECOND] {
        let mut numbers: Vec<u64> = answers
            .iter()
            .filter_map(|answers| answers.get(&group))
            .inspect(|(of, ..)| assert_eq!(*of, group.0))
            .map(|(_, number, _)| *number)
            .collect();
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "{numbers:?}");
    }
    let mut of_both: Vec<(u64, u64)> =
        answers.iter().filter_map(|of| Some((of.get(&FIRST)?.1, of.get(&SECOND)?.1))).collect();
    of_both.sort_unstable();
    assert!(of_both.is_sorted_by_key(|(_, second)| *second), "{of_both:?}");
}

/// Returns the groups of a command.
pub fn groups_of(number: usize) -> Destinations {
    [Destinations::of(FIRST), Destinations::of(SECOND), both()][number % 3]
}

#[test]
fn every_group_answers_each_command_once() {
    let shards = TallyShards::start();
    let clients = [shards.connect(), shards.connect()];
    let answers: Vec<_> = std::thread::scope(|scope| {
        let calling = clients.iter().map(|client| {
            scope.spawn(move || {
                let calls: Vec<_> = (0..300)
                    .map(|number| client.propose(groups_of(number), format!("command {number}")))
                    .collect();
                let answers = calls.into_iter().map(|call| call.wait(PATIENCE).expect("answers"));
                answers.collect::<Vec<_>>()
            })
        });
        let calling: Vec<_> = calling.collect();
        calling.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    check_numbers(&answers);
    for (number, answers) in answers.iter().enumerate() {
        assert_eq!(answers.len() as u32, groups_of(number % 300).count());
        let text = format!("command {}", number % 300);
        assert!(answers.values().all(|(_, _, command)| *command == text));
    }
    shards.await_commands(0, 400);
    shards.await_commands(1, 400);
    for client in clients {
        client.leave(PATIENCE).expect("it leaves");
    }
}

/// All replicas of a durable overlay end. The saved machines count when they start again, not those
/// of the new program.
#[test]
fn saved_machines_continue() {
    let mut shards = TallyShards::start_with(|description| description.durable = true);
    let client = shards.connect();
    let mut answers = Vec::new();
    for round in 0..3 {
        for number in 0..30 {
            let call = client.propose(groups_of(number), format!("{round} {number}"));
            answers.push(call.wait(PATIENCE).expect("answers"));
        }
        shards.replicas.clear();
        shards.start_all(77);
    }
    check_numbers(&answers);
    shards.await_commands(0, 60);
    shards.await_commands(1, 60);
    client.leave(PATIENCE).expect("it leaves");
}

#[test]
fn answers_survive_killed_leaders() {
    let mut shards = TallyShards::start();
    let client = shards.connect();
    let answers: Vec<_> = std::thread::scope(|scope| {
        let calling = [0, 1].map(|task| {
            let client = client.clone();
            scope.spawn(move || {
                (0..1_500)
                    .map(|number| {
                        let call = client.propose(groups_of(number), format!("{task} {number}"));
                        // Some calls are awaited by a task.
                        match number % 2 {
                            0 => call.wait(PATIENCE).expect("answers"),
                            _ => block_on(call).expect("answers"),
                        }
                    })
                    .collect::<Vec<_>>()
            })
        });
        for group in [0, 1] {
            shards.replace_leader(group);
        }
        calling.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    check_numbers(&answers);
    shards.await_commands(0, 2_000);
    shards.await_commands(1, 2_000);
    client.leave(PATIENCE).expect("it leaves");
}

#[test]
fn call_without_majority_ends_with_a_reason() {
    let mut shards = TallyShards::start_with(|description| description.client_lease_ms = 60_000);
    let client = shards.connect();
    for rank in [1, 2] {
        shards.replicas.remove(&(1, rank)).expect("it runs").close();
    }
    let call = client.propose(both(), "lost".to_owned());
    let short = Duration::from_millis(50);
    assert_eq!(call.wait(short), Err(NoAnswers::TimedOut(short)));
    let calls = [(); 2].map(|()| client.propose(both(), "lost".to_owned()));
    // Sent after them.
    let of_first = client.propose(Destinations::of(FIRST), "applied".to_owned());
    assert!(of_first.wait(PATIENCE).is_ok(), "the other group still answers");
    client.leave(short).expect("it ends");
    for call in calls {
        assert_eq!(call.wait(PATIENCE), Err(NoAnswers::Unknown(ClientError::Left)));
    }
    let late = client.propose(both(), "late".to_owned()).wait(PATIENCE);
    assert_eq!(late, Err(NoAnswers::NotSent(ClientError::Left)));
}

/// Commands that replicas of a `NumberedCommands` cannot read.
#[derive(Serialize, Deserialize)]
#[serde(crate = "tramontane::serde")]
struct OtherProgram;

impl StateMachine for OtherProgram {
    type Command = [u8; 4];
    type Answer = ();

    fn apply(&mut self, _: [u8; 4]) {}
}

#[test]
fn refused_calls_name_the_cause() {
    let shards = TallyShards::start();
    let client = shards.connect();
    let refusal = |groups, length| {
        client.propose(groups, "x".repeat(length)).wait(PATIENCE).expect_err("it is refused")
    };
    assert_eq!(refusal(Destinations::default(), 1), NoAnswers::NoSuchGroup);
    assert_eq!(refusal(Destinations::of(GroupId(2)), 1), NoAnswers::NoSuchGroup);
    assert_eq!(refusal(both(), 1_024), NoAnswers::TooLarge { bytes: 1_027, limit: 1_024 });
    let too_large = NoAnswers::AnswerTooLarge { group: "g1".to_owned(), bytes: 104, limit: 64 };
    assert_eq!(refusal(both(), 100), too_large);
    // The command was applied nevertheless.
    let next = client.propose(both(), "next".to_owned()).wait(PATIENCE).expect("answers");
    assert_eq!(next[&SECOND], (1, 2, "next".to_owned()));
    let options_of = || (Destinations::default(), options());
    let (groups, other_options) = options_of();
    let other = ShardClient::<OtherProgram>::connect(&shards.description, groups, other_options)
        .expect("a place");
    let unread = other.propose(both(), [0xff; 4]).wait(PATIENCE).expect_err("it is refused");
    assert!(matches!(&unread, NoAnswers::Unread { group, .. } if group == "g1"), "{unread}");
    let mut limits = ReplicatedOptions::default();
    limits.waiting_max = 0;
    let (groups, few_options) = options_of();
    let few = ShardClient::<NumberedCommands>::connect_with(
        &shards.description,
        groups,
        few_options,
        limits,
    )
    .expect("a place");
    let overloaded = few.propose(both(), String::new()).wait(PATIENCE);
    assert_eq!(overloaded, Err(NoAnswers::Overloaded { waiting: 0 }));
    let none = Description { answer_max: 0, ..shards.description.clone() };
    let error = ShardClient::<NumberedCommands>::connect(&none, Destinations::default(), options());
    assert!(matches!(error, Err(ShardNotStarted::AnswerMax)));
    shards.await_commands(0, 2);
}
