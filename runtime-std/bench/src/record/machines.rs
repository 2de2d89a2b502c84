//! The papers' machines, each with a profile.

use std::collections::BTreeMap;

use tramontane_fixtures::profile::Profile;

use crate::error::BenchError;
use crate::profiles::{MachineArguments, names};

/// One profile per machine, keyed by its name with `_` instead of `-`.
#[derive(Clone, Debug)]
pub(super) struct Machines(BTreeMap<String, Profile>);

impl Machines {
    /// Loads the papers' machines. Parameters from the command line are set on all of them.
    ///
    /// # Errors
    /// [`BenchError::Arguments`].
    pub(super) fn load(arguments: &MachineArguments) -> Result<Self, BenchError> {
        let load = |name: &str| Ok((name.replace('-', "_"), arguments.machine(name)?));
        Ok(Self(names().map(load).collect::<Result<_, BenchError>>()?))
    }

    /// Returns the machine of that name.
    ///
    /// # Errors
    /// Fails with [`BenchError::Arguments`] if there is no machine with that name.
    pub(super) fn named(&self, name: &str) -> Result<&Profile, BenchError> {
        let missing = || {
            BenchError::Arguments(format!(
                "there is no machine '{name}'; use one of those in runtime-std/bench/profiles"
            ))
        };
        self.0.get(name).ok_or_else(missing)
    }
}
