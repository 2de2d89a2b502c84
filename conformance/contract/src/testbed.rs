//! What a fabric brings to be judged: small groups, the passing of time, and what can be provoked.

use tramontane_core::fabric::{ErrorKind, Fabric};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::memory::{Row, RowWriter};

use crate::report::Breach;

/// The view that the members of a bench open.
pub const VIEW: ViewId = ViewId(1);

/// How many members a bench has.
pub const MEMBERS: u16 = 3;

/// What a row of a bench has at least, in bytes. All rows of a bench are of one size, and start as
/// zeros.
pub const ROW_BYTES_MIN: usize = 8192;

/// Makes benches for one fabric, in one setting.
pub trait Testbed {
    /// A group of members on this fabric.
    type Bench<'b>: Bench;

    /// Makes a fresh group, in which nobody opened the view yet, and shows it to `scene`, once.
    fn with(&self, scene: impl FnOnce(&mut Self::Bench<'_>));
}

/// A group of [`MEMBERS`] members, each with its fabric and its memory.
pub trait Bench {
    /// The fabric that is judged.
    type Fabric: Fabric;

    /// A member's fabric.
    fn fabric(&mut self, member: Rank) -> &mut Self::Fabric;

    /// The members' node ids, in rank order.
    fn members(&self) -> Vec<NodeId>;

    /// Opens [`VIEW`] at a member, with that member's memory.
    ///
    /// # Errors
    /// What the fabric says.
    fn open(&mut self, member: Rank) -> Result<(), ErrorKind>;

    /// A member's own row.
    fn row(&self, member: Rank) -> RowWriter<'_>;

    /// What `holder` sees of `owner`'s row now.
    fn copy(&self, holder: Rank, owner: Rank) -> Row<'_>;

    /// Lets a little time pass: so little, as far as that can be chosen, that a write of a few
    /// lines is seen half landed.
    fn pass(&mut self);

    /// Lets pass what time it takes until all that is under way has come, lost peers are noticed,
    /// and nothing more happens by itself.
    fn settle(&mut self);

    /// Sleeps at a member that armed and then looked, as members of this fabric sleep, for far
    /// longer than a ring takes to come.
    fn sleep(&mut self, member: Rank) -> Wake;

    /// Ends a member without a word. It is not used afterwards.
    ///
    /// # Errors
    /// Why that cannot be provoked.
    fn lose(&mut self, member: Rank) -> Result<(), &'static str>;

    /// How many rounds a search for rare interleavings takes: as many as are done in about a
    /// second.
    fn rounds(&self) -> u64;

    /// Runs two members at the same time, or interleaved as finely as [`Bench::pass`], until both
    /// are done. Where a fabric needs its member to carry what it took, the member of an actor that
    /// is done goes on doing so.
    ///
    /// # Errors
    /// The first breach that one of them finds; or that they did not end.
    fn race(&mut self, actors: [(Rank, &mut dyn Actor<Self::Fabric>); 2]) -> Result<(), Breach>;
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The doorbell rang.
    Rung,
    /// Nobody rang, for all the time that a ring may take and more.
    Overslept,
}

/// What an actor does of a member, one turn after the other.
pub trait Actor<F>: Send {
    /// One look at the world. `slept` says how the sleep ended that the last turn asked for, if it
    /// did.
    ///
    /// # Errors
    /// The breach that it found.
    fn turn(&mut self, seat: &mut Seat<'_, F>, slept: Option<Wake>) -> Result<Next, Breach>;
}

/// What an actor wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Another turn.
    Turn,
    /// To sleep: it armed, and looked.
    Sleep,
    /// Nothing more.
    Done,
}

/// What an actor has of its member during a turn.
#[derive(Debug)]
pub struct Seat<'s, F> {
    /// The member's fabric.
    pub fabric: &'s mut F,
    /// Its own row.
    pub row: RowWriter<'s>,
    /// All rows as it sees them, in rank order.
    pub rows: &'s [Row<'s>],
}
