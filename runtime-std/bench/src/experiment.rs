//! The common code of all experiments: the kinds of experiment, and the trait that relates a task
//! to its outcome.
//!
//! The bench starts one process per member ([`crate::processes`]); each runs its task
//! ([`crate::worker`]) and reports one outcome. A type that implements [`Experiment`] is the task;
//! its [`ExperimentMember`] provides the information about the group.

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

/// Time limit for the processes of an experiment to meet at the start.
pub(crate) const JOIN_LIMIT: Duration = Duration::from_secs(20);

/// The kinds of experiment that run as processes, by their names in the hidden command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// One cache line passed back and forth.
    HandOff,
    /// A ring in each direction without a protocol.
    BareRing,
    /// A mesh of TCP connections without a protocol.
    BareMesh,
    /// Continuous sending.
    Sending,
    /// One sender at a low rate, in a group of fixed membership.
    LowRate,
    /// Sending at a given rate.
    Paced,
    /// A group that is idle, and sleeps.
    Idling,
    /// Block groups.
    Blocks,
    /// Messages from one mapping, received by one method.
    CopyLimit,
    /// A member of a group whose membership changes.
    ViewMember,
    /// A member of a group that logs.
    DurableMember,
    /// A replica of an overlay.
    ShardReplica,
}

impl Kind {
    /// Returns the words that start a process of this kind.
    pub(crate) fn command(self) -> Vec<String> {
        vec!["bench".into(), "worker".into(), name(&self)]
    }
}

/// The task of an experiment's processes, as it is sent to them.
pub(crate) trait Experiment: Clone + Serialize + DeserializeOwned {
    /// The kind of experiment, which tells the process how to read its task.
    const KIND: Kind;
    /// The measurements of one process.
    type Outcome: Serialize + DeserializeOwned + Send + 'static;

    /// Runs one process. A member that is still running is returned with the outcome, and is closed
    /// once all processes have their outcomes. If it left earlier, members that are still
    /// delivering would lose a peer.
    fn run(&self, own: &ExperimentMember) -> Result<(Self::Outcome, Option<Running>), BenchError>;
}

/// Builds a group with `nodes` members in one subgroup, of which the first `senders` send.
pub(crate) fn group(nodes: u16, senders: u16, window: u32, message_max: u32) -> DescriptionBuilder {
    let group = Description::builder("bench").nodes(nodes.into()).senders(senders.into());
    group.window(window).message_max(message_max)
}

/// One process of an experiment: its member, and the group's meeting place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ExperimentMember {
    pub(crate) place: LocalPlace,
    /// The local rank, which is the node's id.
    pub(crate) rank: u16,
    pub(crate) group: Description,
}

impl ExperimentMember {
    /// Returns the nodes that send, by id.
    pub(crate) fn senders(&self) -> &[u32] {
        self.group.subgroups[0].senders()
    }

    /// Returns the total number of messages if each sender sends `messages`.
    pub(crate) fn messages_of_all(&self, messages: u64) -> u64 {
        messages * self.senders().len() as u64
    }

    /// Returns the group and the options with which this process starts.
    pub(crate) fn start(&self) -> Result<(Description, StartOptions<'static>), BenchError> {
        let (group, mut options) = self.place.start(self.group.clone(), self.rank.into())?;
        options.time_limit = JOIN_LIMIT;
        // This matters only if the membership may change: the group is formed anew for this
        // experiment.
        options.forming.new_group = true;
        Ok((group, options))
    }

    /// Returns the rows of all processes, for a probe over shared memory.
    pub(crate) fn connect(&self) -> Result<Connected, BenchError> {
        if !matches!(self.place, LocalPlace::SharedMemory(_)) {
            return Err(BenchError::Setup("this probe runs only over shared memory".into()));
        }
        let (group, options) = self.start()?;
        Ok(connect(group, options, self.layout()?.get())?)
    }

    /// Returns the layout of the rows.
    pub(crate) fn layout(&self) -> Result<ViewLayout, BenchError> {
        Ok(self.group.view_layout(&View::first(&self.group))?)
    }
}

/// The data that a process of an experiment receives.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task<E> {
    pub(crate) member: ExperimentMember,
    pub(crate) experiment: E,
}

/// The role of an experiment's processes: one task, no orders, one outcome.
pub(crate) struct ExperimentProcess<E>(PhantomData<E>);

impl<E: Experiment> Role for ExperimentProcess<E> {
    fn command() -> Vec<String> {
        E::KIND.command()
    }
    type Task = Task<E>;
    type Order = ();
    type Report = E::Outcome;
}
