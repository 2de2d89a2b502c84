//! Which state the machine is in.
//!
//! A virtual machine may have several: its host moves its processors, so that they share a cache at
//! one time and not at another, and what one has written takes the other several times as long to
//! read. A profile holds for the state in which it was measured. So a probe of some milliseconds,
//! before and after each reading, tells whether the reading is of that state; others are set aside
//! and counted.

use std::time::{Duration, Instant};

use super::components::lines;
use crate::error::BenchError;

/// Probes within this factor are of one state. States differ by three times and more, probes of one
/// by a quarter.
const SAME_FACTOR: f64 = 1.6;

/// Rounds that a calibration takes at most, for each that is wanted.
const ATTEMPTS: usize = 4;

/// How long a reading waits for the state of the profile.
const PATIENCE: Duration = Duration::from_secs(20);

/// Between two probes of one that waits.
const PAUSE: Duration = Duration::from_millis(50);

/// A state, by what a line takes that another processor wrote, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct State(f64);

impl State {
    /// The state of now.
    pub(super) fn probe() -> Result<Self, BenchError> {
        lines::foreign_line_ns().map(Self)
    }

    pub(super) const fn of_line_ns(line_ns: f64) -> Self {
        Self(line_ns)
    }

    pub(super) const fn line_ns(self) -> f64 {
        self.0
    }

    pub(super) fn is(self, other: Self) -> bool {
        self.0.max(other.0) <= SAME_FACTOR * self.0.min(other.0)
    }

    /// Waits until the machine is in this state. Whether it is.
    pub(super) fn is_awaited(self) -> Result<bool, BenchError> {
        let begun = Instant::now();
        while !Self::probe()?.is(self) {
            if begun.elapsed() > PATIENCE {
                return Ok(false);
            }
            std::thread::sleep(PAUSE);
        }
        Ok(true)
    }
}

/// Readings of one state, that of most of them.
#[derive(Debug)]
pub(super) struct OneState<T> {
    pub(super) state: State,
    pub(super) kept: Vec<T>,
    /// How many were of another state, or of none since it changed meanwhile.
    pub(super) set_aside: usize,
}

impl<T> OneState<T> {
    /// Measures until so many readings are of one state, or until [`ATTEMPTS`] times as many were
    /// taken: then those of most count.
    pub(super) fn measure(
        wanted: usize,
        mut probe: impl FnMut() -> Result<State, BenchError>,
        mut measure: impl FnMut() -> Result<T, BenchError>,
    ) -> Result<Self, BenchError> {
        let mut readings: Vec<(State, T)> = Vec::new();
        let mut changed = 0;
        let mut before = probe()?;
        while readings.len() + changed < ATTEMPTS * wanted {
            let reading = measure()?;
            let after = probe()?;
            if before.is(after) {
                readings.push((State((before.0 * after.0).sqrt()), reading));
            } else {
                changed += 1;
            }
            before = after;
            if count_of(most(&readings), &readings) >= wanted {
                break;
            }
        }
        let state = most(&readings).ok_or_else(|| {
            BenchError::Setup("the machine changed its state in each round: try again".into())
        })?;
        let taken = readings.len() + changed;
        let of_it = readings.into_iter().filter(|(other, _)| other.is(state));
        let kept: Vec<T> = of_it.map(|(_, reading)| reading).collect();
        Ok(Self { state, set_aside: taken - kept.len(), kept })
    }
}

/// The state that most readings are of; of equal ones the first.
fn most<T>(readings: &[(State, T)]) -> Option<State> {
    let mut best: Option<State> = None;
    for (state, _) in readings {
        if count_of(Some(*state), readings) > count_of(best, readings) {
            best = Some(*state);
        }
    }
    best
}

fn count_of<T>(state: Option<State>, readings: &[(State, T)]) -> usize {
    let Some(state) = state else { return 0 };
    readings.iter().filter(|(other, _)| other.is(state)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings 0, 1, 2 and so on beside these probes, the first of them before the first.
    fn measured(wanted: usize, probes: &[f64]) -> Result<OneState<u32>, BenchError> {
        let mut probes = probes.iter().map(|line_ns| State(*line_ns));
        let mut readings = 0..;
        OneState::measure(
            wanted,
            || Ok(probes.next().expect("no probe is left")),
            || Ok(readings.next().expect("numbers do not end")),
        )
    }

    #[test]
    fn states_are_the_same_within_a_factor() {
        let is = |one, other| State(one).is(State(other));
        assert!(is(30.0, 30.0) && is(30.0, 47.0) && is(47.0, 30.0));
        assert!(!is(30.0, 49.0) && !is(110.0, 30.0));
    }

    #[test]
    fn readings_of_one_state_are_all_kept() {
        let all = measured(3, &[30.0, 31.0, 29.0, 30.0]).expect("measured");
        assert_eq!((all.kept, all.set_aside), (vec![0, 1, 2], 0));
    }

    #[test]
    fn readings_of_fewer_and_those_in_which_the_state_changed_are_set_aside() {
        let probes = [30.0, 30.0, 110.0, 111.0, 112.0, 31.0, 110.0, 110.0];
        let all = measured(3, &probes).expect("measured");
        assert_eq!((all.kept, all.set_aside), (vec![2, 3, 6], 4));
        assert!(all.state.is(State(110.0)));
    }

    #[test]
    fn a_machine_that_never_stays_is_measured_so_often_and_no_longer() {
        let probes: Vec<f64> = [30.0, 110.0].into_iter().cycle().take(2 * ATTEMPTS + 1).collect();
        assert!(measured(2, &probes).is_err());
        let mut probes = vec![30.0; 2];
        probes.extend([110.0, 30.0].into_iter().cycle().take(2 * ATTEMPTS));
        let all = measured(2, &probes).expect("one is kept");
        assert_eq!((all.kept, all.set_aside), (vec![0], 2 * ATTEMPTS - 1));
    }
}
