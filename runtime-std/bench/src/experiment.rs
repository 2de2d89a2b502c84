//! What the processes of an experiment have in common: the kinds of experiment, and the trait that
//! ties a task to its outcome.
//!
//! The bench starts one process a member ([`crate::processes`]); each runs its task
//! ([`crate::worker`]) and reports one outcome. A type that is an [`Experiment`] is the task; what
//! it needs to know of the group is its [`Member`].

use std::marker::PhantomData;
use std::time::Duration;

use clap::ValueEnum;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::BenchError;
use tramontane_local::crew::Role;
use tramontane_local::group::LocalPlace;
use tramontane_local::options::name;
use tramontane_runtime::group::{
    Connected, Description, DescriptionBuilder, Running, StartOptions, View, ViewLayout, connect,
};

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
    /// Continuous sending.
    Sending,
    /// One sender at a low rate, in a group of fixed membership.
    LowRate,
    /// A group that has nothing to do, and sleeps.
    Idling,
    /// Block groups.
    Blocks,
    /// Bytes of one mapping, as each receiver has them.
    CopyLimit,
    /// A member of a group whose membership changes.
    ViewMember,
    /// A member of a group that logs.
    DurableMember,
    /// A replica of an overlay.
    ShardReplica,
}

impl Kind {
    /// The words that start a process of this kind.
    pub(crate) fn command(self) -> Vec<String> {
        vec!["bench".into(), "worker".into(), name(&self)]
    }
}

/// What each process of an experiment does: the task itself, as it is sent to them.
pub(crate) trait Experiment: Clone + Serialize + DeserializeOwned {
    /// By which the process knows what it gets.
    const KIND: Kind;
    /// What one process saw.
    type Outcome: Serialize + DeserializeOwned + Send + 'static;

    /// Runs one process. What runs on beside the outcome is closed once all processes have theirs:
    /// a member that goes earlier is lost to those that still deliver.
    fn run(&self, own: &Member) -> Result<(Self::Outcome, Option<Running>), BenchError>;
}

/// A group of this number of members in one subgroup, of whom the first `senders` send.
pub(crate) fn group(nodes: u16, senders: u16, window: u32, message_max: u32) -> DescriptionBuilder {
    let group = Description::builder("bench").nodes(nodes.into()).senders(senders.into());
    group.window(window).message_max(message_max)
}

/// One process of an experiment: its member, and where the group meets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) place: LocalPlace,
    /// The own rank, which is the node's id.
    pub(crate) rank: u16,
    pub(crate) group: Description,
}

impl Member {
    /// Which nodes send, by id.
    pub(crate) fn senders(&self) -> &[u32] {
        self.group.subgroups[0].senders()
    }

    /// Messages of all senders together, if each sends so many.
    pub(crate) fn messages_of_all(&self, messages: u64) -> u64 {
        messages * self.senders().len() as u64
    }

    /// What this process starts with.
    pub(crate) fn start(&self) -> Result<(Description, StartOptions<'static>), BenchError> {
        let (group, mut options) = self.place.start(self.group.clone(), self.rank.into())?;
        options.time_limit = JOIN_LIMIT;
        // Where membership may change: it is formed for this experiment alone.
        options.forming.new_group = true;
        Ok((group, options))
    }

    /// The rows of all processes, for a probe over shared memory.
    pub(crate) fn connect(&self) -> Result<Connected, BenchError> {
        if !matches!(self.place, LocalPlace::SharedMemory(_)) {
            return Err(BenchError::Setup("a probe runs over shared memory".into()));
        }
        let (group, options) = self.start()?;
        Ok(connect(group, options, self.layout()?.get())?)
    }

    /// How the rows are laid out.
    pub(crate) fn layout(&self) -> Result<ViewLayout, BenchError> {
        Ok(self.group.view_layout(&View::first(&self.group))?)
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
    fn command() -> Vec<String> {
        E::KIND.command()
    }
    type Task = Task<E>;
    type Order = ();
    type Report = E::Outcome;
}
