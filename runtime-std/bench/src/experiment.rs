//! What the processes of an experiment have in common: the kinds of experiment, and the trait that
//! ties a task to its outcome.
//!
//! The bench starts one process a member ([`crate::processes`]); each runs its task
//! ([`crate::worker`]) and reports one outcome. A type that is an [`Experiment`] is the task; what
//! it needs to know of the group is its [`Member`].

use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::ValueEnum;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tramontane_core::ids::Rank;

use crate::error::BenchError;
use tramontane_local::crew::Role;
use tramontane_local::group::LocalPlace;
use tramontane_runtime::configuration::GroupConfiguration;
use tramontane_runtime::shared_memory::{Mappings, Rendezvous, Root};

/// How long the processes of an experiment wait for each other at the start.
pub(crate) const JOIN_LIMIT: Duration = Duration::from_secs(20);

/// The kinds of experiment that run as processes, as the hidden command names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// One cache line back and forth.
    HandOff,
    /// A ring each way without a protocol.
    BareRing,
    /// A mesh of TCP connections without a protocol.
    BareMesh,
    /// Continuous sending in a group of fixed membership.
    Sending,
    /// One sender at a low rate, in a group of fixed membership.
    LowRate,
    /// A group that has nothing to do, and sleeps.
    Idling,
    /// Continuous sending in a group whose membership may change.
    InViews,
    /// Block groups.
    Blocks,
    /// Bytes of one mapping, as each receiver has them.
    CopyLimit,
    /// A member of a group whose membership changes.
    ViewMember,
}

impl Kind {
    /// As it is named on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::HandOff => "hand-off",
            Self::BareRing => "bare-ring",
            Self::BareMesh => "bare-mesh",
            Self::Sending => "sending",
            Self::LowRate => "low-rate",
            Self::Idling => "idling",
            Self::InViews => "in-views",
            Self::Blocks => "blocks",
            Self::CopyLimit => "copy-limit",
            Self::ViewMember => "view-member",
        }
    }
}

/// What each process of an experiment does: the task itself, as it is sent to them.
pub(crate) trait Experiment: Clone + Serialize + DeserializeOwned {
    /// By which the process knows what it gets.
    const KIND: Kind;
    /// What one process saw.
    type Outcome: Serialize + DeserializeOwned + Send + 'static;

    /// Runs one process.
    fn run(&self, member: &Member) -> Result<Self::Outcome, BenchError>;
}

/// One process of an experiment: its member, and where the group meets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) place: LocalPlace,
    /// The own node id.
    pub(crate) node: u32,
    pub(crate) group: GroupConfiguration,
}

impl Member {
    /// The own rank.
    pub(crate) fn rank(&self) -> Result<Rank, BenchError> {
        let rank = self.group.rank_of(self.node);
        rank.ok_or_else(|| BenchError::Setup(format!("node {} is not in the group", self.node)))
    }

    /// Messages of all senders together, if each sends so many.
    pub(crate) fn messages_of_all(&self, messages: u64) -> u64 {
        messages * self.group.subgroups[0].senders.len() as u64
    }

    /// The rows of all processes, for a probe over shared memory.
    pub(crate) fn mappings(&self) -> Result<Mappings, BenchError> {
        let root = Root::from_env();
        let name = self.place.name()?;
        let name =
            name.ok_or_else(|| BenchError::Setup("a probe runs over shared memory".into()))?;
        let rank = self.rank()?;
        let mappings = self.group.with_layout(|layout| {
            Rendezvous::new(&root, &name, layout, rank)?.join(JOIN_LIMIT, &AtomicBool::new(false))
        })??;
        Ok(mappings)
    }
}

/// What a process of an experiment gets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task<E> {
    pub(crate) member: Member,
    pub(crate) experiment: E,
}

/// The role of an experiment's processes: one task, no orders, one outcome.
pub(crate) struct Process<E>(PhantomData<E>);

impl<E: Experiment> Role for Process<E> {
    const COMMAND: &'static [&'static str] = &["bench", "worker", E::KIND.name()];
    type Task = Task<E>;
    type Order = ();
    type Report = E::Outcome;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_command_line() {
        for kind in Kind::value_variants() {
            assert_eq!(kind.to_possible_value().expect("shown").get_name(), kind.name());
        }
    }
}
