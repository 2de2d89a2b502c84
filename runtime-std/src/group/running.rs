//! The handle of a member. It is the same for both kinds of group, whether the member is driven by
//! its own thread or stepped by its caller.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tramontane_control::ControlServer;
use tramontane_core::ids::SubgroupId;

use self::driven::Driven;
use super::control::clients::Clients;
use crate::group::delivery::application::Application;
use crate::group::durable::comparison::SharedLogs;
use crate::group::durable::log_notice::LogNotice;
use crate::group::durable::log_reader::LogReader;
use crate::group::engine::changing::Engine;
use crate::group::engine::fixed::Fixed;
use crate::group::engine::participant::Participant;
use crate::group::engine::parts::Step;
use crate::group::engine::request::{Request, Requests};
use crate::group::engine::reserved_subgroups::ReservedSubgroups;
use crate::group::send::send_state::SendState;
use crate::group::send::sender::Sender;
use crate::group::send::subgroup_sending::Unsent;
use crate::group::status::group_status::{GroupStatus, SharedStatus};
use crate::member::Stopped;
use crate::poll::Steps as _;
use crate::poll::{Drive, Idle, Poller, Slept, sleep, step};

/// The interval between checks during a wait.
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// The state that all handles share.
pub(crate) struct Handle {
    pub(crate) participant: Arc<Participant>,
    pub(crate) send_states: Vec<Arc<SendState>>,
    pub(crate) requests: Requests,
    pub(crate) board: SharedStatus,
    pub(crate) unsent: Arc<Mutex<Vec<Unsent>>>,
    pub(crate) log_notices: Vec<LogNotice>,
    pub(crate) clients: Arc<dyn Clients>,
    pub(crate) logs: SharedLogs,
    // Dropped last, so that clients find an ended member rather than a closed server.
    pub(crate) _server: ControlServer,
}

/// A running member. Dropping the handle closes the member.
///
/// `Running` is driven by its own thread ([`start`](super::start)); [`Stepped`] is stepped by its
/// caller ([`start_stepped`](super::start_stepped)). Everything else is the same for both.
pub struct Running<D: Driven = ByThread> {
    // Dropped first, because the handle's control server must outlive the driven member.
    driven: D,
    handle: Handle,
}

/// A member that its caller [steps](Running::step).
///
/// ```
/// use std::time::Duration;
/// use tramontane_runtime::group::{Description, Messages, StartOptions, start_stepped};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let name = format!("stepped-{}", std::process::id());
/// // With fixed membership, all nodes must start; this group has only one node.
/// let group = Description::builder(&name).nodes(1).window(8).message_max(64).fixed().build()?;
/// let mut delivered = Vec::new();
/// let application = |messages: &mut Messages<'_, '_>| {
///     delivered.extend(messages.map(|message| message.payload.to_vec()));
/// };
/// let mut member = start_stepped(group, StartOptions::new(0), application)?;
/// let mut sender = member.sender().ok_or("every node sends")?;
/// sender.send(b"hello", Duration::from_secs(1))?;
/// while !member.is_settled() {
///     member.step()?;
/// }
/// member.close();
/// assert_eq!(delivered, [b"hello"]);
/// # Ok(())
/// # }
/// ```
pub type Stepped<A> = Running<ByCaller<A>>;

/// A member driven by its own thread.
pub struct ByThread(Poller);

/// A member stepped by its caller.
pub struct ByCaller<A: Application>(AnyMember<A>);

/// The stepped member, whose kind is fixed at the start.
#[allow(clippy::large_enum_variant, reason = "one per member, never moved")]
enum AnyMember<A: Application> {
    Fixed(Fixed<A>),
    Changing(Box<Engine<A>>),
}

/// Calls a function with either kind of member.
macro_rules! each {
    ($self:expr, $member:ident => $call:expr) => {
        match $self {
            AnyMember::Fixed($member) => $call,
            AnyMember::Changing($member) => {
                let $member = &mut **$member;
                $call
            }
        }
    };
}

