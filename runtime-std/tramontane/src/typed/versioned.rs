//! A state with its version, and the versions before it.
//!
//! A version has the number of its last command, and a time: a hybrid clock. A proposer puts its
//! own clock into each command. Applying a command sets the group's clock to that time, or to one
//! microsecond after the command before, whichever is later. So all members agree on all times, and
//! times rise from version to version, although members' clocks differ.
//!
//! # Invariants
//! - The history has a state at its oldest version, and every command after it.
//! - It covers the last `kept` versions, and at most twice as many.
//!
//! Source: Derecho's `Persistent<T>`.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::encoding::{NotDecoded, decode, encode};
use super::not_answered::NotAnswered;
use super::state_machine::StateMachine;

/// A version of a group's state, on which all members agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StateVersion {
    /// The number of commands that have been applied.
    pub number: u64,
    /// The time of the last of them on the group's clock, in microseconds since 1970.
    pub time_us: u64,
}

impl StateVersion {
    /// Returns the time of the version.
    #[must_use]
    pub fn time(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_micros(self.time_us)
    }
}

/// Returns a time in microseconds since 1970. Earlier times are 0.
pub(super) fn micros(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs().saturating_mul(1_000_000).saturating_add(u64::from(since.subsec_micros()))
}

/// A state, its version, and as many earlier versions as are kept.
pub(super) struct VersionedState<M> {
    pub(super) machine: M,
    pub(super) version: StateVersion,
    /// The latest time that this member has seen in the group's order, in microseconds since 1970.
    clock_us: u64,
    kept: u64,
    /// Encoded states, of which the first begins the history.
    states: VecDeque<(StateVersion, Vec<u8>)>,
    /// The encoded commands after that state.
    commands: VecDeque<(StateVersion, Vec<u8>)>,
}

impl<M: StateMachine> VersionedState<M> {
    pub(super) const fn new(machine: M, kept: u64) -> Self {
        Self {
            machine,
            version: StateVersion { number: 0, time_us: 0 },
            clock_us: 0,
            kept,
            states: VecDeque::new(),
            commands: VecDeque::new(),
        }
    }

    /// Applies a command that was proposed at a time. `bytes` is the encoded command.
    pub(super) fn apply(&mut self, command: M::Command, time_us: u64, bytes: &[u8]) -> M::Answer {
        if self.kept > 0 {
            self.keep_state();
        }
        self.clock_us = time_us.max(self.clock_us.saturating_add(1));
        self.version = StateVersion { number: self.version.number + 1, time_us: self.clock_us };
        if self.kept > 0 {
            self.commands.push_back((self.version, bytes.to_vec()));
        }
        self.machine.apply(command)
    }

    /// Advances the clock to at least this time.
    pub(super) fn tick(&mut self, time_us: u64) {
        self.clock_us = self.clock_us.max(time_us);
    }

    /// Keeps the state before the next command if the last kept state is old, and drops what the
    /// history no longer needs. A state that cannot be encoded begins no history.
    fn keep_state(&mut self) {
        let number = self.version.number;
        let last = self.states.back().map(|(version, _)| version.number);
        if last.is_none_or(|last| number - last >= self.kept.div_ceil(2))
            && let Ok(state) = encode(&self.machine)
        {
            self.states.push_back((self.version, state));
        }
        while let Some((next, _)) = self.states.get(1)
            && number - next.number >= self.kept
        {
            let next = next.number;
            self.states.pop_front();
            while self.commands.front().is_some_and(|(version, _)| version.number <= next) {
                self.commands.pop_front();
            }
        }
    }

    /// Encodes the state for a joining member. The member begins a history of its own.
    pub(super) fn encoded(&self) -> Result<Vec<u8>, String> {
        encode(&(self.version, self.clock_us, &self.machine))
    }

    /// Returns an encoded state, which keeps as many versions as this one.
    pub(super) fn decoded(&self, bytes: &[u8]) -> Result<Self, NotDecoded> {
        let (version, clock_us, machine) = decode(bytes)?;
        Ok(Self { version, clock_us, ..Self::new(machine, self.kept) })
    }

    /// Returns what is needed to build the state at a version.
    pub(super) fn past(&self, number: u64) -> Result<PastState, NotAnswered> {
        let oldest = self.states.front().map_or(self.version, |(version, _)| *version);
        if number > self.version.number {
            return Err(NotAnswered::NotYet { newest: self.version });
        }
        let is_before = |(version, _): &&(StateVersion, Vec<u8>)| version.number <= number;
        let current = || (self.version.number == number).then(|| encode(&self.machine));
        let (from, state) = match (current(), self.states.iter().rev().find(is_before)) {
            (Some(state), _) => (number, state.map_err(NotAnswered::NotEncoded)?),
            (None, Some((version, state))) => (version.number, state.clone()),
            (None, None) => return Err(NotAnswered::NotKept { oldest }),
        };
        let commands = self.commands.iter().filter(|(version, _)| version.number > from);
        let commands = commands.take_while(|(version, _)| version.number <= number);
        Ok(PastState { state, commands: commands.map(|(_, bytes)| bytes.clone()).collect() })
    }

