//! The state machine: applies batches to the keys.

use serde::{Deserialize, Serialize};
use tramontane::StateMachine;

use crate::batch::{Batch, RequestsReader};
use crate::commands::execute;
use crate::keyspace::Keyspace;
use crate::process;
use crate::protocol::Reply;
use crate::refusal::CommandRefusal;
use crate::table::{CommandKind, Verb};

/// The replies of a run of requests.
#[derive(Debug)]
pub struct RunReplies {
    /// The encoded replies.
    pub(crate) bytes: Vec<u8>,
    /// Whether the replies exceeded the limit, so that there are none.
    pub(crate) is_too_large: bool,
}

/// The keys and their values, of which every member of the group has a copy.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Database {
    pub(crate) keyspace: Keyspace,
}

impl StateMachine for Database {
    type Command = Batch;
    /// The replies of each run, at the member that received the requests; nothing at the others.
    type Answer = Vec<RunReplies>;

    fn apply(&mut self, batch: Batch) -> Vec<RunReplies> {
        self.keyspace.advance(batch.now_ms);
        let is_own = batch.origin == process::incarnation();
        let fresh = || match is_own {
            true => Reply::kept(process::reply_max()),
            false => Reply::discarded(),
        };
        let (mut replies, mut runs) = (fresh(), Vec::new());
        let mut requests = RequestsReader::new(&batch.requests);
        let mut arguments = Vec::new();
        loop {
            match requests.next(&mut arguments) {
                Ok(Some(0)) if is_own => {
                    let reply = std::mem::replace(&mut replies, fresh());
                    let is_too_large = reply.is_too_large();
                    runs.push(RunReplies { bytes: reply.into_bytes(), is_too_large });
                }
                Ok(Some(0)) => {}
                Ok(Some(verb)) => self.request(verb, &arguments, &mut replies),
                Ok(None) => return runs,
                Err(refusal) => {
                    replies.error(&refusal.0);
                    return runs;
                }
            }
        }
    }
}

impl Database {
    /// Executes one request.
    fn request(&mut self, number: u8, arguments: &[&[u8]], reply: &mut Reply) {
        match Verb::of(number) {
            // Reads are not executed for replies that nobody gets.
            Some(verb) if reply.is_kept() || verb.kind() == CommandKind::Write => {
                execute(&mut self.keyspace, verb, arguments, reply);
            }
            Some(_) => {}
            // All members refuse it, because all of them know the same commands.
            None => reply.error(&CommandRefusal::MALFORMED.0),
        }
    }
}
