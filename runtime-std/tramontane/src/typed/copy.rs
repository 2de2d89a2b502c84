//! A member's copy of the state, to which the group's commands are applied.

use std::io;
use std::io::{Cursor, Read};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::Waker;

use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_runtime::group::{Application, Message, Messages, give_up};
use tramontane_runtime::member::Stopped;

use super::answers::AnswerOutcome;
use super::encoding::{decode, encode};
use super::not_answered::NotAnswered;
use super::outgoing::Outgoing;
use super::reading::LocalRead;
use super::state_machine::StateMachine;

/// The state that the handles and the member share.
pub(super) struct Shared<M: StateMachine> {
    machine: RwLock<M>,
    pub(super) outgoing: Arc<Outgoing<M::Answer>>,
}

impl<M: StateMachine> Shared<M> {
    pub(super) const fn new(machine: M, outgoing: Arc<Outgoing<M::Answer>>) -> Self {
        Self { machine: RwLock::new(machine), outgoing }
    }

    /// Reads this member's copy between two commands.
    pub(super) fn read<R>(&self, read: impl FnOnce(&M) -> R) -> Result<R, NotAnswered> {
        let stopped = match self.machine.read() {
            Ok(machine) => match self.stopped() {
                None => {
                    let _reading = LocalRead::begin();
                    return Ok(read(&machine));
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

    /// Returns the command in a message, or `None` for a barrier.
    fn command(&mut self, message: &Message<'_>) -> Option<M::Command> {
        if message.payload.is_empty() {
            return None;
        }
        let bytes = if message.is_large {
            // Only this member writes to the memory of a large message.
            message.payload
        } else {
            self.copied.clear();
            self.copied.extend_from_slice(message.payload);
            &self.copied
        };
        match decode(bytes) {
            Ok(command) => Some(command),
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
        let mut machine = shared.machine.write().unwrap_or_else(PoisonError::into_inner);
        for message in messages {
            let answer = self.command(&message).map(|command| machine.apply(command));
            if self.is_own(&message) {
                self.answers.push(Some(Ok(answer)));
            }
        }
        self.give_answers();
        // Woken without the lock, because a waker may run the task that waits, which may read.
        drop(machine);
        self.wakers.drain(..).for_each(Waker::wake);
    }

    fn snapshot(&mut self, _: SubgroupId) -> Box<dyn Read + Send> {
        let machine = self.shared.machine.read().unwrap_or_else(PoisonError::into_inner);
        match encode(&*machine) {
            Ok(bytes) => Box::new(Cursor::new(bytes)),
            Err(why) => give_up(format!("the state cannot be encoded: {why}; change its type")),
        }
    }

    fn restore(&mut self, _: SubgroupId, state: &mut dyn Read) -> io::Result<()> {
        let mut bytes = Vec::new();
        state.read_to_end(&mut bytes)?;
        let bytes = if bytes.is_empty() { &self.initial } else { &bytes };
        let machine = decode(bytes).map_err(|why| {
            let why = format!(
                "the group's state cannot be read, because {why}; run the same version of the \
                 program at all members"
            );
            io::Error::new(io::ErrorKind::InvalidData, why)
        })?;
        *self.shared.machine.write().unwrap_or_else(PoisonError::into_inner) = machine;
        Ok(())
    }

    fn ended(&mut self, why: &Stopped) {
        // A later command of the same batch may have panicked.
        self.give_answers();
        let wakers = self.shared.outgoing.end(why);
        self.wakers.drain(..).chain(wakers).for_each(Waker::wake);
    }
}
