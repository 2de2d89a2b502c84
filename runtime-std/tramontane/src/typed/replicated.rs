//! The handle of a replicated state machine.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_runtime::group::{
    Description, GroupStatus, Logged, NotLogged, Running, Sender, SharedStatus, StartOptions, start,
};
use tramontane_runtime::member::Stopped;

use super::copy::{Shared, StateCopy};
use super::encoding::{barrier, with_encoded};
use super::hand_over;
use super::in_thread::InThread;
use super::limits::ReplicatedOptions;
use super::not_answered::{NotAnswered, NotStarted};
use super::outgoing::Outgoing;
use super::past_state::{DurableVersion, StateAtTime};
use super::pending::Pending;
use super::proposal::{Durability, Durable, Proposal};
use super::query::Query;
use super::state_machine::StateMachine;
use super::versioned::{StateVersion, VersionedState, micros};

/// A state machine of which every member of a group has a copy. See the [module](super).
///
/// Clones are handles of the same member, for any number of threads and tasks. The member is closed
/// when the last one is dropped.
pub struct Replicated<M: StateMachine> {
    member: Arc<OwnMember<M>>,
}

/// The running member.
struct OwnMember<M: StateMachine> {
    shared: Arc<Shared<M>>,
    running: Mutex<Option<Running>>,
    status: SharedStatus,
    /// For the durability of sent commands, if the group has logs and this node sends.
    logged: Result<Mutex<Sender<Logged>>, NotLogged>,
    hand_over: Option<JoinHandle<()>>,
}

impl<M: StateMachine> Replicated<M> {
    /// Makes this process a member of a group with this state machine. `machine` is the initial
    /// state, which must be equal at all members. The group must have one ordered subgroup.
    ///
    /// # Errors
    /// [`NotStarted`]. In that case nothing is left behind, except a folder for the node's state.
    pub fn start(
        description: Description,
        options: StartOptions<'_>,
        machine: M,
    ) -> Result<Self, NotStarted> {
        Self::start_with(description, options, ReplicatedOptions::default(), machine)
    }

    /// Starts in the same way as [`start`](Replicated::start), with other limits.
    ///
    /// # Errors
    /// Returns the same errors as [`start`](Replicated::start).
    pub fn start_with(
        description: Description,
        options: StartOptions<'_>,
        limits: ReplicatedOptions,
        machine: M,
    ) -> Result<Self, NotStarted> {
        check(&description, options.node)?;
        let state = VersionedState::new(machine, limits.history);
        let initial = state.encoded().map_err(NotStarted::NotEncoded)?;
        let shared = Arc::new(Shared::new(state, Outgoing::new(limits)));
        let copy = StateCopy::new(Arc::clone(&shared), NodeId(options.node), initial);
        let running = start(description, options, copy)?;
        let status = running.shared_status();
        let (mut logged, mut hand_over) = (Err(NotLogged(SubgroupId::ZERO)), None);
        if let Some(sender) = running.sender() {
            logged = sender.clone().logged().map(Mutex::new);
            hand_over = Some(hand_over::start(&shared, sender.clone())?);
            shared.outgoing.begin(sender);
        }
        let running = Mutex::new(Some(running));
        Ok(Self { member: Arc::new(OwnMember { shared, running, status, logged, hand_over }) })
    }

    /// Starts in the same way as [`start_with`](Replicated::start_with), in a thread of its own,
    /// for tasks that must not block.
    ///
    /// # Errors
    /// Fails if the system has no further thread.
    pub fn start_in_thread(
        description: Description,
        options: StartOptions<'static>,
        limits: ReplicatedOptions,
        machine: M,
    ) -> std::io::Result<InThread<Result<Self, NotStarted>>> {
        InThread::call("tramontane-start", move || {
            Self::start_with(description, options, limits, machine)
        })
    }

