//! The interface between an application and its shard. The application receives messages, and is
//! asked for its state.

use std::io::{self, Read};

use tramontane_core::tram::{self, Delivered};

/// An application whose state is the same at all replicas of its group, because all of them receive
/// the same messages in the same order. Replicas of two groups that both receive the same two
/// messages receive them in the same order.
///
/// A closure is also an application: one that has no state.
///
/// # What is guaranteed
/// - Calls are made one at a time, by the thread that drives the replica. A panic stops the
///   replica.
/// - A message is delivered once, and only if a majority of the group has received it. A durable
///   replica that starts again restores its last snapshot, if it has one, and receives the messages
///   after it again.
/// - [`ShardApplication::snapshot`] is called between two messages, and excludes all messages
///   delivered after the call.
///
/// No call may take longer than the overlay's failure timeout, or another replica takes over as
/// leader.
pub trait ShardApplication: Send {
    /// Receives a message of the group, with its destinations. The returned byte reaches the client
    /// that sent the message, as this replica's answer.
    fn deliver(&mut self, message: &Delivered<'_>) -> u8;

    /// Returns the answer to the message just delivered, in addition to the byte. It is called once
    /// after each delivery. The client receives up to
    /// [`answer_max`](super::Description::answer_max) bytes of it, and its length.
    fn answer(&self) -> &[u8] {
        &[]
    }

    /// Returns the current state, for a returning replica of the group. The state is read in
    /// another thread while this replica continues, so this call must copy everything that may
    /// change.
    fn snapshot(&mut self) -> Box<dyn Read + Send> {
        Box::new(io::empty())
    }

    /// Restores the state of another replica of the group, replacing any existing state.
    ///
    /// # Errors
    /// Fails if the state is invalid; this replica then ends.
    fn restore(&mut self, state: &mut dyn Read) -> io::Result<()> {
        io::copy(state, &mut io::sink()).map(|_| ())
    }

    /// Reports that this replica now leads its group, under a number that rises from leader to
    /// leader.
    fn leads(&mut self, term: u64) {
        let _ = term;
    }
}

impl<F: FnMut(&Delivered<'_>) -> u8 + Send> ShardApplication for F {
    fn deliver(&mut self, message: &Delivered<'_>) -> u8 {
        self(message)
    }
}

impl ShardApplication for Box<dyn ShardApplication> {
    fn deliver(&mut self, message: &Delivered<'_>) -> u8 {
        (**self).deliver(message)
    }

    fn answer(&self) -> &[u8] {
        (**self).answer()
    }

    fn snapshot(&mut self) -> Box<dyn Read + Send> {
        (**self).snapshot()
    }

    fn restore(&mut self, state: &mut dyn Read) -> io::Result<()> {
        (**self).restore(state)
    }

    fn leads(&mut self, term: u64) {
        (**self).leads(term);
    }
}

/// The application of a replica, in the form in which the core calls it.
pub(super) struct Upcalls<'a, A> {
    pub(super) application: &'a mut A,
}

impl<A: ShardApplication> tram::ShardApplication for Upcalls<'_, A> {
    #[inline]
    fn deliver(&mut self, message: &Delivered<'_>) -> u8 {
        self.application.deliver(message)
    }

    #[inline]
    fn answer(&self) -> &[u8] {
        self.application.answer()
    }
}
