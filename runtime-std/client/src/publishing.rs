//! The thread of a publisher: it finds a member, sends lines, and receives reports of the levels
//! that they have reached.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tramontane_control::client_messages::{
    Bytes, ClientLife, ClientRefusal, ClientReply, ClientRequest, LINES_MAX, Level, SILENCE_MAX,
    decode, encode,
};
use tramontane_control::{QueuedSession, SessionError};

use crate::error::{ConnectError, PublishError};
use crate::members::{Attempt, ClientRoute};
use crate::outstanding::{LostLines, Outstanding};
use crate::shared::{Shared, wait};

/// The maximum size in bytes of the lines in one request, and of the lines waiting for the system.
const CHUNK_BYTES: usize = 32 << 10;

/// The maximum length of a reply to a publisher.
const REPLY_MAX: usize = 1 << 10;

/// The state shared by a publisher's thread and its callers.
#[derive(Debug)]
pub(crate) struct Publishing {
    pub(crate) lines: Outstanding,
    /// The maximum length of a line, once a member has reported it.
    pub(crate) line_max: Option<usize>,
    /// Whether the first member has been found, once that is known.
    pub(crate) opened: Option<Result<(), ConnectError>>,
    /// The reason why the publisher has ended.
    pub(crate) ended: Option<PublishError>,
}

/// The reason why a publisher's session with a member ended.
enum SessionEnd {
    /// The member was lost, but another may take over.
    Lost(String),
    /// The publisher has been closed.
    Closed,
    Failed(PublishError),
    Refused(ClientRefusal),
}

impl From<SessionError> for SessionEnd {
    fn from(error: SessionError) -> Self {
        Self::Lost(error.to_string())
    }
}

/// The work of a publisher's thread.
pub(crate) struct Publishes {
    pub(crate) shared: Arc<Shared<Publishing>>,
    pub(crate) route: ClientRoute,
    pub(crate) life: ClientLife,
    pub(crate) level: Level,
    /// The time for which the group remembers the client.
    pub(crate) lease: Option<Duration>,
}

impl Publishes {
    /// Publishes until the publisher is closed or cannot continue.
    pub(crate) fn run(mut self) {
        let ended = loop {
            let mut session = match self.route.attempt(&self.shared.stop) {
                Attempt::Session(session) => session,
                Attempt::Failed { was_last } => match self.give_up() {
                    Some(ended) => break ended,
                    None => {
                        if was_last {
                            self.route.pause();
                        }
                        continue;
                    }
                },
            };
            match self.serve(&mut session) {
                SessionEnd::Closed => break PublishError::Closed,
                SessionEnd::Failed(error) => break error,
                SessionEnd::Refused(why) if why.is_for_now() => {
                    self.route.refused(why);
                    if let Some(ended) = self.give_up() {
                        break ended;
                    }
                    self.route.pause();
                }
                SessionEnd::Refused(why) => break PublishError::Refused(why),
                SessionEnd::Lost(why) => {
                    tracing::info!(why, "a publisher connects to another member");
                    self.route.lost(&why);
                    if let Some(ended) = self.give_up() {
                        break ended;
                    }
                }
            }
        };
        self.shared.change(|state| {
            if state.opened.is_none() {
                state.opened = Some(Err(self.open_error(&ended)));
            }
            state.ended = Some(ended);
        });
    }

    fn open_error(&self, ended: &PublishError) -> ConnectError {
        let (waited, why) = self.route.waited();
        match (ended, self.route.is_hopeless()) {
            (PublishError::Refused(why), _) => ConnectError::Refused(*why),
            (_, Some(why)) => ConnectError::Hopeless(why.to_owned()),
            _ => ConnectError::NoMember { waited, why: why.to_owned() },
        }
    }

    /// Returns the reason why no further member should be tried, or `None` to continue.
    fn give_up(&self) -> Option<PublishError> {
        if self.shared.is_stopped() {
            return Some(PublishError::Closed);
        }
        let (waited, why) = self.route.waited();
        let most = self.lease.unwrap_or(self.route.members().time_limit);
        let is_over = waited > most || (self.lease.is_none() && self.route.is_hopeless().is_some());
        is_over.then(|| PublishError::NoMember { waited, why: why.to_owned() })
    }

