//! Asks a member for its status.

use tramontane_control::client_messages::{
    ClientRefusal, ClientReply, ClientRequest, GroupAnswer, decode, encode,
};
use tramontane_control::{QueuedSession, SessionError};

use crate::error::ConnectError;
use crate::members::{Attempt, ClientRoute, Members};
use crate::shared::Shared;

/// The maximum length of an answer: a view of 1024 members, and names.
const ANSWER_MAX: usize = 64 << 10;

/// Returns the answer of the first member that responds.
///
/// # Errors
/// [`ConnectError`].
pub fn query(members: Members) -> Result<GroupAnswer, ConnectError> {
    members.check()?;
    let shared = Shared::new(()).map_err(|error| ConnectError::System(error.to_string()))?;
    let mut route = ClientRoute::new(members);
    loop {
        match route.attempt(&shared.stop) {
            Attempt::Session(mut session) => match ask(&mut session, &route, &shared) {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(why)) if why.is_for_now() => route.refused(why),
                Ok(Err(why)) => return Err(ConnectError::Refused(why)),
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
    shared: &Shared<()>,
) -> Result<Result<GroupAnswer, ClientRefusal>, SessionError> {
    session.put(&encode(&ClientRequest::Query { target: route.members().target() }))?;
    let reply = shared.reply(session, ANSWER_MAX)?.ok_or(SessionError::Closed)?;
    match decode(&reply) {
        Some(ClientReply::Answer(answer)) => Ok(Ok(answer)),
        Some(ClientReply::Refused(why)) => Ok(Err(why)),
        _ => Err(SessionError::Malformed),
    }
}
