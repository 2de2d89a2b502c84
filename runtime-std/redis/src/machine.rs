//! The state machine: applies batches to the keys.

use serde::{Deserialize, Serialize};
use tramontane::StateMachine;

use crate::batch::{Batch, Requests, RequestsReader};
use crate::commands::execute;
use crate::keyspace::Keyspace;
use crate::paced::{BATCH_TIME, SpentTime};
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
    /// Slow reads that the batch had no time for, and their number. They are sent again.
    pub(crate) rest: Requests,
    pub(crate) rest_count: usize,
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
        let (mut spent, mut rest, mut rest_count) = (SpentTime::default(), Requests::default(), 0);
        let mut requests = RequestsReader::new(&batch.requests);
        let mut arguments = Vec::new();
        loop {
            match requests.next(&mut arguments) {
                Ok(Some(0)) if is_own => {
                    let reply = std::mem::replace(&mut replies, fresh());
                    let is_too_large = reply.is_too_large();
                    let rest = std::mem::take(&mut rest);
                    let rest_count = std::mem::take(&mut rest_count);
                    let bytes = reply.into_bytes();
                    runs.push(RunReplies { bytes, is_too_large, rest, rest_count });
                }
                Ok(Some(0)) => {}
                Ok(Some(verb)) if is_own && is_slow_read(verb) && !spent.is_below(BATCH_TIME) => {
                    rest.push(verb, arguments.iter().copied());
                    rest_count += 1;
                }
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

fn is_slow_read(number: u8) -> bool {
    Verb::of(number).is_some_and(|verb| verb.is_slow() && verb.kind() == CommandKind::Read)
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