    /// Runs a session with one member.
    fn serve(&mut self, session: &mut QueuedSession) -> SessionEnd {
        let served = self.attach(session).and_then(|()| {
            loop {
                self.turn(session)?;
            }
        });
        match served {
            Ok(()) => SessionEnd::Closed,
            Err(end) => end,
        }
    }

    fn attach(&mut self, session: &mut QueuedSession) -> Result<(), SessionEnd> {
        let (life, level) = (self.life, self.level);
        let (target, is_new) = (self.route.members().target(), self.lease.is_none());
        session.put(&encode(&ClientRequest::Attach { target, life, is_new, level }))?;
        let reply = self.shared.reply(session, REPLY_MAX)?.ok_or(SessionEnd::Closed)?;
        match decode(&reply) {
            Some(ClientReply::Attached { next, line_max, lease_ms }) => {
                self.attached(next, line_max, lease_ms)
            }
            Some(ClientReply::Refused(why)) => Err(SessionEnd::Refused(why)),
            _ => Err(SessionError::Malformed.into()),
        }
    }

    fn attached(&mut self, next: u64, line_max: u32, lease_ms: u64) -> Result<(), SessionEnd> {
        self.route.taken();
        self.lease = Some(Duration::from_millis(lease_ms));
        let attached = self.shared.change(|state| {
            state.line_max = Some(usize::try_from(line_max).unwrap_or(usize::MAX));
            state.opened = Some(Ok(()));
            state.lines.attach(next)
        });
        attached
            .map_err(|LostLines { from, to }| SessionEnd::Failed(PublishError::Lost { from, to }))
    }

    /// Sends lines, receives replies, and waits for more of either.
    fn turn(&mut self, session: &mut QueuedSession) -> Result<(), SessionEnd> {
        let heard_until = Instant::now() + SILENCE_MAX;
        loop {
            // Any later change ends the wait.
            let wakeup = self.shared.fall_asleep();
            self.send(session)?;
            session.read()?;
            let mut has_heard = false;
            while let Some(reply) = session.take(REPLY_MAX)? {
                has_heard = true;
                self.hear(&reply)?;
            }
            if self.shared.is_stopped() {
                return Err(self.close(session));
            }
            if has_heard {
                return Ok(());
            }
            let left = heard_until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(SessionError::TimeUp.into());
            }
            wait(session, &wakeup, left);
        }
    }

    fn send(&self, session: &mut QueuedSession) -> Result<(), SessionEnd> {
        while session.unsent_bytes() < CHUNK_BYTES {
            let (first, lines) = self.shared.with(|state| state.lines.take(LINES_MAX, CHUNK_BYTES));
            if lines.is_empty() {
                break;
            }
            let lines = lines.iter().map(|line| Bytes(line)).collect();
            session.put(&encode(&ClientRequest::Publish { first, lines }))?;
        }
        session.flush()?;
        Ok(())
    }

    fn hear(&mut self, reply: &[u8]) -> Result<(), SessionEnd> {
        match decode(reply) {
            Some(ClientReply::Reached(reached)) => {
                self.shared.change(|state| state.lines.reach(&reached));
                Ok(())
            }
            Some(ClientReply::Alive) => Ok(()),
            Some(ClientReply::Refused(why)) => Err(SessionEnd::Refused(why)),
            _ => Err(SessionError::Malformed.into()),
        }
    }

    /// Announces the client's end if the client has nothing in flight, so that the group need not
    /// remember it.
    fn close(&self, session: &mut QueuedSession) -> SessionEnd {
        if self.shared.with(|state| state.lines.is_empty()) {
            // If this message does not arrive, the lease expires anyway.
            let _ = session.put(&encode(&ClientRequest::End));
            let _ = session.flush();
        }
        SessionEnd::Closed
    }
}
