//! The papers' machines: a profile each.

use std::collections::BTreeMap;

use tramontane_fixtures::profile::Profile;

use super::case::Machine;
use crate::error::BenchError;
use crate::profiles::ProfileArguments;

const ALL: [Machine; 6] = [
    Machine::Spindle,
    Machine::SpindleCore,
    Machine::Fractus,
    Machine::Sierra,
    Machine::Stampede,
    Machine::Apt,
];

/// A profile for each machine.
#[derive(Clone, Debug)]
pub(super) struct Machines(BTreeMap<Machine, Profile>);

impl Machines {
    /// Those of the papers. A profile that is named on the command line stands for all of them, and
    /// what is set there is set on all.
    ///
    /// # Errors
    /// [`BenchError::Arguments`].
    pub(super) fn load(arguments: &ProfileArguments) -> Result<Self, BenchError> {
        let load = |machine: Machine| Ok((machine, arguments.machine_or(machine.name())?.profile));
        Ok(Self(ALL.into_iter().map(load).collect::<Result<_, BenchError>>()?))
    }

    /// One of them.
    pub(super) fn of(&self, machine: Machine) -> &Profile {
        // All are there: `load` is the only way to make one.
        &self.0[&machine]
    }

    /// Whether a parameter of a machine is not zero: zero charges or limits nothing.
    pub(super) fn has(&self, machine: Machine, parameter: &str) -> bool {
        self.of(machine).get(parameter).is_some_and(|value| value > 0)
    }

    /// The same machines, with a parameter of each times so much. A parameter that does not take
    /// that stays.
    pub(super) fn times(&self, parameter: &str, factor: f64) -> Self {
        let mut changed = self.clone();
        for profile in changed.0.values_mut() {
            let value = profile.get(parameter).unwrap_or_default() as f64 * factor;
            // One of 0 and 1 is not doubled.
            let _ = profile.set(parameter, value.round() as u64);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_machine_has_its_own_profile() {
        let machines = Machines::load(&ProfileArguments::default()).expect("they are here");
        let port = |machine| machines.of(machine).port_bytes_per_us;
        assert_eq!((port(Machine::Spindle), port(Machine::Sierra)), (12_500, 4_000));
        assert_eq!(machines.of(Machine::Apt).rack_members, 4);
    }

    #[test]
    fn a_parameter_is_doubled_on_all_machines_and_zero_stays_zero() {
        let machines = Machines::load(&ProfileArguments::default()).expect("they are here");
        let double = machines.times("port_bytes_per_us", 2.0);
        assert_eq!(double.of(Machine::Sierra).port_bytes_per_us, 8_000);
        assert_eq!(double.of(Machine::Spindle).port_bytes_per_us, 25_000);
        assert!(machines.has(Machine::Apt, "rack_members"));
        assert!(!machines.times("rack_members", 2.0).has(Machine::Spindle, "rack_members"));
    }
}
