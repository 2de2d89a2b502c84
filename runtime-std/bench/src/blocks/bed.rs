//! What every simulated run of an experiment stands on: the machine, how much is under way, and the
//! seed.

use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::Window;
use tramontane_fixtures::block_multicast::{GroupPlan, MessagePlan, PAPER_WINDOW, START_NS, Setup};
use tramontane_fixtures::profile::Profile;

use super::command::Arguments;
use crate::error::BenchError;

/// The machine, how much is under way, and the seed.
#[derive(Clone, Debug)]
pub(crate) struct Bed {
    /// The simulated machine.
    pub(crate) profile: Profile,
    /// Receives and sends that a member has posted ahead.
    pub(crate) window: Window,
    /// Decides all chance.
    pub(crate) seed: u64,
}

impl Bed {
    /// RDMC on a machine, as the paper has it.
    pub(crate) const fn of_paper(profile: Profile, seed: u64) -> Self {
        Self { profile, window: PAPER_WINDOW, seed }
    }

    /// What the command line asks for: of the machine where none is named, and one send at a time
    /// where nothing is said.
    pub(super) fn asked(arguments: &Arguments, machine: &str) -> Result<Self, BenchError> {
        let profile = arguments.machine.machine_or(machine)?.profile;
        let mut bed = Self::of_paper(profile, arguments.seed);
        if let Some(window) = arguments.window {
            bed.window = Window { receives: window, sends: window };
        }
        Ok(bed)
    }

    /// The same with each of the seeds that are asked for.
    pub(super) fn of_seeds(&self, arguments: &Arguments) -> Vec<Self> {
        let seeds = self.seed..self.seed.saturating_add(arguments.seeds);
        seeds.map(|seed| Self { seed, ..self.clone() }).collect()
    }

    /// One message of one group.
    pub(crate) fn single(
        &self,
        nodes: usize,
        algorithm: Algorithm,
        bytes: usize,
        block_bytes: usize,
    ) -> Setup {
        self.series(nodes, algorithm, &[bytes], block_bytes)
    }

    /// Messages of one group, each as soon as the one before is completed at the root.
    pub(crate) fn series(
        &self,
        nodes: usize,
        algorithm: Algorithm,
        sizes: &[usize],
        block_bytes: usize,
    ) -> Setup {
        let setup = Setup::single(nodes, algorithm, sizes, block_bytes, self.seed);
        self.under(setup)
    }

    /// Groups of the same members, of which each of the first `senders` is the root of one. All
    /// send at the same time.
    pub(crate) fn overlapping(
        &self,
        nodes: usize,
        senders: usize,
        algorithm: Algorithm,
        bytes: usize,
        block_bytes: usize,
    ) -> Setup {
        let group = |root: usize| GroupPlan {
            members: (0..nodes).map(|place| (root + place) % nodes).collect(),
            algorithm,
            messages: vec![MessagePlan { bytes, at_ns: START_NS }],
        };
        let groups = (0..senders).map(group).collect();
        self.under(Setup::new(nodes, groups, block_bytes, self.seed))
    }

    /// A setup on this machine.
    pub(crate) fn under(&self, setup: Setup) -> Setup {
        Setup { profile: self.profile.clone(), window: self.window, ..setup }
    }
}
