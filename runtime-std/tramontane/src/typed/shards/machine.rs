//! A replica's copy of the state, to which its group's commands are applied.

use std::io::{self, Cursor, Read};
use std::sync::{Arc, PoisonError, RwLock};

use serde::Serialize;
use tramontane_runtime::group::give_up;
use tramontane_runtime::shards::{Delivered, ShardApplication};

use crate::typed::encoding::{decode, encode};
use crate::typed::state_machine::StateMachine;

/// The byte of an answer: what the bytes after it are.
pub(super) mod answer_byte {
    /// The encoded answer.
    pub(in super::super) const ANSWER: u8 = 0;
    /// The reason why the command could not be read. It was not applied.
    pub(in super::super) const UNREAD: u8 = 1;
    /// The reason why the answer could not be encoded. The command was applied.
    pub(in super::super) const NOT_ENCODED: u8 = 2;
}

/// The application that the replica drives.
pub(super) struct ShardCopy<M> {
    machine: Arc<RwLock<M>>,
    answer: Vec<u8>,
}

impl<M> ShardCopy<M> {
    pub(super) const fn new(machine: Arc<RwLock<M>>) -> Self {
        Self { machine, answer: Vec::new() }
    }
}

impl<M: StateMachine> ShardApplication for ShardCopy<M>
where
    M::Answer: Serialize,
{
    fn deliver(&mut self, message: &Delivered<'_>) -> u8 {
        let command = match decode(message.payload) {
            Ok(command) => command,
            // All replicas of the group run the same program, so none of them applies it.
            Err(why) => {
                self.answer = why.to_string().into_bytes();
                return answer_byte::UNREAD;
            }
        };
        let answer = self.machine.write().unwrap_or_else(PoisonError::into_inner).apply(command);
        match encode(&answer) {
            Ok(bytes) => {
                self.answer = bytes;
                answer_byte::ANSWER
            }
            Err(why) => {
                self.answer = why.into_bytes();
                answer_byte::NOT_ENCODED
            }
        }
    }

    fn answer(&self) -> &[u8] {
        &self.answer
    }

    fn snapshot(&mut self) -> Box<dyn Read + Send> {
        match encode(&*self.machine.read().unwrap_or_else(PoisonError::into_inner)) {
            Ok(bytes) => Box::new(Cursor::new(bytes)),
            Err(why) => give_up(format!("the state cannot be encoded: {why}; change its type")),
        }
    }

    fn restore(&mut self, state: &mut dyn Read) -> io::Result<()> {
        let mut bytes = Vec::new();
        state.read_to_end(&mut bytes)?;
        let machine = decode(&bytes).map_err(|why| {
            let why = format!(
                "the group's state cannot be read, because {why}; run the same version of the \
                 program at all replicas"
            );
            io::Error::new(io::ErrorKind::InvalidData, why)
        })?;
        *self.machine.write().unwrap_or_else(PoisonError::into_inner) = machine;
        Ok(())
    }
}
