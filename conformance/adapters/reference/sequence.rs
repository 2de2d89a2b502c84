//! What a sequencer does, whichever order it keeps.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use crate::wire::Up;

/// The state of the sequencer: what decides the one order.
pub trait Sequence {
    /// Whether nobody is connected.
    fn is_alone(&self) -> bool;
    /// A member has connected.
    fn open(&mut self, connection: u64, outbox: Sender<Arc<str>>);
    /// A connection has said something. One that was replaced is not heard.
    fn hear(&mut self, connection: u64, up: Up);
    /// A connection is gone.
    fn close(&mut self, connection: u64);
    /// How long nothing need be done if nothing comes.
    fn rest(&self) -> Option<Duration>;
    /// Does what time has brought.
    fn wake(&mut self);
}