    /// Sends a command to all members, which apply it in the same order. The answer is what
    /// applying it at this member returned. Commands of one thread are applied in the order of
    /// their calls. Never blocks.
    ///
    /// The answer always comes, or the reason why it never will: see [`NotAnswered`]. It also says
    /// whether other members may have applied the command.
    pub fn propose(&self, command: M::Command) -> Proposal<M::Answer> {
        let outgoing = &self.member.shared.outgoing;
        let timed = (micros(SystemTime::now()), command);
        let sent = with_encoded(&timed, |bytes| outgoing.send(bytes, false));
        Proposal::new(sent.unwrap_or_else(|why| self.refused(NotAnswered::NotEncoded(why))))
    }

    /// Proposes a command whose answer is returned once the command is durable, in a group with
    /// logs. Other members may see its effect earlier.
    pub fn propose_durable(
        &self,
        command: M::Command,
        durability: Durability,
    ) -> Proposal<M::Answer> {
        match self.logged() {
            Ok(sender) => self.propose(command).durable(durability, sender),
            Err(not_logged) => Proposal::new(self.refused(not_logged.into())),
        }
    }

    fn logged(&self) -> Result<Sender<Logged>, NotLogged> {
        let sender = self.member.logged.as_ref().map_err(|not_logged| *not_logged)?;
        Ok(sender.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn refused(&self, why: NotAnswered) -> Pending<M::Answer> {
        Pending::refused(Arc::clone(&self.member.shared.outgoing), why)
    }

    /// Reads this member's copy as it is now, which may lack commands that other members have
    /// already applied. Needs no other member. No command is applied here during the call, so it
    /// must be short.
    ///
    /// # Errors
    /// [`NotAnswered::NotRead`] if this member has ended.
    pub fn query_local<R>(&self, read: impl FnOnce(&M) -> R) -> Result<R, NotAnswered> {
        self.member.shared.read(|state| read(&state.machine))
    }

    /// Reads this member's copy after a barrier has passed through the group's order. So the copy
    /// contains every command that any member had been answered before this call. Costs as much as
    /// a command. No command is applied here while `read` runs, so it must be short.
    pub fn query_linearizable<R, F: FnOnce(&M) -> R>(&self, read: F) -> Query<M, F> {
        let shared = Arc::clone(&self.member.shared);
        Query { barrier: self.barrier(), shared, read: Some(read) }
    }

    /// Sends a barrier with this member's time.
    fn barrier(&self) -> Pending<M::Answer> {
        let mut bytes = barrier(micros(SystemTime::now()));
        self.member.shared.outgoing.send(&mut bytes, true)
    }

    /// Returns the version of this member's copy. All members that still run have received its
    /// commands, and give the same number and time to the same state.
    ///
    /// # Errors
    /// [`NotAnswered::NotRead`] if this member has ended.
    pub fn version(&self) -> Result<StateVersion, NotAnswered> {
        self.member.shared.read(|state| state.version)
    }

    /// Returns the state after this number of commands, if it is in this member's
    /// [history](ReplicatedOptions::history). Needs no other member.
    ///
    /// # Errors
    /// [`NotAnswered::NotKept`], [`NotAnswered::NotYet`] or [`NotAnswered::NotRead`].
    pub fn state_at(&self, number: u64) -> Result<M, NotAnswered> {
        // Built without the lock, because that may take a while.
        self.member.shared.read(|state| state.past(number))??.build()
    }

    /// Returns the state at a time on the group's clock, which follows the clocks of those that
    /// propose. First sends a barrier, after which no command can have an earlier time. So all
    /// members return the same state. Costs as much as a command.
    pub fn state_at_time(&self, time: SystemTime) -> StateAtTime<M> {
        let shared = Arc::clone(&self.member.shared);
        StateAtTime { barrier: self.barrier(), shared, time_us: micros(time) }
    }

    /// Waits until the version that this member's copy has now is durable, and returns it. Costs as
    /// much as a command.
    ///
    /// # Errors
    /// Returns [`NotAnswered::NotLogged`] if the group has no logs, and [`NotAnswered::NotRead`] if
    /// this member has ended.
    pub fn durable_version(
        &self,
        durability: Durability,
    ) -> Result<DurableVersion<M>, NotAnswered> {
        let (version, sender) = (self.version()?, self.logged()?);
        // A log contains all messages before the barrier if it contains the barrier.
        let (barrier, durable) = (self.barrier(), Durable::new(durability, sender));
        Ok(DurableVersion { barrier, durable, version, machine: PhantomData })
    }

    /// Returns the reason why this member has ended, or `None` if it is running.
    #[must_use]
    pub fn stopped(&self) -> Option<Stopped> {
        self.member.shared.stopped()
    }

    /// Waits for the end of this member, and returns its reason. Works with any executor.
    pub fn ended(&self) -> impl Future<Output = Stopped> + Send + use<M> {
        // A task may keep this future for as long as the member runs, but not the member.
        let outgoing = Arc::clone(&self.member.shared.outgoing);
        std::future::poll_fn(move |context| outgoing.poll_end(context.waker()))
    }

    /// Returns this member's status, as of the last check of the peers. Its
    /// [`members`](GroupStatus::members) are the nodes in the current view.
    #[must_use]
    pub fn status(&self) -> GroupStatus {
        self.member.status.status().unwrap_or_default()
    }

    /// Leaves the group once this member's commands have been applied, waiting at most `timeout`.
    /// All handles of this member end. Commands that could not be sent are answered with
    /// [`NotAnswered::NotSent`].
    ///
    /// # Errors
    /// Fails with the reason why the member ended, if it did not end by leaving. The reason is
    /// [`Stopped::Closed`] if the timeout passed.
    pub fn leave(&self, timeout: Duration) -> Result<(), Stopped> {
        match self.take_running() {
            Some(running) => {
                let started = Instant::now();
                // If commands are proposed continuously, the member leaves nevertheless.
                while self.member.shared.outgoing.has_unslotted() && started.elapsed() < timeout / 4
                {
                    std::thread::sleep(Duration::from_millis(1));
                }
                running.leave(timeout.saturating_sub(started.elapsed())).map(drop)
            }
            None => match self.member.shared.wait_for_end() {
                Stopped::Left => Ok(()),
                stopped => Err(stopped),
            },
        }
    }

    /// Leaves in the same way as [`leave`](Replicated::leave), in a thread of its own, for tasks
    /// that must not block.
    ///
    /// # Errors
    /// Fails if the system has no further thread.
    pub fn leave_in_thread(
        &self,
        timeout: Duration,
    ) -> std::io::Result<InThread<Result<(), Stopped>>> {
        let member = self.clone();
        InThread::call("tramontane-leave", move || member.leave(timeout))
    }

    /// Ends this member without notice to the group, and without waiting for its commands. All
    /// handles of this member end. Returns the reason why the member ended, which is
    /// [`Stopped::Closed`] if this call ended it.
    pub fn close(&self) -> Stopped {
        match self.take_running() {
            Some(running) => running.close().0,
            None => self.member.shared.wait_for_end(),
        }
    }

    fn take_running(&self) -> Option<Running> {
        self.member.running.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Checks that all messages of the group arrive at this node, in one order.
fn check(description: &Description, node: u32) -> Result<(), NotStarted> {
    let [subgroup] = description.subgroups.as_slice() else {
        return Err(NotStarted::Subgroups(description.subgroups.len()));
    };
    if subgroup.unordered || subgroup.reserved {
        return Err(NotStarted::NoOrder(subgroup.name.clone()));
    }
    // A node that is not in the group at all has an error of its own.
    if description.has_node(NodeId(node)) && !subgroup.members().contains(&node) {
        return Err(NotStarted::NotAMember(node));
    }
    Ok(())
}

impl<M: StateMachine> Drop for OwnMember<M> {
    fn drop(&mut self) {
        drop(self.running.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(thread) = self.hand_over.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // The thread has ended with the member, and does not panic.
            let _ = thread.join();
        }
    }
}

impl<M: StateMachine> Clone for Replicated<M> {
    fn clone(&self) -> Self {
        Self { member: Arc::clone(&self.member) }
    }
}

impl<M: StateMachine> std::fmt::Debug for Replicated<M> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Replicated").field("stopped", &self.stopped()).finish_non_exhaustive()
    }
}
