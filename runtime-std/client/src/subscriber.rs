//! Subscribing: the handle, and what comes.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use tramontane_control::client_messages::{ClientId, Level, ViewBegun};

use crate::error::{OpenError, SubscribeError};
use crate::members::{Members, Route};
use crate::shared::Shared;
use crate::subscribing::{Subscribes, Subscribing, Wanted};

/// What a subscriber gets. One that does not [follow](Subscriber::follow) gets messages and gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The next message.
    Message(Received),
    /// Messages that no member that was asked has any more.
    Gap {
        /// The place of the first.
        from: u64,
        /// The first place that is there.
        to: u64,
    },
    /// The group has another history than this subscriber was told: all members were lost before
    /// what they had delivered was durable, or the group was formed anew. All that was told before
    /// this event from that place on is not in the order any more. What comes next is the order's
    /// message of that place; or the state, for one that follows.
    Changed {
        /// The first place that differs. It is exact where it is among the last 65,536 that were
        /// told. Otherwise it may be up to 1,024 places too early; or more, if the member has not
        /// been there for so long.
        from: u64,
    },
    /// The application's state at a member, before the message of that place: the first event of a
    /// subscriber that follows. It comes again, instead of a gap, where no member has all that came
    /// in between.
    State {
        /// The place of the message that comes next.
        place: u64,
        /// What the application gave as its snapshot.
        state: Vec<u8>,
    },
    /// A view has begun.
    View(ViewBegun),
    /// The group has forgotten a client: it has ended, or its lease has.
    Forgotten(ClientId),
    /// A view has closed the subgroup, which is a reserved one. All that was delivered before has
    /// come, and this is the last event: then [`OpenError::Closed`] is told.
    Closed,
}

/// A message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Its place: how many messages of the subgroup were handed over before it since the group
    /// began.
    pub place: u64,
    /// The view that it was delivered in.
    pub view: u64,
    /// Its place among the messages of that view, which may leave numbers out.
    pub place_in_view: u64,
    /// The node that sent it, for itself or for a client.
    pub sender: u32,
    /// The client that published it; none if the node did.
    pub client: Option<ClientId>,
    /// The bytes.
    pub payload: Vec<u8>,
}

/// Gets the messages of a subgroup, in their order. Dropping it ends it.
#[derive(Debug)]
pub struct Subscriber {
    shared: Arc<Shared<Subscribing>>,
    thread: Option<JoinHandle<()>>,
    begin: (u64, Level),
}

impl Subscriber {
    /// Finds a member, and subscribes from a place on; without one, from now on. Of a logged
    /// subgroup it gets what is durable at a majority, which no crash takes back; of another one
    /// what is delivered.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(members: Members, from: Option<u64>) -> Result<Self, OpenError> {
        Self::open_as(members, Wanted::Messages { level: None }, from)
    }

    /// The same for messages that have reached a level.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_at(members: Members, from: Option<u64>, level: Level) -> Result<Self, OpenError> {
        Self::open_as(members, Wanted::Messages { level: Some(level) }, from)
    }

    /// Finds a member, and follows the subgroup, as a member that joins would: takes over the
    /// application's state ([`Event::State`]), and gets every message from there on, with the views
    /// and the ends of clients between them. All members tell them between the same messages.
    ///
    /// A state, a view and an end of a client may be told twice without a message between.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn follow(members: Members) -> Result<Self, OpenError> {
        Self::open_as(members, Wanted::All, None)
    }

    fn open_as(members: Members, wanted: Wanted, next: Option<u64>) -> Result<Self, OpenError> {
        let system = |error: std::io::Error| OpenError::System(error.to_string());
        members.check()?;
        let shared = Arc::new(Shared::new(Subscribing::default()).map_err(system)?);
        let subscribes = Subscribes {
            shared: Arc::clone(&shared),
            route: Route::new(members),
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
        // The thread ends by itself if no member is found.
        let opened = subscriber.shared.wait(Duration::MAX, |state| state.opened.clone());
        if let Some(begin) = opened {
            subscriber.begin = begin?;
        }
        Ok(subscriber)
    }

    /// The place that the first message has.
    #[must_use]
    pub const fn begin(&self) -> u64 {
        self.begin.0
    }

    /// The level that its messages have reached.
    #[must_use]
    pub const fn level(&self) -> Level {
        self.begin.1
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// [`SubscribeError::Open`], if no member takes the subscriber any more.
    #[allow(clippy::should_implement_trait, reason = "an iterator would have to end or to panic")]
    pub fn next(&mut self) -> Result<Event, SubscribeError> {
        self.next_within(Duration::MAX)
    }

    /// Waits for the next event, at most `timeout`.
    ///
    /// # Errors
    /// [`SubscribeError`]. After [`SubscribeError::TimeUp`] more may come.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Event, SubscribeError> {
        let taken = self.shared.wait(timeout, Self::take_from);
        self.shared.wake_thread();
        taken.unwrap_or(Err(SubscribeError::TimeUp))
    }

    /// The next event for async programs. Once it gave an error, it gives that again.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Event, SubscribeError>> {
        let taken = self.shared.poll(context, Self::take_from);
        self.shared.wake_thread();
        taken
    }

    /// The same as a future.
    ///
    /// # Errors
    /// [`SubscribeError::Open`].
    pub async fn next_event(&mut self) -> Result<Event, SubscribeError> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// An event, or why nothing more comes.
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
            // A panic of it has been reported by itself.
            let _ = thread.join();
        }
    }
}
