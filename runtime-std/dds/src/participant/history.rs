//! A reader that begins at a position of a logged topic: a thread reads the log on the reader's
//! behalf, and hands the reader over to the topic once it has caught up. A member reads its own
//! log; an external participant requests a member's.
//!
//! # Invariants
//! - The reader receives each sample once, in the topic's order: the topic takes over under its
//!   lock, at the number up to which the log has been read.
//! - Messages never wait for the reader, and no lock is held during disk access: the topic keeps
//!   its last messages until the reader has caught up.

use std::sync::Arc;
use std::time::Duration;

use tramontane::{LogPart, LogReader, LogReaderError, Message};
use tramontane_client::{ConnectError, Event, SubscribeError, Subscriber};

use super::following::message_of;
use super::shared::ParticipantState;
use super::upcall::upcall;
use crate::domain::{Domain, Level};
use crate::error::DdsError;
use crate::reader::ReaderCore;
use crate::time::Now;
use crate::topic::TopicState;

/// Maximum number of messages that the reader receives while the topic is locked.
const LAST_MAX: usize = 64;

/// Maximum number of messages that the reader receives at a time.
const TOGETHER_MAX: usize = 256;

/// Interval between checks whether the reader and the participant still exist.
const LOOK: Duration = Duration::from_millis(100);

/// Interval between checks whether the topic has come as far as the log.
const PAUSE: Duration = Duration::from_millis(1);

/// The source of earlier messages.
pub(super) enum LogSource {
    /// The log of this member.
    Own(LogReader),
    /// A member's log and its messages in memory.
    OfMember(Subscriber),
}

/// The reason that a source has ended.
enum SourceEnd {
    /// The member has ended.
    Ended,
    /// No member accepts the participant any longer.
    Lost(ConnectError),
    /// The log is unreadable.
    Unreadable(String),
}

/// A reader that is catching up from a log, and the source from which the log is read.
pub(super) struct History {
    shared: Arc<ParticipantState>,
    topic: usize,
    source: LogSource,
    /// The topic's state according to the log, with the reader.
    told: TopicState,
}

impl History {
    /// Creates the history of a topic with this level. The first messages are left out.
    pub(super) fn new(
        shared: &Arc<ParticipantState>,
        topic: usize,
        (level, before): (Level, u64),
        source: LogSource,
        reader: Arc<ReaderCore>,
    ) -> Self {
        shared.with_topic(topic, TopicState::reader_comes);
        let told = TopicState::behind(before, level, reader);
        Self { shared: Arc::clone(shared), topic, source, told }
    }

    /// Starts to read in a separate thread.
    pub(super) fn start(mut self) -> Result<(), DdsError> {
        let shared = Arc::clone(&self.shared);
        Ok(shared.life.spawn(move || while self.goes_on() {})?)
    }

    fn goes_on(&mut self) -> bool {
        if self.shared.life.has_ended() || !self.told.has_wanted_reader() {
            return false;
        }
        let ordinal = self.told.ordinal();
        let kept = |of: &mut TopicState| (of.ordinal(), of.messages_behind(ordinal, TOGETHER_MAX));
        match self.shared.with_topic(self.topic, kept) {
            // On an external participant, the log and the topic arrive over two connections.
            Some((present, _)) if present < ordinal => {
                std::thread::sleep(PAUSE);
                true
            }
            Some((_, Some(last))) if last.len() <= LAST_MAX => !self.hand_over(),
            Some((_, Some(next))) => {
                let told = &mut self.told;
                upcall(|| next.iter().for_each(|kept| told.deliver(&kept.message(), Now::read())));
                upcall(|| told.flush());
                true
            }
            _ => self.read(),
        }
    }

    /// Reads more of the log. Returns `false` if no more will come.
    fn read(&mut self) -> bool {
        let Self { shared, topic, source, told } = self;
        let read = upcall(|| source.tell_next(told, *topic));
        upcall(|| told.flush());
        match read {
            Ok(()) => return true,
            Err(SourceEnd::Unreadable(why)) => {
                tracing::error!(why, "a log cannot be read, so a reader loses messages");
                let begin = shared.with_topic(*topic, |of| of.tail_begin()).unwrap_or(0);
                upcall(|| told.skip_to(begin));
                return true;
            }
            Err(SourceEnd::Lost(why)) => shared.life.lose(why),
            Err(SourceEnd::Ended) => {}
        }
        upcall(|| told.participants_gone(|_| true, Now::read()));
        false
    }

    /// Hands the reader over to the topic, at the same number. Returns `false` if too much has
    /// arrived meanwhile.
    fn hand_over(&mut self) -> bool {
        let Self { shared, topic, told, .. } = self;
        let taken = shared.with_topic(*topic, |of| {
            let Some(last) = of.messages_behind(told.ordinal(), 2 * LAST_MAX) else { return false };
            if last.len() == 2 * LAST_MAX || told.ordinal() > of.ordinal() {
                return false;
            }
            let now = Now::read();
            last.iter().for_each(|kept| told.deliver(&kept.message(), now));
            of.take_readers_of(told, now);
            true
        });
        shared.alarm.ring();
        taken.unwrap_or(true)
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.shared.with_topic(self.topic, TopicState::reader_has_come);
    }
}

impl LogSource {
    /// Passes the next message to a topic, after waiting briefly for it.
    fn tell_next(&mut self, told: &mut TopicState, topic: usize) -> Result<(), SourceEnd> {
        match self {
            Self::Own(log) => match log.read_within(LOOK) {
                Ok(Some(LogPart::Messages(first, messages))) => {
                    for (place, one) in (first..).zip(&messages) {
                        tell(told, place, &one.message());
                    }
                }
                Ok(Some(LogPart::Gap { to, .. })) => told.skip_to(to),
                Ok(None) => {}
                Err(LogReaderError::Ended) => return Err(SourceEnd::Ended),
                Err(error) => return Err(SourceEnd::Unreadable(error.to_string())),
            },
            Self::OfMember(subscriber) => {
                let subgroup = Domain::subgroup_of(topic);
                let mut wait = LOOK;
                for _ in 0..TOGETHER_MAX {
                    match subscriber.next_within(wait) {
                        Ok(Event::Message(received)) => {
                            tell(told, received.place, &message_of(&received, subgroup));
                        }
                        Ok(Event::Gap { to, .. }) => told.skip_to(to),
                        Ok(Event::Changed { from }) => told.history_changed(from, Now::read()),
                        Ok(_) => {}
                        Err(SubscribeError::Open(why)) => return Err(SourceEnd::Lost(why)),
                        Err(_) => break,
                    }
                    wait = Duration::ZERO;
                }
            }
        }
        Ok(())
    }
}

/// Passes a message to a topic, unless it was among the topic's last messages. `place` is the
/// number of messages before it.
fn tell(told: &mut TopicState, place: u64, message: &Message<'_>) {
    if place >= told.ordinal() {
        told.deliver(message, Now::read());
    }
}
