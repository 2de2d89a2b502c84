//! What an operator asks of a running member, from the same host or another.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tramontane_control::{Talk, TalkError};

use super::forming::Waiting;
use super::request::{Request, Requests};
use super::status::{Board, GroupStatus};
use super::talking::{hear, say};

/// How long either end may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest answer: a status of 1024 members and as many subgroups.
const ANSWER_MAX: u64 = 64 << 20;

/// The longest question, with room for what a later program may ask.
const ASK_MAX: u64 = 64;

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
    /// It was a member, and is none any more.
    Over,
    /// It waits for others, to form the group with them.
    Forming {
        missing: Vec<u32>,
        but: Option<String>,
    },
}

/// Answers one operator. Without `requests` this process is no member yet.
pub(super) fn answer(
    talk: &mut Talk,
    board: &Board,
    requests: Option<&Requests>,
) -> Result<(), TalkError> {
    let heard = match (hear(talk, ASK_MAX, PATIENCE)?, requests, board.status()) {
        (_, None, _) | (_, _, None) => OperatorHears::NotYet,
        (OperatorAsks::Status, Some(_), Some(status)) => OperatorHears::Status(Box::new(status)),
        (OperatorAsks::Leave, Some(requests), Some(status)) => {
            let is_asked = !status.is_over() && requests.ask(Request::Leave);
            if is_asked { OperatorHears::Leaving } else { OperatorHears::Over }
        }
    };
    say(talk, &heard, PATIENCE)
}

/// Answers one operator while the initial nodes meet.
pub(super) fn answer_forming(talk: &mut Talk, waiting: &Waiting) -> Result<(), TalkError> {
    let _: OperatorAsks = hear(talk, ASK_MAX, PATIENCE)?;
    let heard = match waiting {
        Waiting::Forming { missing, but } => {
            let but = but.as_ref().map(ToString::to_string);
            OperatorHears::Forming { missing: missing.clone(), but }
        }
        _ => OperatorHears::NotYet,
    };
    say(talk, &heard, PATIENCE)
}

/// Asks a member; nothing if it is none yet.
pub(super) fn ask(talk: &mut Talk, what: OperatorAsks) -> Result<OperatorHears, TalkError> {
    say(talk, &what, PATIENCE)?;
    hear(talk, ANSWER_MAX, PATIENCE)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;

    use tramontane_control::{Door, Identity, Listener, Purpose, visit};
    use tramontane_core::ids::NodeId;

    use super::*;

    /// Anybody may come to a door without a key, and many at once.
    #[test]
    fn a_question_is_a_few_bytes() {
        let identity = |node| Identity { node, incarnation: 1, digest: 7 };
        let listener =
            Listener::bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
        let (sender, answered) = channel();
        let door = Door::open(listener, identity(NodeId(1)), [], None, move |mut visitor| {
            // A test that ended need not know.
            let _ = sender.send(answer(&mut visitor.talk, &Board::default(), None));
        });
        let door = door.expect("a thread");
        let go = || {
            let never = AtomicBool::new(false);
            let identity = identity(Identity::NO_MEMBER);
            visit(door.address(), &identity, None, Purpose::Ask, PATIENCE, &never)
                .expect("let in")
                .talk
        };
        let heard = ask(&mut go(), OperatorAsks::Status).expect("an answer");
        assert_eq!(heard, OperatorHears::NotYet);
        answered.recv().expect("it was asked").expect("it answered");
        // It may be closed before all is said.
        let _ = go().send_stream(&mut std::io::Read::take(std::io::repeat(0), 1 << 20), PATIENCE);
        let error = answered.recv().expect("it was asked").expect_err("too long");
        assert!(matches!(error, TalkError::TooLong { limit: ASK_MAX }), "{error}");
    }
}
