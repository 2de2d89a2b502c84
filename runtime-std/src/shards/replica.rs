//! What an application is to its shard: it is handed messages, and asked for its state.

use std::io::{self, Read};

use tramontane_core::tram::Delivered;

/// An application whose state all replicas of its group have alike, since all are handed the same
/// messages in the same order. Replicas of two groups that are handed the same two messages are
/// handed them in the same order.
///
/// A closure is one too, that has no state.
///
/// # What is guaranteed
/// - Calls come one at a time, from the thread that drives the replica. A panic stops the replica.
/// - A message is handed over once, and only if a majority of the group has it.
/// - [`Replica::snapshot`] is called between two messages, and everything handed over after it is
///   not part of it.
///
/// No call may take longer than the overlay's failure timeout: another replica would lead then.
pub trait Replica: Send {
    /// Takes a message of the group, with its destinations. The byte is seen by the client that
    /// sent it, as this replica's answer.
    fn deliver(&mut self, message: &Delivered<'_>) -> u8;

    /// The state as it is now, for a replica of the group that has come back. It is read in another
    /// thread while this one goes on: whatever must be copied is copied before this returns.
    fn snapshot(&mut self) -> Box<dyn Read + Send> {
        Box::new(io::empty())
    }

    /// Takes over the state of another replica of the group, instead of whatever it holds.
    ///
    /// # Errors
    /// If the state makes no sense: this replica ends then.
    fn restore(&mut self, state: &mut dyn Read) -> io::Result<()> {
        io::copy(state, &mut io::sink()).map(|_| ())
    }

    /// This replica leads its group from now on, under a number that rises from leader to leader.
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