mod driven {
    use std::sync::Arc;
    use std::time::Duration;

    use crate::poll::Drive;

    /// A way of driving a member: by its own thread, or by its caller.
    pub trait Driven {
        /// Returns the driver with which senders may step the member, or `None` if they may not.
        #[doc(hidden)]
        #[allow(private_interfaces)]
        fn driver(&self) -> Option<Arc<dyn Drive>>;

        /// Lets the member run for about `pause`.
        #[doc(hidden)]
        fn go_on(&mut self, pause: Duration);

        /// Returns whether nothing is in flight.
        #[doc(hidden)]
        fn is_settled(&mut self) -> bool;

        /// Ends the member, and notifies the peers.
        #[doc(hidden)]
        fn close(self);
    }
}

impl Driven for ByThread {
    #[allow(private_interfaces)]
    fn driver(&self) -> Option<Arc<dyn Drive>> {
        Some(Arc::clone(self.0.driver()))
    }

    fn go_on(&mut self, pause: Duration) {
        std::thread::sleep(pause);
    }

    fn is_settled(&mut self) -> bool {
        // `LOOK_PAUSE` is long enough to get a turn, because the polling thread releases the turn
        // more often than this.
        self.0.settle(LOOK_PAUSE)
    }

    fn close(self) {
        self.0.close();
    }
}

impl<A: Application> Driven for ByCaller<A> {
    #[allow(private_interfaces)]
    fn driver(&self) -> Option<Arc<dyn Drive>> {
        None
    }

    fn go_on(&mut self, pause: Duration) {
        // The caller can still query why the member has ended.
        let is_idle = each!(&mut self.0, member => match step(member) {
            Ok(done) if done.is_idle() => sleep(member, pause).is_err(),
            Ok(_) => false,
            Err(_) => true,
        });
        if is_idle {
            std::thread::sleep(pause);
        }
    }

    fn is_settled(&mut self) -> bool {
        each!(&mut self.0, member => member.is_settled())
    }

    fn close(mut self) {
        each!(&mut self.0, member => member.leave());
    }
}

impl<D: Driven> Running<D> {
    /// Returns a handle to send in the only subgroup. Any thread may own such a handle. Returns
    /// `None` if this node does not send in the subgroup, or if there are several subgroups; see
    /// [`sender_of`](Self::sender_of).
    #[must_use]
    pub fn sender(&self) -> Option<Sender> {
        match self.handle.participant.description.subgroups.as_slice() {
            [_] => self.sender_of(SubgroupId::ZERO),
            _ => None,
        }
    }

    /// Returns a handle to send in a subgroup, or `None` if this node does not send in it.
    #[must_use]
    pub fn sender_of(&self, subgroup: SubgroupId) -> Option<Sender> {
        let state = self.handle.send_states.iter().find(|state| state.subgroup() == subgroup)?;
        Some(Sender::new(state, self.driven.driver()))
    }

    /// Returns the subgroup with this name.
    #[must_use]
    pub fn subgroup(&self, name: &str) -> Option<SubgroupId> {
        self.handle.participant.description.subgroup(name)
    }

    /// Returns the handle that opens and closes reserved subgroups, or `None` if the group has
    /// none.
    #[must_use]
    pub fn reserved_subgroups(&self) -> Option<ReservedSubgroups> {
        let has_any = self.handle.participant.description.has_reserved();
        has_any.then(|| ReservedSubgroups::new(&self.handle.requests))
    }

    /// Reads this member's log of a subgroup, starting at position `from`, which is the number of
    /// earlier messages delivered since the group began. Returns `None` if the subgroup is not
    /// logged at this member. Any number of threads may read, each at its own position.
    #[must_use]
    pub fn log_reader(&self, subgroup: SubgroupId, from: u64) -> Option<LogReader> {
        let Handle { logs, clients, .. } = &self.handle;
        logs.has(subgroup)
            .then(|| LogReader::new(subgroup, logs.clone(), clients.record_places(subgroup), from))
    }

