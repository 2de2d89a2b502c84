//! The publishing side: the handle, and the receipts for lines.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use tramontane_control::client_messages::{ClientId, ClientLife, Level, Reached};
use tramontane_control::incarnation;

use crate::error::{ConnectError, PublishError};
use crate::members::{ClientRoute, Members};
use crate::outstanding::Outstanding;
use crate::publishing::{Publishes, Publishing};
use crate::shared::Shared;

/// Options of a publisher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublisherOptions {
    /// The level that lines must reach. Until then, they are kept and resent.
    pub level: Level,
    /// The client's id, which no other client of the group may use. If `None`, a random id is used.
    pub id: Option<ClientId>,
}

/// Publishes lines, each exactly once. Any number of threads may share a publisher. When it is
/// dropped, it ends, and lines that have not reached their level may or may not be delivered.
#[derive(Debug)]
pub struct Publisher {
    shared: Arc<Shared<Publishing>>,
    thread: Option<JoinHandle<()>>,
    id: ClientId,
}

impl Publisher {
    /// Connects a publisher to the first member that accepts this client.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn open(members: Members, options: PublisherOptions) -> Result<Self, ConnectError> {
        let system = |error: std::io::Error| ConnectError::System(error.to_string());
        members.check()?;
        let id = match options.id {
            Some(id) => id,
            None => ClientId(incarnation().map_err(system)?),
        };
        let life = ClientLife { id, incarnation: incarnation().map_err(system)? };
        let lines = Outstanding::new(options.level);
        let publishing = Publishing { lines, line_max: None, opened: None, ended: None };
        let shared = Arc::new(Shared::new(publishing).map_err(system)?);
        let publishes = Publishes {
            shared: Arc::clone(&shared),
            route: ClientRoute::new(members),
            life,
            level: options.level,
            lease: None,
        };
        let thread = std::thread::Builder::new()
            .name("tramontane-publisher".into())
            .spawn(move || publishes.run())
            .map_err(system)?;
        let publisher = Self { shared, thread: Some(thread), id };
        // The thread exits if no member is found.
        let opened = publisher.shared.wait(Duration::MAX, |state| state.opened.clone());
        opened.unwrap_or(Ok(())).map(|()| publisher)
    }

    /// Returns the client's id.
    #[must_use]
    pub const fn id(&self) -> ClientId {
        self.id
    }

    /// Returns the maximum length of a line, in bytes.
    #[must_use]
    pub fn line_max(&self) -> usize {
        self.shared.with(|state| state.line_max).unwrap_or(0)
    }

    /// Publishes a line. Blocks while the maximum number of lines is in flight.
    ///
    /// # Errors
    /// Returns [`PublishError`]; in that case, the line has not been published.
    pub fn publish(&self, line: &[u8]) -> Result<Receipt, PublishError> {
        self.publish_within(line, Duration::MAX)
    }

    /// Publishes a line. Blocks for at most `timeout` while the maximum number of lines is in
    /// flight.
    ///
    /// # Errors
    /// Returns [`PublishError::Full`], in addition to the errors of [`publish`](Self::publish).
    pub fn publish_within(&self, line: &[u8], timeout: Duration) -> Result<Receipt, PublishError> {
        let added = self.shared.wait(timeout, |state| match state.try_add(line) {
            Err(PublishError::Full) => None,
            added => Some(added),
        });
        self.receipt(added.unwrap_or(Err(PublishError::Full)))
    }

    /// Publishes a line if there is room for it now.
    ///
    /// # Errors
    /// Returns [`PublishError::Full`], in addition to the errors of [`publish`](Self::publish).
    pub fn try_publish(&self, line: &[u8]) -> Result<Receipt, PublishError> {
        self.receipt(self.shared.with(|state| state.try_add(line)))
    }

    fn receipt(&self, added: Result<u64, PublishError>) -> Result<Receipt, PublishError> {
        let ordinal = added?;
        self.shared.wake_thread();
        Ok(Receipt { shared: Arc::clone(&self.shared), ordinal })
    }

    /// Waits for room for a line of `bytes` bytes in async programs.
    /// [`try_publish`](Self::try_publish) then accepts the line, unless another task was faster.
    #[must_use]
    pub const fn room(&self, bytes: usize) -> Room<'_> {
        Room { publisher: self, bytes }
    }

    /// Returns the number of lines that have reached each level.
    #[must_use]
    pub fn reached(&self) -> Reached {
        self.shared.with(|state| *state.lines.reached())
    }

    /// Waits, for at most `timeout`, until all lines have reached their level.
    ///
    /// # Errors
    /// [`PublishError`].
    pub fn wait(&self, timeout: Duration) -> Result<(), PublishError> {
        let reached = self.shared.wait(timeout, |state| {
            if state.lines.is_empty() { Some(Ok(())) } else { state.ended.clone().map(Err) }
        });
        reached.unwrap_or(Err(PublishError::TimeUp))
    }

    /// Waits, for at most `timeout`, until all lines have reached their level. Then ends, so that
    /// the group forgets the client at once.
    ///
    /// # Errors
    /// Returns [`PublishError`]. In that case lines may be in flight, but the publisher has still
    /// ended.
    pub fn close(self, timeout: Duration) -> Result<(), PublishError> {
        self.wait(timeout)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.shared.stop_thread();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has already been reported.
            let _ = thread.join();
        }
    }
}

