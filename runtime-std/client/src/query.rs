//! Asks a member for its status.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tramontane_control::client_messages::{
    ClientReply, ClientRequest, GroupAnswer, SILENCE_MAX, decode, encode,
};
use tramontane_control::{QueuedSession, SessionError, Wakeup};

use crate::error::ConnectError;
use crate::members::{Attempt, ClientRoute, Members};
use crate::publishing::wait;

/// The maximum length of an answer: a view of 1024 members, and names.
const ANSWER_MAX: usize = 64 << 10;

/// Returns the answer of the first member that responds.
///
/// # Errors
/// [`ConnectError`].
pub fn query(members: Members) -> Result<GroupAnswer, ConnectError> {
    members.check()?;
    let wakeup = Wakeup::new().map_err(|error| ConnectError::System(error.to_string()))?;
    let (mut route, never) = (ClientRoute::new(members), AtomicBool::new(false));
    loop {
        match route.attempt(&never) {
            Attempt::Session(mut session) => match ask(&mut session, &route, &wakeup) {
                Ok(ClientReply::Answer(answer)) => return Ok(answer),
                Ok(ClientReply::Refused(why)) if why.is_for_now() => route.refused(why),
                Ok(ClientReply::Refused(why)) => return Err(ConnectError::Refused(why)),
                Ok(_) => route.failed(&SessionError::Malformed.to_string()),
                Err(error) => route.failed(&error.to_string()),
            },
            Attempt::Failed { was_last: true } => route.pause(),
            Attempt::Failed { was_last: false } => {}
        }
        let (waited, why) = route.waited();
        if let Some(why) = route.is_hopeless() {
            return Err(ConnectError::Hopeless(why.to_owned()));
        }
        if waited > route.members().time_limit {
            return Err(ConnectError::NoMember { waited, why: why.to_owned() });
        }
    }
}

fn ask(
    session: &mut QueuedSession,
    route: &ClientRoute,
    wakeup: &Wakeup,
) -> Result<ClientReply<'static>, SessionError> {
    session.put(&encode(&ClientRequest::Query { target: route.members().target() }))?;
    let until = Instant::now() + SILENCE_MAX;
    loop {
        session.flush()?;
        session.read()?;
        if let Some(reply) = session.take(ANSWER_MAX)? {
            return match decode(&reply) {
                Some(ClientReply::Answer(answer)) => Ok(ClientReply::Answer(answer)),
                Some(ClientReply::Refused(why)) => Ok(ClientReply::Refused(why)),
                _ => Err(SessionError::Malformed),
            };
        }
        let left = until.saturating_duration_since(Instant::now());
        if left == Duration::ZERO {
            return Err(SessionError::TimeUp);
        }
        wait(session, wakeup, left);
    }
}