    /// Returns the member's status as of the last check of the peers, which was at most one
    /// heartbeat interval ago, or 200 ms with fixed membership.
    #[must_use]
    pub fn status(&self) -> GroupStatus {
        self.handle.board.status().unwrap_or_default()
    }

    /// Returns a handle to the status for other threads. It remains usable after the member has
    /// ended.
    #[must_use]
    pub fn shared_status(&self) -> SharedStatus {
        self.handle.board.clone()
    }

    /// Returns the problems found in this node's logs at its start, and the measures taken.
    #[must_use]
    pub fn log_notices(&self) -> &[LogNotice] {
        &self.handle.log_notices
    }

    /// Returns the reason why this member has left its group, or `None` if it is still a member.
    #[must_use]
    pub fn stopped(&self) -> Option<Stopped> {
        self.handle.participant.ending.stopped()
    }

    /// Asks the group to continue without this member (VIE-9). The member delivers messages until
    /// the others have installed the view that excludes it, and then ends with [`Stopped::Left`].
    /// With fixed membership the group ends: the others stop with [`Stopped::PeerLost`].
    pub fn ask_to_leave(&self) {
        self.handle.requests.ask(Request::Leave);
    }

    /// Leaves the group once this member's messages have been delivered, waiting at most `timeout`.
    /// A member that is stepped by its caller is stepped in the meantime. Returns the messages that
    /// this member committed while leaving, and that were therefore not delivered (VIE-7).
    ///
    /// # Errors
    /// Fails with the reason why the member ended, if it did not end by leaving. The reason is
    /// [`Stopped::Closed`] if the timeout passed, so that the member ended without notice to the
    /// group.
    pub fn leave(mut self, timeout: Duration) -> Result<Vec<Unsent>, Stopped> {
        let started = Instant::now();
        // If others send continuously, the member leaves with messages in flight.
        self.wait(timeout / 4, Driven::is_settled);
        self.ask_to_leave();
        self.wait(timeout.saturating_sub(started.elapsed()), |_| false);
        match self.close() {
            (Stopped::Left, unsent) => Ok(unsent),
            (stopped, _) => Err(stopped),
        }
    }

    /// Ends this member without notice to the group, and without waiting for messages in flight.
    /// Returns the reason why the member ended, which is [`Stopped::Closed`] if this call ended it,
    /// and the messages that it had committed but not delivered.
    pub fn close(self) -> (Stopped, Vec<Unsent>) {
        let Self { driven, handle } = self;
        handle.participant.ending.stop(Stopped::Closed);
        driven.close();
        handle.clients.end();
        let stopped = handle.participant.ending.stopped().unwrap_or(Stopped::Closed);
        let unsent =
            std::mem::take(&mut *handle.unsent.lock().unwrap_or_else(PoisonError::into_inner));
        (stopped, unsent)
    }

    /// Lets the member run until the condition holds, the member has ended, or the timeout has
    /// passed. Returns whether the condition holds.
    fn wait(&mut self, timeout: Duration, mut is_so: impl FnMut(&mut D) -> bool) -> bool {
        let started = Instant::now();
        while self.stopped().is_none() && started.elapsed() < timeout {
            if is_so(&mut self.driven) {
                return true;
            }
            self.driven.go_on(LOOK_PAUSE);
        }
        is_so(&mut self.driven)
    }
}

impl Running {
    /// Waits, for at most `timeout`, until everything that this member has sent is delivered
    /// everywhere, and everything that it has received is delivered at this member. Returns whether
    /// that is so.
    #[must_use]
    pub fn settle(&self, timeout: Duration) -> bool {
        self.driven.0.settle(timeout)
    }

