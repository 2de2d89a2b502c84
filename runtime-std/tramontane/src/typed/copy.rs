//! A member's copy of the state, to which the group's commands are applied.

use std::io;
use std::io::{Cursor, Read};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::Waker;

use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_runtime::group::{Application, Message, Messages, give_up};
use tramontane_runtime::member::Stopped;

use super::answers::AnswerOutcome;
use super::encoding::{barrier_time, decode};
use super::not_answered::NotAnswered;
use super::outgoing::Outgoing;
use super::reading::LocalRead;
use super::state_machine::StateMachine;
use super::versioned::VersionedState;

/// The state that the handles and the member share.
pub(super) struct Shared<M: StateMachine> {
    state: RwLock<VersionedState<M>>,
    pub(super) outgoing: Arc<Outgoing<M::Answer>>,
}

impl<M: StateMachine> Shared<M> {
    pub(super) const fn new(state: VersionedState<M>, outgoing: Arc<Outgoing<M::Answer>>) -> Self {
        Self { state: RwLock::new(state), outgoing }
    }

    /// Reads this member's copy between two commands.
    pub(super) fn read<R>(
        &self,
        read: impl FnOnce(&VersionedState<M>) -> R,
    ) -> Result<R, NotAnswered> {
        let stopped = match self.state.read() {
            Ok(state) => match self.stopped() {
                None => {
                    let _reading = LocalRead::begin();
                    return Ok(read(&state));
                }
                Some(stopped) => stopped,
            },
            // A command has panicked halfway, and the member is ending.
            Err(poisoned) => {
                drop(poisoned);
                self.wait_for_end()
            }
        };
        Err(NotAnswered::NotRead(stopped))
    }

    /// Returns the state at the last version at or before a time.
    pub(super) fn state_at_time(&self, time_us: u64) -> Result<M, NotAnswered> {
        // Built without the lock, because that may take a while.
        self.read(|state| state.past(state.number_at(time_us)?))??.build()
    }

    pub(super) fn stopped(&self) -> Option<Stopped> {
        self.outgoing.lock().ended.clone()
    }

    /// Waits until the member has ended.
    pub(super) fn wait_for_end(&self) -> Stopped {
        let state = self.outgoing.wait_while(|state| state.ended.is_none());
        state.ended.clone().unwrap_or(Stopped::Closed)
    }
}

/// The application that the group drives.
pub(super) struct StateCopy<M: StateMachine> {
    shared: Arc<Shared<M>>,
    own: NodeId,
    /// The encoded initial state.
    initial: Vec<u8>,
    /// The answers to own messages that have been applied, before they are given.
    answers: Vec<Option<AnswerOutcome<M::Answer>>>,
    /// The copy of a message that its sender could still change.
    copied: Vec<u8>,
    /// Those whose answers have been given, but who have not been woken.
    wakers: Vec<Waker>,
}

impl<M: StateMachine> StateCopy<M> {
    pub(super) fn new(shared: Arc<Shared<M>>, own: NodeId, initial: Vec<u8>) -> Self {
        let (answers, copied, wakers) = (Vec::new(), Vec::new(), Vec::new());
        Self { shared, own, initial, answers, copied, wakers }
    }

    /// Applies the command in a message, and returns its answer, or `None` for a barrier.
    fn apply(&mut self, message: &Message<'_>, state: &mut VersionedState<M>) -> Option<M::Answer> {
        let bytes = if message.is_large {
            // Only this member writes to the memory of a large message.
            message.payload
        } else {
            self.copied.clear();
            self.copied.extend_from_slice(message.payload);
            &self.copied
        };
        if let Some(time_us) = barrier_time(bytes) {
            state.tick(time_us);
            return None;
        }
        match decode(bytes) {
            Ok((time_us, command)) => Some(state.apply(command, time_us, bytes)),
            Err(why) => give_up(format!(
                "node {} sent a command that this program cannot read, because {why}; run the \
                 same version of the program at all members",
                message.sender
            )),
        }
    }

    fn is_own(&self, message: &Message<'_>) -> bool {
        message.sender == self.own && message.client.is_none() && !message.is_replayed
    }

    /// Passes on the answers to own messages that have been applied.
    fn give_answers(&mut self) {
        if self.answers.is_empty() {
            return;
        }
        let is_in_order = self.shared.outgoing.answer(&mut self.answers, &mut self.wakers);
        // Drops the answers that nobody waits for.
        self.answers.clear();
        if !is_in_order {
            give_up("own messages arrived in another order than they were sent; report this");
        }
    }
}

impl<M: StateMachine> Application for StateCopy<M> {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        let shared = Arc::clone(&self.shared);
        // If an earlier command had panicked, no message would arrive.
        let mut state = shared.state.write().unwrap_or_else(PoisonError::into_inner);
        for message in messages {
            let answer = self.apply(&message, &mut state);
            if self.is_own(&message) {
                self.answers.push(Some(Ok(answer)));
            }
        }
        self.give_answers();
        // Woken without the lock, because a waker may run the task that waits, which may read.
        drop(state);
        self.wakers.drain(..).for_each(Waker::wake);
    }

    fn snapshot(&mut self, _: SubgroupId) -> Box<dyn Read + Send> {
        let state = self.shared.state.read().unwrap_or_else(PoisonError::into_inner);
        match state.encoded() {
            Ok(bytes) => Box::new(Cursor::new(bytes)),
            Err(why) => give_up(format!("the state cannot be encoded: {why}; change its type")),
        }
    }

    fn restore(&mut self, _: SubgroupId, state: &mut dyn Read) -> io::Result<()> {
        let mut bytes = Vec::new();
        state.read_to_end(&mut bytes)?;
        let bytes = if bytes.is_empty() { &self.initial } else { &bytes };
        let mut current = self.shared.state.write().unwrap_or_else(PoisonError::into_inner);
        *current = current.decoded(bytes).map_err(|why| {
            let why = format!(
                "the group's state cannot be read, because {why}; run the same version of the \
                 program at all members"
            );
            io::Error::new(io::ErrorKind::InvalidData, why)
        })?;
        Ok(())
    }

    fn ended(&mut self, why: &Stopped) {
        // A later command of the same batch may have panicked.
        self.give_answers();
        let wakers = self.shared.outgoing.end(why);
        self.wakers.drain(..).chain(wakers).for_each(Waker::wake);
    }
}