    /// Returns the number of the last version at or before a time.
    pub(super) fn number_at(&self, time_us: u64) -> Result<u64, NotAnswered> {
        if time_us > self.clock_us {
            return Err(NotAnswered::NotYet { newest: self.version });
        }
        let oldest = self.states.front().map_or(self.version, |(version, _)| *version);
        let kept = self.commands.iter().map(|(version, _)| *version);
        let versions = std::iter::once(oldest).chain(kept).chain([self.version]);
        let last = versions.take_while(|version| version.time_us <= time_us).last();
        last.map(|version| version.number).ok_or(NotAnswered::NotKept { oldest })
    }
}

/// An encoded state, and the encoded commands that lead from it to another.
pub(super) struct PastState {
    state: Vec<u8>,
    commands: Vec<Vec<u8>>,
}

impl PastState {
    /// Applies the commands.
    pub(super) fn build<M: StateMachine>(&self) -> Result<M, NotAnswered> {
        let not_decoded = |why: NotDecoded| NotAnswered::NotEncoded(why.to_string());
        let mut machine: M = decode(&self.state).map_err(not_decoded)?;
        for bytes in &self.commands {
            let (_, command) = decode::<(u64, M::Command)>(bytes).map_err(not_decoded)?;
            machine.apply(command);
        }
        Ok(machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Applied(Vec<u64>);

    impl StateMachine for Applied {
        type Command = u64;
        type Answer = ();

        fn apply(&mut self, command: u64) {
            self.0.push(command);
        }
    }

    fn applied(kept: u64, times: impl Iterator<Item = u64>) -> VersionedState<Applied> {
        let mut state = VersionedState::new(Applied(Vec::new()), kept);
        for (command, time_us) in (1..).zip(times) {
            let bytes = encode(&(time_us, command)).expect("it encodes");
            state.apply(command, time_us, &bytes);
        }
        state
    }

    #[test]
    fn kept_versions_are_built_and_others_refused() {
        for kept in [1, 2, 7, 8] {
            for commands in 0..40 {
                let state = applied(kept, (0..commands).map(|at| 10 * at));
                let mut oldest = None;
                for number in 0..=commands {
                    match state.past(number) {
                        Ok(past) => {
                            oldest.get_or_insert(number);
                            let built: Applied = past.build().expect("it decodes");
                            assert_eq!(built.0, (1..=number).collect::<Vec<_>>());
                        }
                        Err(error) => {
                            assert!(matches!(error, NotAnswered::NotKept { .. }), "{error}");
                            assert_eq!(oldest, None, "nothing is missing in between");
                        }
                    }
                }
                let versions = commands - oldest.expect("the newest version is always kept");
                assert!(versions >= kept.min(commands), "{versions} of {kept} after {commands}");
                assert!(versions <= 2 * kept, "{versions} of {kept} after {commands}");
                let future = state.past(commands + 1).map(|_| ());
                assert_eq!(future, Err(NotAnswered::NotYet { newest: state.version }));
            }
        }
        let (none, newest) = (applied(0, 0..9), 9);
        assert!(none.past(newest).is_ok() && none.past(newest - 1).is_err());
    }

    #[test]
    fn times_rise_although_proposers_clocks_differ() {
        let mut state = applied(9, [50, 20, 20, 80].into_iter());
        let times: Vec<u64> = state.commands.iter().map(|(version, _)| version.time_us).collect();
        assert_eq!(times, [50, 51, 52, 80]);
        let numbers = [49, 50, 51, 79, 80].map(|time_us| state.number_at(time_us));
        assert_eq!(numbers, [0, 1, 2, 3, 4].map(Ok));
        assert_eq!(state.number_at(81), Err(NotAnswered::NotYet { newest: state.version }));
        state.tick(90);
        state.tick(85);
        assert_eq!(state.number_at(90), Ok(4));
        let bytes = encode(&(0_u64, 5_u64)).expect("it encodes");
        state.apply(5, 0, &bytes);
        assert_eq!(state.version, StateVersion { number: 5, time_us: 91 });
        // A joining member continues with the same clock, and without the history.
        let joined = state.decoded(&state.encoded().expect("it encodes")).expect("it decodes");
        assert_eq!((joined.version, joined.number_at(91)), (state.version, Ok(5)));
        let oldest = joined.version;
        assert_eq!(joined.number_at(90), Err(NotAnswered::NotKept { oldest }));
    }
}
