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
}
