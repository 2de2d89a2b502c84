//! The interface of all sequencers, independent of the order that they decide.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use crate::wire::Up;

/// The state of a sequencer, which decides the order.
pub trait Sequence {
    /// Returns whether no member is connected.
    fn is_alone(&self) -> bool;
    /// Handles a new connection of a member.
    fn open(&mut self, connection: u64, outbox: Sender<Arc<str>>);
    /// Handles a message from a connection. Messages from a replaced connection are ignored.
    fn hear(&mut self, connection: u64, up: Up);
    /// Handles the end of a connection.
    fn close(&mut self, connection: u64);
    /// Returns how long nothing needs to be done if no message arrives.
    fn rest(&self) -> Option<Duration>;
    /// Handles the passing of time.
    fn wake(&mut self);
}
