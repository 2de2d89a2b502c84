//! The thread of a subscriber: it finds a member, and takes messages as long as there is room.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tramontane_control::client_messages::{
    ClientRefusal, ClientReply, ClientRequest, Level, PublishedMessage, SILENCE_MAX, decode, encode,
};
use tramontane_control::{QueuedSession, SessionError};

use crate::error::OpenError;
use crate::members::{Attempt, Route};
use crate::publishing::wait;
use crate::shared::Shared;
use crate::subscriber::{Event, Received};

/// Bytes of messages that wait for the program, after which no more are read.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// The longest reply: a large message, and what is around it.
const REPLY_MAX: usize = (256 << 20) + (128 << 10);

/// What one message costs beside its bytes.
const EVENT_COST: usize = 64;

/// What a subscriber's thread and its callers share.
#[derive(Debug, Default)]
pub(crate) struct Subscribing {
    pub(crate) events: VecDeque<Event>,
    bytes: usize,
    /// How the first member was found, or not.
    pub(crate) opened: Option<Result<u64, OpenError>>,
    /// Why nothing more comes.
    pub(crate) ended: Option<OpenError>,
}

impl Subscribing {
    fn add(&mut self, event: Event) {
        self.bytes += cost(&event);
        self.events.push_back(event);
    }

    /// The next event.
    pub(crate) fn take(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.bytes -= cost(&event);
        Some(event)
    }

    /// Whether more is to be read.
    pub(crate) const fn has_room(&self) -> bool {
        self.bytes < WAITING_BYTES_MAX
    }
}

fn cost(event: &Event) -> usize {
    match event {
        Event::Message(message) => message.payload.len() + EVENT_COST,
        Event::Gap { .. } => EVENT_COST,
    }
}

/// How a session ended.
enum SessionEnd {
    Lost(String),
    Closed,
    Refused(ClientRefusal),
}

impl From<SessionError> for SessionEnd {
    fn from(error: SessionError) -> Self {
        Self::Lost(error.to_string())
    }
}

/// The thread.
pub(crate) struct Subscribes {
    pub(crate) shared: Arc<Shared<Subscribing>>,
    pub(crate) route: Route,
    /// The place that is next; none before it is known.
    pub(crate) next: Option<u64>,
    pub(crate) level: Level,
    /// A member took it once.
    pub(crate) was_taken: bool,
}

impl Subscribes {
    /// Takes messages until it is dropped, or no member can be found.
    pub(crate) fn run(mut self) {
        loop {
            let end = match self.route.attempt(&self.shared.stop) {
                Attempt::Failed { was_last } => {
                    if was_last && self.give_up().is_none() {
                        self.route.pause();
                    }
                    None
                }
                Attempt::Session(mut session) => Some(self.serve(&mut session)),
            };
            match end {
                Some(SessionEnd::Closed) => return,
                Some(SessionEnd::Refused(why)) if why.is_for_now() => {
                    self.route.refused(why);
                    self.route.pause();
                }
                // It goes on where it was, as far as that is there.
                Some(SessionEnd::Refused(ClientRefusal::TooSlow)) => {
                    self.route.lost("this subscriber was too slow");
                }
                Some(SessionEnd::Refused(why)) => return self.end(OpenError::Refused(why)),
                Some(SessionEnd::Lost(why)) => {
                    tracing::info!(why, "a subscriber goes to another member");
                    self.route.lost(&why);
                }
                None => {}
            }
            if self.shared.is_stopped() {
                return;
            }
            if let Some(error) = self.give_up() {
                return self.end(error);
            }
        }
    }

    fn end(&self, why: OpenError) {
        self.shared.change(|state| {
            state.opened.get_or_insert(Err(why.clone()));
            state.ended = Some(why);
        });
    }

    /// Why no further member is tried, if none is. A member that took it once may come back.
    fn give_up(&self) -> Option<OpenError> {
        let (waited, why) = self.route.waited();
        match self.route.is_hopeless() {
            Some(why) if !self.was_taken => Some(OpenError::Hopeless(why.to_owned())),
            _ if waited > self.route.members().time_limit => {
                Some(OpenError::NoMember { waited, why: why.to_owned() })
            }
            _ => None,
        }
    }

    /// One session with one member.
    fn serve(&mut self, session: &mut QueuedSession) -> SessionEnd {
        match self.subscribe(session) {
            Ok(()) => SessionEnd::Closed,
            Err(end) => end,
        }
    }

    fn subscribe(&mut self, session: &mut QueuedSession) -> Result<(), SessionEnd> {
        let target = self.route.members().target();
        let request = ClientRequest::Subscribe { target, from: self.next, level: self.level };
        session.put(&encode(&request))?;
        let mut heard = Instant::now();
        loop {
            // From here on room that is made ends the wait.
            let wakeup = self.shared.fall_asleep();
            if self.shared.is_stopped() {
                return Ok(());
            }
            session.flush()?;
            if !self.shared.with(|state| state.has_room()) {
                // The member may well have said something meanwhile.
                heard = Instant::now();
                wait_for_room(&wakeup);
                continue;
            }
            session.read()?;
            while let Some(reply) = session.take(REPLY_MAX)? {
                heard = Instant::now();
                self.hear(&reply)?;
            }
            let left = SILENCE_MAX.saturating_sub(heard.elapsed());
            if left.is_zero() {
                return Err(SessionError::TimeUp.into());
            }
            wait(session, &wakeup, left);
        }
    }

    fn hear(&mut self, reply: &[u8]) -> Result<(), SessionEnd> {
        match decode(reply) {
            Some(ClientReply::Subscribed { next }) => {
                self.next = Some(next);
                self.was_taken = true;
                self.route.taken();
                self.shared.change(|state| {
                    state.opened.get_or_insert(Ok(next));
                });
                Ok(())
            }
            Some(ClientReply::Gap { from, to }) => {
                self.next = Some(to);
                self.shared.change(|state| state.add(Event::Gap { from, to }));
                Ok(())
            }
            Some(ClientReply::Messages(messages)) => self.take(&messages),
            Some(ClientReply::Alive) => {
                self.route.taken();
                Ok(())
            }
            Some(ClientReply::Refused(why)) => Err(SessionEnd::Refused(why)),
            _ => Err(SessionError::Malformed.into()),
        }
    }

    /// Takes messages, which go on from the place that is next.
    fn take(&mut self, messages: &[PublishedMessage<'_>]) -> Result<(), SessionEnd> {
        let mut next = self.next.ok_or(SessionError::Malformed)?;
        let mut events = Vec::with_capacity(messages.len());
        for message in messages {
            if message.place != next {
                return Err(SessionError::Malformed.into());
            }
            next = next.saturating_add(1);
            let PublishedMessage { place, view, sender, client, payload } = *message;
            let payload = payload.0.to_vec();
            events.push(Event::Message(Received { place, view, sender, client, payload }));
        }
        self.next = Some(next);
        self.shared.change(|state| events.into_iter().for_each(|event| state.add(event)));
        Ok(())
    }
}

/// Waits until the program has taken something, or for a moment.
fn wait_for_room(wakeup: &tramontane_control::Wakeup) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let timeout = Timespec::try_from(Duration::from_millis(100)).ok();
    // An interrupted wait is a short one.
    let _ = poll(&mut [PollFd::new(wakeup, PollFlags::IN)], timeout.as_ref());
}
