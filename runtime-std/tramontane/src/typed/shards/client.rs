//! The handle of a client, which proposes commands to groups.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use tramontane_runtime::shards::{
    Client, ClientError, Description, Destinations, Places, StartOptions,
};

use super::call::{CallEntry, ShardProposal};
use super::call_queue::{CallLimits, CallQueue};
use super::driver;
use super::no_answers::{NoAnswers, ShardNotStarted};
use super::replica::check_answers;
use crate::typed::encoding::with_encoded;
use crate::typed::limits::ReplicatedOptions;
use crate::typed::state_machine::StateMachine;

/// A client of the state machines of an overlay. See [`typed`](crate::typed).
///
/// Clones are handles of the same client, for any number of threads and tasks. The client has one
/// place in the overlay, and one thread. It takes another place if calls to a group without a
/// majority fill its window. It leaves without notice when the last handle is dropped.
pub struct ShardClient<M> {
    client: Arc<ClientThread>,
    machine: PhantomData<fn() -> M>,
}

struct ClientThread {
    queue: Arc<CallQueue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl<M: StateMachine> ShardClient<M>
where
    M::Answer: DeserializeOwned,
{
    /// Obtains a place, and connects to a quorum of each of these groups and of the groups that
    /// order their commands. An empty set means all groups.
    ///
    /// # Errors
    /// [`ShardNotStarted`].
    pub fn connect(
        description: &Description,
        groups: Destinations,
        options: StartOptions<'_>,
    ) -> Result<Self, ShardNotStarted> {
        Self::connect_with(description, groups, options, ReplicatedOptions::default())
    }

    /// Connects in the same way as [`connect`](ShardClient::connect), with other limits on the
    /// calls that wait until they can be sent.
    ///
    /// # Errors
    /// Returns the same errors as [`connect`](ShardClient::connect).
    pub fn connect_with(
        description: &Description,
        groups: Destinations,
        options: StartOptions<'_>,
        limits: ReplicatedOptions,
    ) -> Result<Self, ShardNotStarted> {
        check_answers(description)?;
        let client = Client::connect(description, groups, options)?;
        let limits = CallLimits::new(description, client.places().clone(), limits);
        let queue = Arc::new(CallQueue::new(Arc::new(limits), client.waker()));
        let thread = Mutex::new(Some(driver::start(client, &queue)?));
        Ok(Self { client: Arc::new(ClientThread { queue, thread }), machine: PhantomData })
    }

    /// Returns the names and ids of the overlay.
    #[must_use]
    pub fn places(&self) -> &Places {
        &self.client.queue.limits.places
    }

    /// Sends a command to a set of groups. All replicas of these groups apply it once, in one order
    /// with all other commands, and each group answers what applying it there returned. Never
    /// blocks.
    ///
    /// Commands of one client for the same groups are applied in the order of their calls. For
    /// other commands there is no such order, unless the caller waits for the answers to the first.
    ///
    /// The answers always come, or the reason why they never will: see [`NoAnswers`]. If this
    /// client has been connected to no majority of a group for the lease of clients, its calls to
    /// that group end with an error, and its calls to other groups continue.
    pub fn propose(&self, groups: Destinations, command: M::Command) -> ShardProposal<M::Answer> {
        let queue = &self.client.queue;
        let call = with_encoded(&command, |bytes| queue.add(groups, bytes));
        let call = call.unwrap_or_else(|why| CallEntry::new(Some(Err(NoAnswers::NotEncoded(why)))));
        ShardProposal::new(call, Arc::clone(&queue.limits))
    }

    /// Returns the reason why this client has ended, or `None` if it is running.
    #[must_use]
    pub fn ended(&self) -> Option<ClientError> {
        self.client.queue.lock().ended.clone()
    }

    /// Waits for the answers to the calls in flight, and returns the client's place, within
    /// `timeout`. All handles of this client end. Calls that were not sent end with
    /// [`NoAnswers::NotSent`].
    ///
    /// # Errors
    /// Fails with the reason why the client has ended, if it is not this call.
    pub fn leave(&self, timeout: Duration) -> Result<(), ClientError> {
        self.client.end(Instant::now() + timeout);
        match self.ended() {
            None | Some(ClientError::Left) => Ok(()),
            Some(why) => Err(why),
        }
    }
}

impl ClientThread {
    fn end(&self, until: Instant) {
        self.queue.leave(until);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            // The thread catches panics.
            let _ = thread.join();
        }
    }
}

impl Drop for ClientThread {
    fn drop(&mut self) {
        self.end(Instant::now());
    }
}

impl<M> Clone for ShardClient<M> {
    fn clone(&self) -> Self {
        Self { client: Arc::clone(&self.client), machine: PhantomData }
    }
}

impl<M> std::fmt::Debug for ShardClient<M> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ShardClient").finish_non_exhaustive()
    }
}
