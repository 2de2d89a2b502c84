//! An operator's requests to a running member, from the same host or from another.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tramontane_control::{Session, SessionError};

use super::group_status::{GroupStatus, SharedStatus};
use crate::group::engine::request::{Request, Requests};
use crate::group::enter::forming::{Waiting, others};
use crate::session_messages::{receive_message, send_message};

/// Time limit for a message from either end.
const PATIENCE: Duration = Duration::from_secs(5);

/// The maximum length of an answer: a status of 1024 members and as many subgroups.
const ANSWER_MAX: u64 = 64 << 20;

/// The maximum length of a request, with room for the requests of later programs.
const ASK_MAX: u64 = 64;

/// An operator's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OperatorRequest {
    Status,
    Leave,
}

/// The answers to an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OperatorReply {
    Status(Box<GroupStatus>),
    /// The member is leaving. Its process ends once the member has left.
    Leaving,
    /// The process is not a member yet.
    NotYet,
    /// The process was a member, but no longer is.
    Over,
    /// The process is waiting for other nodes, with which it will form the group.
    Forming {
        missing: Vec<u32>,
        but: Option<String>,
    },
    /// The process is waiting for other nodes, with which it will continue from the group's logs.
    /// The text is the reason.
    Restarting(String),
    /// The process is waiting for something else. The text is the reason.
    Waiting(String),
}

/// Answers one operator. If there are no `requests`, this process is not a member yet.
pub(crate) fn answer(
    session: &mut Session,
    board: &SharedStatus,
    requests: Option<&Requests>,
) -> Result<(), SessionError> {
    let heard = match (receive_message(session, ASK_MAX, PATIENCE)?, requests, board.status()) {
        (_, None, _) | (_, _, None) => OperatorReply::NotYet,
        (OperatorRequest::Status, Some(_), Some(status)) => OperatorReply::Status(Box::new(status)),
        (OperatorRequest::Leave, Some(requests), Some(status)) => {
            let is_asked = !status.is_over() && requests.ask(Request::Leave);
            if is_asked { OperatorReply::Leaving } else { OperatorReply::Over }
        }
    };
    send_message(session, &heard, PATIENCE)
}

/// Answers one operator while the initial nodes meet.
pub(crate) fn answer_forming(session: &mut Session, waiting: &Waiting) -> Result<(), SessionError> {
    let _: OperatorRequest = receive_message(session, ASK_MAX, PATIENCE)?;
    let heard = match waiting {
        Waiting::Forming { missing, but } => {
            let but = but.as_ref().map(ToString::to_string);
            OperatorReply::Forming { missing: missing.clone(), but }
        }
        Waiting::Others { node } => {
            OperatorReply::Forming { missing: vec![*node], but: Some(others(*node)) }
        }
        Waiting::Restart(waiting) => OperatorReply::Restarting(waiting.to_string()),
        waiting => OperatorReply::Waiting(waiting.to_string()),
    };
    send_message(session, &heard, PATIENCE)
}

/// Asks a process. The answer may say that it is not a member yet.
pub(crate) fn ask(
    session: &mut Session,
    what: OperatorRequest,
) -> Result<OperatorReply, SessionError> {
    send_message(session, &what, PATIENCE)?;
    receive_message(session, ANSWER_MAX, PATIENCE)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;

    use tramontane_control::{ControlServer, Identity, Listener, Purpose, open_session};
    use tramontane_core::ids::NodeId;

    use super::*;

    /// Without a key, any process can connect to a control server, and many can connect at once.
    #[test]
    fn overlong_operator_request_is_refused() {
        let identity = |node| Identity { node, incarnation: 1, digest: 7 };
        let listener =
            Listener::bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
        let (sender, answered) = channel();
        let server =
            ControlServer::open(listener, identity(NodeId(1)), [], None, move |mut client| {
                // The test may have ended already.
                let _ = sender.send(answer(&mut client.session, &SharedStatus::default(), None));
            });
        let server = server.expect("a thread");
        let go = || {
            let never = AtomicBool::new(false);
            let identity = identity(Identity::NO_MEMBER);
            open_session(server.address(), &identity, None, Purpose::Ask, PATIENCE, &never)
                .expect("let in")
                .session
        };
        let heard = ask(&mut go(), OperatorRequest::Status).expect("an answer");
        assert_eq!(heard, OperatorReply::NotYet);
        answered.recv().expect("it was asked").expect("it answered");
        // The connection may be closed before everything has been sent.
        let _ = go().send_stream(&mut std::io::Read::take(std::io::repeat(0), 1 << 20), PATIENCE);
        let error = answered.recv().expect("it was asked").expect_err("too long");
        assert!(matches!(error, SessionError::TooLong { limit: ASK_MAX }), "{error}");
    }
}