    /// Returns the number of writes posted so far, excluding heartbeats. Waits at most for one step
    /// and one upcall.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.driven.0.writes()
    }
}

impl<A: Application> Stepped<A> {
    pub(crate) const fn fixed(handle: Handle, member: Fixed<A>) -> Self {
        Self { driven: ByCaller(AnyMember::Fixed(member)), handle }
    }

    pub(crate) fn changing(handle: Handle, member: Engine<A>) -> Self {
        Self { driven: ByCaller(AnyMember::Changing(Box::new(member))), handle }
    }

    /// Does a bounded amount of the work that is possible now. Never blocks.
    ///
    /// # Errors
    /// [`Stopped`]: this member is no longer part of the group, now and at every later call.
    #[inline]
    pub fn step(&mut self) -> Result<Step, Stopped> {
        each!(&mut self.driven.0, member => step(member))
    }

    /// Sleeps until a peer or a thread of this process rings, for at most `timeout`, unless there
    /// is already work; then steps once. Returns true if nothing rang and the step did nothing.
    ///
    /// # Errors
    /// Returns the same errors as [`Running::step`].
    pub fn sleep(&mut self, timeout: Duration) -> Result<bool, Stopped> {
        let Slept { was_rung, done } = each!(&mut self.driven.0, member => sleep(member, timeout))?;
        Ok(!was_rung && done.is_idle())
    }

    /// Returns the policy for waiting between steps without work. [`Idle::pause`] says when it is
    /// time to [sleep](Running::sleep).
    #[must_use]
    pub fn idle(&self) -> Idle {
        Idle::new(match &self.driven.0 {
            AnyMember::Fixed(member) => member.idle_time(),
            AnyMember::Changing(member) => member.idle_time(),
        })
    }

    /// Returns the application.
    pub fn application(&mut self) -> &mut A {
        each!(&mut self.driven.0, member => member.application())
    }

    /// Returns whether everything that this member has sent is delivered everywhere, and everything
    /// that it has received is delivered at this member. Such a member may sleep or leave.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        match &self.driven.0 {
            AnyMember::Fixed(member) => member.is_settled(),
            AnyMember::Changing(member) => member.is_settled(),
        }
    }

    /// Steps until the member [is settled](Running::is_settled), for at most `timeout`. Returns
    /// whether it is.
    pub fn settle(&mut self, timeout: Duration) -> bool {
        self.wait(timeout, Driven::is_settled)
    }

    /// Returns the number of writes posted so far, excluding heartbeats.
    #[must_use]
    pub fn writes(&self) -> u64 {
        match &self.driven.0 {
            AnyMember::Fixed(member) => member.writes(),
            AnyMember::Changing(member) => member.writes(),
        }
    }

    /// Returns the number of this member's null rounds so far.
    #[must_use]
    pub fn nulls(&self) -> u64 {
        match &self.driven.0 {
            AnyMember::Fixed(member) => member.statistics().nulls(),
            AnyMember::Changing(member) => member.statistics().nulls(),
        }
    }

    /// Returns the fabric's counters, if it keeps any.
    #[must_use]
    pub fn counts(&mut self) -> Option<crate::rdma::PostCounts> {
        each!(&mut self.driven.0, member => member.fabric().counts())
    }

    /// Passes the member to its own thread.
    ///
    /// # Errors
    /// Fails if the thread cannot be started. In that case the member has ended.
    pub fn spawn(self) -> std::io::Result<Running>
    where
        A: 'static,
    {
        let Self { driven: ByCaller(member), handle } = self;
        let ending = &handle.participant.ending;
        let poller = match member {
            AnyMember::Fixed(member) => Poller::start(member, ending)?,
            AnyMember::Changing(member) => Poller::start(*member, ending)?,
        };
        Ok(Running { driven: ByThread(poller), handle })
    }
}

impl<D: Driven> std::fmt::Debug for Running<D> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Running").field("stopped", &self.stopped()).finish_non_exhaustive()
    }
}
