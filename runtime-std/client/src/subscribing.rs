//! The thread of a subscriber: it finds a member, and receives messages as long as there is room.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tramontane_control::client_messages::{
    ClientRefusal, ClientReply, ClientRequest, Compared, Level, Position, PublishedMessage,
    SILENCE_MAX, decode, encode,
};
use tramontane_control::{QueuedSession, SessionError};

use crate::error::ConnectError;
use crate::history::{OrderComparison, ReceivedOrder, Search};
use crate::members::{Attempt, ClientRoute};
use crate::shared::{Shared, wait};
use crate::subscriber::{Event, Received};

/// The number of message bytes waiting for the program above which no more are read.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// The maximum length of a reply: a large message and its header.
const REPLY_MAX: usize = (256 << 20) + (128 << 10);

/// The maximum length of a state.
const STATE_MAX: usize = 256 << 20;

/// The maximum length of an answer to a comparison.
const COMPARED_BYTES_MAX: usize = 4 << 10;

/// The memory used per message, in addition to its bytes.
const EVENT_COST: usize = 64;

/// The state shared by a subscriber's thread and its callers.
#[derive(Debug, Default)]
pub(crate) struct Subscribing {
    pub(crate) events: VecDeque<Event>,
    bytes: usize,
    /// Whether the first member has been found, once that is known; with the first position and the
    /// level.
    pub(crate) opened: Option<Result<(u64, Level), ConnectError>>,
    /// The reason why no more messages arrive.
    pub(crate) ended: Option<ConnectError>,
}

impl Subscribing {
    pub(crate) fn add(&mut self, event: Event) {
        self.bytes += cost(&event);
        self.events.push_back(event);
    }

    /// Takes the next event.
    pub(crate) fn take(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.bytes -= cost(&event);
        Some(event)
    }

    /// Returns whether more may be read.
    pub(crate) const fn has_room(&self) -> bool {
        self.bytes < WAITING_BYTES_MAX
    }
}

fn cost(event: &Event) -> usize {
    match event {
        Event::Message(message) => message.payload.len() + EVENT_COST,
        Event::State { state, .. } => state.len() + EVENT_COST,
        Event::Gap { .. }
        | Event::Changed { .. }
        | Event::View(_)
        | Event::Forgotten(_)
        | Event::Closed => EVENT_COST,
    }
}

/// The reason why a session ended.
enum SessionEnd {
    Lost(String),
    Closed,
    Refused(ClientRefusal),
    Failed(ConnectError),
    /// The member has not reached this position yet.
    Behind,
}

impl From<SessionError> for SessionEnd {
    fn from(error: SessionError) -> Self {
        Self::Lost(error.to_string())
    }
}

/// The content that a subscriber asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WantedContent {
    /// Messages that have reached a level. If `None`, the member chooses the level.
    Messages { level: Option<Level> },
    /// The state, and all later events of members.
    All,
}

/// The work of a subscriber's thread.
pub(crate) struct Subscribes {
    pub(crate) shared: Arc<Shared<Subscribing>>,
    pub(crate) route: ClientRoute,
    pub(crate) wanted: WantedContent,
    /// The next position, once known.
    pub(crate) next: Option<u64>,
    /// The received order. The subscriber resumes at a member only if that member has the same
    /// order.
    pub(crate) history: Option<ReceivedOrder>,
    /// The end of the last member's order, if that order is a prefix of the received one.
    pub(crate) behind: Option<u64>,
    /// The received part of an incomplete state.
    pub(crate) state: Vec<u8>,
    /// Whether any member has ever accepted the subscriber.
    pub(crate) was_taken: bool,
}