impl Publishing {
    fn try_add(&mut self, line: &[u8]) -> Result<u64, PublishError> {
        if let Some(ended) = &self.ended {
            return Err(ended.clone());
        }
        match self.line_max {
            Some(limit) if line.len() > limit => {
                Err(PublishError::TooLong { bytes: line.len(), limit })
            }
            _ if !self.lines.has_room(line.len()) => Err(PublishError::Full),
            _ => Ok(self.lines.add(line)),
        }
    }
}

/// The receipt for a line. As a future, it completes once the line has reached the publisher's
/// level.
#[derive(Clone, Debug)]
pub struct Receipt {
    shared: Arc<Shared<Publishing>>,
    ordinal: u64,
}

impl Receipt {
    /// Returns the line's number among all lines of its publisher, starting at zero.
    #[must_use]
    pub const fn ordinal(&self) -> u64 {
        self.ordinal
    }

    /// Returns whether the line is known to have reached a level.
    #[must_use]
    pub fn has_reached(&self, level: Level) -> bool {
        self.shared.with(|state| state.lines.reached().at(level) > self.ordinal)
    }

    /// Waits, for at most `timeout`, until the line has reached the publisher's level.
    ///
    /// # Errors
    /// Returns [`PublishError`]. After [`PublishError::TimeUp`], `wait` may be called again.
    pub fn wait(&self, timeout: Duration) -> Result<(), PublishError> {
        let reached = self.shared.wait(timeout, |state| self.outcome(state));
        reached.unwrap_or(Err(PublishError::TimeUp))
    }

    fn outcome(&self, state: &Publishing) -> Option<Result<(), PublishError>> {
        if state.lines.has_reached(self.ordinal) {
            return Some(Ok(()));
        }
        state.ended.clone().map(Err)
    }
}

impl Future for Receipt {
    type Output = Result<(), PublishError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.shared.poll(context, |state| self.outcome(state))
    }
}

/// A future that waits for room. See [`Publisher::room`].
#[derive(Debug)]
pub struct Room<'p> {
    publisher: &'p Publisher,
    bytes: usize,
}

impl Future for Room<'_> {
    type Output = Result<(), PublishError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.publisher.shared.poll(context, |state| match &state.ended {
            Some(ended) => Some(Err(ended.clone())),
            None => state.lines.has_room(self.bytes).then_some(Ok(())),
        })
    }
}
