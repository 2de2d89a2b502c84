//! The thread of a subscriber: it finds a member, and takes messages as long as there is room.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tramontane_control::client_messages::{
    ClientRefusal, ClientReply, ClientRequest, Level, Position, PublishedMessage, SILENCE_MAX,
    decode, encode,
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

/// The longest state that is taken over.
const STATE_MAX: usize = 256 << 20;

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
    pub(crate) fn add(&mut self, event: Event) {
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
        Event::State { state, .. } => state.len() + EVENT_COST,
        Event::Gap { .. } | Event::View(_) | Event::Forgotten(_) | Event::Closed => EVENT_COST,
    }
}

/// How a session ended.
enum SessionEnd {
    Lost(String),
    Closed,
    Refused(ClientRefusal),
    Failed(OpenError),
}

impl From<SessionError> for SessionEnd {
    fn from(error: SessionError) -> Self {
        Self::Lost(error.to_string())
    }
}

/// What a subscriber wants, and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    /// Messages that have reached a level, from a place on; none before that is known.
    Messages { next: Option<u64>, level: Level },
    /// The state, and all that members are told after it. A position once it has the state.
    All { position: Option<Position> },
}

impl Wanted {
    /// The place that is next.
    const fn next(&self) -> Option<u64> {
        match self {
            Self::Messages { next, .. } => *next,
            Self::All { position: Some(position) } => Some(position.place),
            Self::All { position: None } => None,
        }
    }

    /// Messages before this place have come.
    const fn go_on(&mut self, place: u64) {
        match self {
            Self::Messages { next, .. } => *next = Some(place),
            Self::All { position: Some(position) } => position.place = place,
            Self::All { position: None } => {}
        }
    }
}

/// The thread.
pub(crate) struct Subscribes {
    pub(crate) shared: Arc<Shared<Subscribing>>,
    pub(crate) route: Route,
    pub(crate) wanted: Wanted,
    /// What has come of a state that is not whole yet.
    pub(crate) state: Vec<u8>,
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
                Some(SessionEnd::Failed(why)) => return self.end(why),
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
        let request = match self.wanted {
            Wanted::Messages { next, level } => {
                ClientRequest::Subscribe { target, from: next, level }
            }
            Wanted::All { position } => ClientRequest::Follow { target, from: position },
        };
        session.put(&encode(&request))?;
        self.state.clear();
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
        let follows = matches!(self.wanted, Wanted::All { .. });
        match decode(reply) {
            Some(ClientReply::Subscribed { next }) if !follows => {
                self.wanted.go_on(next);
                self.opened(next);
                Ok(())
            }
            Some(ClientReply::Gap { from, to }) if !follows => {
                self.wanted.go_on(to);
                self.tell(Event::Gap { from, to });
                Ok(())
            }
            Some(ClientReply::State(part)) if follows => self.take_state(part.0),
            Some(ClientReply::Following { position, has_state }) if follows => {
                self.begin_at(position, has_state)
            }
            Some(ClientReply::View(view)) if follows => {
                self.tell(Event::View(view));
                Ok(())
            }
            Some(ClientReply::Forgotten(client)) if follows => {
                self.tell(Event::Forgotten(client));
                Ok(())
            }
            Some(ClientReply::Closed) if follows => {
                self.tell(Event::Closed);
                Err(SessionEnd::Failed(OpenError::Closed))
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

    /// A member took it: what comes next has this place.
    fn opened(&mut self, next: u64) {
        self.was_taken = true;
        self.route.taken();
        self.shared.change(|state| {
            state.opened.get_or_insert(Ok(next));
        });
    }

    fn tell(&self, event: Event) {
        self.shared.change(|state| state.add(event));
    }

    fn take_state(&mut self, part: &[u8]) -> Result<(), SessionEnd> {
        if self.state.len().saturating_add(part.len()) > STATE_MAX {
            return Err(SessionEnd::Failed(OpenError::StateTooLarge(STATE_MAX)));
        }
        self.state.extend_from_slice(part);
        Ok(())
    }

    /// It follows from a position on: that of the state, if there is one; else where it was.
    fn begin_at(&mut self, position: Position, has_state: bool) -> Result<(), SessionEnd> {
        let goes_on = self.wanted.next() == Some(position.place);
        if !has_state && !goes_on {
            return Err(SessionError::Malformed.into());
        }
        self.wanted = Wanted::All { position: Some(position) };
        if has_state {
            let state = std::mem::take(&mut self.state);
            self.tell(Event::State { place: position.place, state });
        }
        self.opened(position.place);
        Ok(())
    }

    /// Takes messages, which go on from the place that is next.
    fn take(&mut self, messages: &[PublishedMessage<'_>]) -> Result<(), SessionEnd> {
        let mut next = self.wanted.next().ok_or(SessionError::Malformed)?;
        let mut events = Vec::with_capacity(messages.len());
        for message in messages {
            if message.place != next {
                return Err(SessionError::Malformed.into());
            }
            next = next.saturating_add(1);
            let PublishedMessage { place, view, place_in_view, sender, client, payload } = *message;
            let payload = payload.0.to_vec();
            let received = Received { place, view, place_in_view, sender, client, payload };
            events.push(Event::Message(received));
        }
        self.wanted.go_on(next);
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