impl Subscribes {
    /// Receives messages until the subscriber is dropped, or no member can be found.
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
                Some(SessionEnd::Behind) => {
                    self.route
                        .failed("the member knows less of the order than was reported before");
                    self.route.pause();
                }
                Some(SessionEnd::Refused(why)) if why.is_for_now() => {
                    self.route.refused(why);
                    self.route.pause();
                }
                // The subscriber resumes at its old position, as far as the messages are still
                // available.
                Some(SessionEnd::Refused(ClientRefusal::TooSlow)) => {
                    self.route.lost("this subscriber was too slow");
                }
                Some(SessionEnd::Refused(why)) => return self.end(ConnectError::Refused(why)),
                Some(SessionEnd::Failed(why)) => return self.end(why),
                Some(SessionEnd::Lost(why)) => {
                    tracing::info!(why, "a subscriber connects to another member");
                    self.route.lost(&why);
                }
                None => {}
            }
            if self.shared.is_stopped() {
                return;
            }
            if let Some(error) = self.give_up() {
                let Some(from) = self.behind.take() else { return self.end(error) };
                // No member has had the rest for that long, so this is a different group.
                self.changed(from);
                self.route.taken();
            }
        }
    }

    fn end(&self, why: ConnectError) {
        self.shared.change(|state| {
            state.opened.get_or_insert(Err(why.clone()));
            state.ended = Some(why);
        });
    }

    /// Returns the reason why no further member should be tried, or `None` to continue. A member
    /// that once accepted the subscriber may return.
    fn give_up(&self) -> Option<ConnectError> {
        let (waited, why) = self.route.waited();
        match self.route.is_hopeless() {
            Some(why) if !self.was_taken => Some(ConnectError::Hopeless(why.to_owned())),
            _ if waited > self.route.members().time_limit => {
                Some(ConnectError::NoMember { waited, why: why.to_owned() })
            }
            _ => None,
        }
    }

    /// Runs a session with one member.
    fn serve(&mut self, session: &mut QueuedSession) -> SessionEnd {
        match self.subscribe(session) {
            Ok(()) => SessionEnd::Closed,
            Err(end) => end,
        }
    }

    fn subscribe(&mut self, session: &mut QueuedSession) -> Result<(), SessionEnd> {
        self.compare(session)?;
        let (target, from) = (self.route.members().target(), self.next);
        let request = match self.wanted {
            WantedContent::Messages { level } => ClientRequest::Subscribe { target, from, level },
            // Without a history, the subscriber needs the state.
            WantedContent::All => {
                let from = from.filter(|_| self.history.is_some());
                ClientRequest::Follow { target, from }
            }
        };
        session.put(&encode(&request))?;
        self.state.clear();
        let mut heard = Instant::now();
        loop {
            // Room that is freed later ends the wait.
            let wakeup = self.shared.fall_asleep();
            if self.shared.is_stopped() {
                return Ok(());
            }
            session.flush()?;
            if !self.shared.with(|state| state.has_room()) {
                // The member may have sent something in the meantime.
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

    /// Compares the member's order with the received one. If the orders differ, the subscriber
    /// reports that, and resumes at the first position that differs.
    fn compare(&mut self, session: &mut QueuedSession) -> Result<(), SessionEnd> {
        self.behind = None;
        let Some(history) = &self.history else { return Ok(()) };
        let mut search = Search::new(history);
        let verdict = loop {
            let (target, places) = (self.route.members().target(), search.places());
            let count = places.len();
            session.put(&encode(&ClientRequest::Compare { target, places }))?;
            let compared = self.compared(session)?;
            if compared.digests.len() != count {
                return Err(SessionError::Malformed.into());
            }
            if let Some(verdict) = search.hear(&compared) {
                break verdict;
            }
        };
        match verdict {
            OrderComparison::Same => Ok(()),
            OrderComparison::Changed { from } => {
                self.changed(from);
                Ok(())
            }
            OrderComparison::Behind { from, is_same_group } => {
                if is_same_group {
                    self.route.taken();
                } else {
                    self.behind = Some(from);
                }
                Err(SessionEnd::Behind)
            }
        }
    }

    fn compared(&self, session: &mut QueuedSession) -> Result<Compared, SessionEnd> {
        let reply = self.shared.reply(session, COMPARED_BYTES_MAX)?.ok_or(SessionEnd::Closed)?;
        match decode(&reply) {
            Some(ClientReply::Compared(compared)) => Ok(compared),
            Some(ClientReply::Refused(why)) => Err(SessionEnd::Refused(why)),
            _ => Err(SessionError::Malformed.into()),
        }
    }

    /// Reports that the group's order differs, starting at a position.
    fn changed(&mut self, from: u64) {
        (self.next, self.history) = (Some(from), None);
        self.tell(Event::Changed { from });
    }

    fn hear(&mut self, reply: &[u8]) -> Result<(), SessionEnd> {
        let follows = matches!(self.wanted, WantedContent::All);
        match decode(reply) {
            Some(ClientReply::Subscribed { next, digest, earlier, view, level }) if !follows => {
                self.next = Some(next);
                if let Some(digest) = digest {
                    self.note_position(Position { place: next, digest }, earlier, view)?;
                }
                self.opened(next, level);
                Ok(())
            }
            Some(ClientReply::Gap { from, to }) if !follows => {
                (self.next, self.history) = (Some(to), None);
                self.tell(Event::Gap { from, to });
                Ok(())
            }
            Some(ClientReply::State(part)) if follows => self.take_state(part.0),
            Some(ClientReply::Following { position, earlier, view, has_state }) if follows => {
                self.begin_at(position, has_state)?;
                self.note_position(position, earlier, view)
            }
            Some(ClientReply::View(view)) if follows => {
                if let Some(history) = &mut self.history {
                    history.saw_view(view.view);
                }
                self.tell(Event::View(view));
                Ok(())
            }
            Some(ClientReply::Forgotten(client)) if follows => {
                self.tell(Event::Forgotten(client));
                Ok(())
            }
            Some(ClientReply::Closed) if follows => {
                self.tell(Event::Closed);
                Err(SessionEnd::Failed(ConnectError::Closed))
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

    /// Records that a member has accepted the subscriber, and the position of the next message.
    fn opened(&mut self, next: u64, level: Level) {
        self.was_taken = true;
        self.route.taken();
        self.shared.change(|state| {
            state.opened.get_or_insert(Ok((next, level)));
        });
    }

    /// Records the position after which the next message follows, and the known earlier positions.
    fn note_position(
        &mut self,
        position: Position,
        earlier: Vec<Position>,
        view: u64,
    ) -> Result<(), SessionEnd> {
        match &mut self.history {
            Some(history) => history.saw_view(view),
            history => {
                let begun = ReceivedOrder::begin_at(position, earlier, view);
                *history = Some(begun.ok_or(SessionError::Malformed)?);
            }
        }
        Ok(())
    }

    fn tell(&self, event: Event) {
        self.shared.change(|state| state.add(event));
    }

    fn take_state(&mut self, part: &[u8]) -> Result<(), SessionEnd> {
        if self.state.len().saturating_add(part.len()) > STATE_MAX {
            return Err(SessionEnd::Failed(ConnectError::StateTooLarge(STATE_MAX)));
        }
        self.state.extend_from_slice(part);
        Ok(())
    }

    /// Begins to follow at a position: that of the state, if there is one, or otherwise the
    /// subscriber's old position.
    fn begin_at(&mut self, position: Position, has_state: bool) -> Result<(), SessionEnd> {
        let goes_on = self.next == Some(position.place);
        if !has_state && !goes_on {
            return Err(SessionError::Malformed.into());
        }
        self.next = Some(position.place);
        if has_state {
            self.history = None;
            let state = std::mem::take(&mut self.state);
            self.tell(Event::State { place: position.place, state });
        }
        self.opened(position.place, Level::Delivered);
        Ok(())
    }

    /// Takes messages, which must follow the next position without a gap.
    fn take(&mut self, messages: &[PublishedMessage<'_>]) -> Result<(), SessionEnd> {
        let mut next = self.next.ok_or(SessionError::Malformed)?;
        let mut events = Vec::with_capacity(messages.len());
        for message in messages {
            if message.place != next {
                return Err(SessionError::Malformed.into());
            }
            next = next.saturating_add(1);
            if let Some(history) = &mut self.history {
                history.add(message);
            }
            let PublishedMessage { place, view, place_in_view, sender, client, payload } = *message;
            let payload = payload.0.to_vec();
            let received = Received { place, view, place_in_view, sender, client, payload };
            events.push(Event::Message(received));
        }
        self.next = Some(next);
        self.shared.change(|state| events.into_iter().for_each(|event| state.add(event)));
        Ok(())
    }
}

/// Waits until the program has taken an event, or briefly.
fn wait_for_room(wakeup: &tramontane_control::Wakeup) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let timeout = Timespec::try_from(Duration::from_millis(100)).ok();
    // If the wait is interrupted, it is merely shorter.
    let _ = poll(&mut [PollFd::new(wakeup, PollFlags::IN)], timeout.as_ref());
}
