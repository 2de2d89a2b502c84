//! The interface through which a fabric is judged: small groups, the passing of time, and failures
//! that can be provoked.

use tramontane_core::fabric::{ErrorKind, Fabric};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::memory::{Row, RowWriter};

use crate::report::Breach;

/// The view that the members of a bench open.
pub const VIEW: ViewId = ViewId(1);

/// Number of members in a bench.
pub const MEMBERS: u16 = 3;

/// Smallest row of a bench, in bytes. All rows of a bench have the same size, and start as zeros.
pub const ROW_BYTES_MIN: usize = 8192;

/// Creates benches for one fabric, in one configuration.
pub trait Testbed {
    /// A group of members on this fabric.
    type Bench<'b>: Bench;

    /// Creates a fresh group, in which no member has opened the view yet, and passes it to `scene`,
    /// once.
    fn with(&self, scene: impl FnOnce(&mut Self::Bench<'_>));
}

/// A group of [`MEMBERS`] members, each with its fabric and its memory.
pub trait Bench {
    /// The fabric under test.
    type Fabric: Fabric;

    /// A member's fabric.
    fn fabric(&mut self, member: Rank) -> &mut Self::Fabric;

    /// The members' node ids, in rank order.
    fn members(&self) -> Vec<NodeId>;

    /// Opens [`VIEW`] at a member, with that member's memory.
    ///
    /// # Errors
    /// Fails with the error of the fabric.
    fn open(&mut self, member: Rank) -> Result<(), ErrorKind>;

    /// Returns a member's own row.
    fn row(&self, member: Rank) -> RowWriter<'_>;

    /// Returns `holder`'s current copy of `owner`'s row.
    fn copy(&self, holder: Rank, owner: Rank) -> Row<'_>;

    /// Lets a little time pass. If possible, the time is so short that a write of a few lines can
    /// be seen half landed.
    fn pass(&mut self);

    /// Lets time pass until all writes in flight have landed, lost peers have been detected, and
    /// nothing more happens by itself.
    fn settle(&mut self);

    /// Lets a member sleep, as members of this fabric do, for far longer than a wakeup takes to
    /// arrive. The member has armed, and has checked afterwards.
    fn sleep(&mut self, member: Rank) -> Wake;

    /// Ends a member without notice. The member is not used afterwards.
    ///
    /// # Errors
    /// Fails with the reason why this cannot be provoked.
    fn lose(&mut self, member: Rank) -> Result<(), &'static str>;

    /// Number of rounds of a search for rare interleavings, chosen so that the search takes about a
    /// second.
    fn rounds(&self) -> u64;

    /// Runs two members concurrently, or interleaved as finely as [`Bench::pass`], until both are
    /// done. If a fabric needs its members to carry accepted writes, the member of a finished actor
    /// continues to do so.
    ///
    /// # Errors
    /// Fails with the first breach found, or because the actors did not end.
    fn race(&mut self, actors: [(Rank, &mut dyn Actor<Self::Fabric>); 2]) -> Result<(), Breach>;
}

/// The end of a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A wakeup ended the sleep.
    Rung,
    /// No wakeup arrived, for longer than any wakeup may take.
    Overslept,
}

/// An actor's actions on a member, one turn at a time.
pub trait Actor<F>: Send {
    /// Takes one turn. `slept` is the end of the sleep that the previous turn requested, if it did.
    ///
    /// # Errors
    /// Fails with the breach that the actor found.
    fn turn(&mut self, seat: &mut Seat<'_, F>, slept: Option<Wake>) -> Result<Next, Breach>;
}

/// An actor's next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another turn.
    Turn,
    /// The actor's member sleeps, after the actor has armed and checked.
    Sleep,
    /// Nothing more.
    Done,
}

/// The fabric and the rows of an actor's member, which the actor can use during a turn.
#[derive(Debug)]
pub struct Seat<'s, F> {
    /// The member's fabric.
    pub fabric: &'s mut F,
    /// The member's own row.
    pub row: RowWriter<'s>,
    /// All rows as the member sees them, in rank order.
    pub rows: &'s [Row<'s>],
}
