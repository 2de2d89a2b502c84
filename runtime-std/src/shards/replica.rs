//! The interface between an application and its shard: it receives messages, and is asked for its
//! state.

use std::io::{self, Read};

use tramontane_core::tram::Delivered;

/// An application with the same state at all replicas of its group, because all receive the same
/// messages in the same order. Replicas of two groups that receive the same two messages receive
/// them in the same order.
///
/// A closure is a replica too: one without state.
///
/// # What is guaranteed
/// - Calls come one at a time, from the thread that drives the replica. A panic stops the replica.
/// - A message is delivered once, and only if a majority of the group has it.
/// - [`Replica::snapshot`] is called between two messages; messages delivered after the call are
///   not part of the snapshot.
///
/// No call may take longer than the overlay's failure timeout, or another replica takes the lead.
pub trait Replica: Send {
    /// Receives a message of the group, with its destinations. The returned byte reaches the client
    /// that sent the message, as this replica's answer.
    fn deliver(&mut self, message: &Delivered<'_>) -> u8;

    /// Returns the present state, for a returning replica of the group. The state is read in
    /// another thread while this one continues, so everything that must be copied is copied before
    /// this returns.
    fn snapshot(&mut self) -> Box<dyn Read + Send> {
        Box::new(io::empty())
    }

    /// Takes over the state of another replica of the group, replacing any state it has.
    ///
    /// # Errors
    /// If the state is invalid; this replica then ends.
    fn restore(&mut self, state: &mut dyn Read) -> io::Result<()> {
        io::copy(state, &mut io::sink()).map(|_| ())
    }

    /// Reports that this replica leads its group from now on, under a number that rises from leader
    /// to leader.
    fn leads(&mut self, term: u64) {
        let _ = term;
    }
}

impl<F: FnMut(&Delivered<'_>) -> u8 + Send> Replica for F {
    fn deliver(&mut self, message: &Delivered<'_>) -> u8 {
        self(message)
    }
}

impl Replica for Box<dyn Replica> {
    fn deliver(&mut self, message: &Delivered<'_>) -> u8 {
        (**self).deliver(message)
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
