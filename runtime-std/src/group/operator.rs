//! What an operator asks of a running member, from the same host or another.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tramontane_mesh::{Talk, TalkError};

use super::request::{Request, Requests};
use super::status::{Board, GroupStatus};
use super::talking::{hear, say};

/// How long either end may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest answer: a status of 1024 members and as many subgroups.
const ANSWER_MAX: u64 = 64 << 20;

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum OperatorAsks {
    Status,
    Leave,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum OperatorHears {
    Status(Box<GroupStatus>),
    /// It leaves from now on; its process ends once it has.
    Leaving,
    /// It is no member yet.
    NotYet,
}

/// Answers one operator. Without `requests` this process is no member yet.
pub(super) fn answer(talk: &mut Talk, board: &Board, requests: Option<&Requests>) -> Result<(), TalkError> {
    let heard = match (hear(talk, ANSWER_MAX, PATIENCE)?, requests, board.status()) {
        (_, None, _) | (_, _, None) => OperatorHears::NotYet,
        (OperatorAsks::Status, Some(_), Some(status)) => OperatorHears::Status(Box::new(status)),
        (OperatorAsks::Leave, Some(requests), Some(_)) => {
            requests.ask(Request::Leave);
            OperatorHears::Leaving
        }
    };
    say(talk, &heard, PATIENCE)
}

/// Asks a member; nothing if it is none yet.
pub(super) fn ask(talk: &mut Talk, what: OperatorAsks) -> Result<OperatorHears, TalkError> {
    say(talk, &what, PATIENCE)?;
    hear(talk, ANSWER_MAX, PATIENCE)
}
