//! The subscribing side: the handle, and its events.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use tramontane_control::client_messages::{ClientId, Level, ViewBegun};

use crate::error::{ConnectError, SubscribeError};
use crate::members::{ClientRoute, Members};
use crate::shared::Shared;
use crate::subscribing::{Subscribes, Subscribing, WantedContent};

/// An event of a subscriber. A subscriber that does not [follow](Subscriber::follow) receives only
/// messages, gaps and changes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The next message.
    Message(Received),
    /// Messages that no member has any longer, of those that were asked.
    Gap {
        /// The position of the first missing message.
        from: u64,
        /// The first position that is available again.
        to: u64,
    },
    /// The group's history differs from the one that this subscriber received, because all members
    /// were lost before their deliveries were durable, or because the group was formed again.
    /// Events received earlier, at or after that position, are no longer part of the order. The
    /// next event is the order's message at that position or, for a subscriber that follows, the
    /// state.
    Changed {
        /// The first position that differs. It is exact if it is among the last 65,536 received
        /// positions. Otherwise it may be up to 1,024 positions too early, or more if the member
        /// has not been in the group for that long.
        from: u64,
    },
    /// The application's state at a member, before the message at that position. This is the first
    /// event of a subscriber that follows. The state is sent again, instead of a gap, if no member
    /// has all the messages in between.
    State {
        /// The position of the next message.
        place: u64,
        /// The application's snapshot.
        state: Vec<u8>,
    },
    /// A view has begun.
    View(ViewBegun),
    /// The group has forgotten a client, because the client has ended or its lease has expired.
    Forgotten(ClientId),
    /// A view has closed the subgroup, which is reserved. All messages delivered earlier have been
    /// received, and this is the last event; later calls return [`ConnectError::Closed`].
    Closed,
}

/// A received message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The message's sequence position, that is, the number of earlier messages delivered in the
    /// subgroup since the group began.
    pub place: u64,
    /// The view in which the message was delivered.
    pub view: u64,
    /// The position among the messages of that view. Numbers may be skipped.
    pub place_in_view: u64,
    /// The node that sent the message, for itself or for a client.
    pub sender: u32,
    /// The client that published the message; `None` if the node did.
    pub client: Option<ClientId>,
    /// Message content.
    pub payload: Vec<u8>,
}

/// Receives the messages of a subgroup, in order. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Subscriber {
    shared: Arc<Shared<Subscribing>>,
    thread: Option<JoinHandle<()>>,
    begin: (u64, Level),
}

impl Subscriber {
    /// Finds a member, and subscribes from a position, or from the next message if `from` is
    /// `None`. In a logged subgroup, the subscriber receives messages that are durable at a
    /// majority, which no crash can undo; in any other subgroup, it receives messages that have
    /// been delivered.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn open(members: Members, from: Option<u64>) -> Result<Self, ConnectError> {
        Self::open_as(members, WantedContent::Messages { level: None }, from)
    }

    /// Subscribes to messages that have reached a level.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn open_at(
        members: Members,
        from: Option<u64>,
        level: Level,
    ) -> Result<Self, ConnectError> {
        Self::open_as(members, WantedContent::Messages { level: Some(level) }, from)
    }

    /// Finds a member, and follows the subgroup as a joining member does. The subscriber receives
    /// the application's state ([`Event::State`]), and then every message, with the views and the
    /// ends of clients between messages. All members report these between the same messages.
    ///
    /// A state, a view or the end of a client may be reported twice if no message comes in between.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn follow(members: Members) -> Result<Self, ConnectError> {
        Self::open_as(members, WantedContent::All, None)
    }

    fn open_as(
        members: Members,
        wanted: WantedContent,
        next: Option<u64>,
    ) -> Result<Self, ConnectError> {
        let system = |error: std::io::Error| ConnectError::System(error.to_string());
        members.check()?;
        let shared = Arc::new(Shared::new(Subscribing::default()).map_err(system)?);
        let subscribes = Subscribes {
            shared: Arc::clone(&shared),
            route: ClientRoute::new(members),
            wanted,
            next,
            history: None,
            behind: None,
            state: Vec::new(),
            was_taken: false,
        };
        let thread = std::thread::Builder::new()
            .name("tramontane-subscriber".into())
            .spawn(move || subscribes.run())
            .map_err(system)?;
        let mut subscriber = Self { shared, thread: Some(thread), begin: (0, Level::Delivered) };
        // The thread exits if no member is found.
        let opened = subscriber.shared.wait(Duration::MAX, |state| state.opened.clone());
        if let Some(begin) = opened {
            subscriber.begin = begin?;
        }
        Ok(subscriber)
    }

    /// Returns the position of the first message.
    #[must_use]
    pub const fn begin(&self) -> u64 {
        self.begin.0
    }

    /// Returns the level that the subscriber's messages have reached.
    #[must_use]
    pub const fn level(&self) -> Level {
        self.begin.1
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// Returns [`SubscribeError::Open`] if no member accepts the subscriber any longer.
    #[allow(clippy::should_implement_trait, reason = "an iterator would have to end or to panic")]
    pub fn next(&mut self) -> Result<Event, SubscribeError> {
        self.next_within(Duration::MAX)
    }

    /// Waits for the next event, for at most `timeout`.
    ///
    /// # Errors
    /// Returns [`SubscribeError`]. After [`SubscribeError::TimeUp`], more events may arrive.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Event, SubscribeError> {
        let taken = self.shared.wait(timeout, Self::take_from);
        self.shared.wake_thread();
        taken.unwrap_or(Err(SubscribeError::TimeUp))
    }

    /// Polls for the next event in async programs. After it has returned an error, it keeps
    /// returning that error.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Event, SubscribeError>> {
        let taken = self.shared.poll(context, Self::take_from);
        self.shared.wake_thread();
        taken
    }

    /// Returns the next event, as a future.
    ///
    /// # Errors
    /// [`SubscribeError::Open`].
    pub async fn next_event(&mut self) -> Result<Event, SubscribeError> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// Takes an event, or the reason why no more will arrive.
    fn take_from(state: &mut Subscribing) -> Option<Result<Event, SubscribeError>> {
        match state.take() {
            Some(event) => Some(Ok(event)),
            None => state.ended.clone().map(|ended| Err(ended.into())),
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.shared.stop_thread();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already been reported.
            let _ = thread.join();
        }
    }
}
