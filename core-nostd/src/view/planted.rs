//! Faults that a test can plant, to show that it would find them. Compiled in only with the feature
//! `planted-faults`; otherwise every question for one is the constant `false`.

/// One step of the protocol done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(not(feature = "planted-faults"), allow(dead_code))]
pub enum Fault {
    /// A new leader forgets what its predecessor proposed.
    TakeoverForgets,
    /// A new leader adopts the changes, but sets the trims anew.
    TrimRecomputed,
    /// A new leader does not wait until the others promised.
    TakeoverTooEarly,
    /// A member accepts what a leader that it suspects proposed.
    AcceptsFromSuspected,
    /// A member goes on receiving after its final counts.
    ReceivesAfterWedge,
    /// A member goes on receiving after its final counts where the blocks of a large message are here before its slot was taken.
    BlocksAfterWedge,
    /// The leader decides as soon as it has sealed, without waiting for the others' echo.
    EchoSkipped,
    /// Nobody asks for a majority.
    NoMajority,
    /// Who is suspected goes on.
    SuspectedGoesOn,
    /// A leader sets the trims once a majority accepted, from their counts alone.
    TrimFromMajority,
    /// A leader publishes that an entry is there before it is.
    GuardFirst,
    /// A member accepts a seal before its own next memory is ready.
    MemoryNotReady,
    /// A member installs before it delivered up to the trim.
    InstallsEarly,
    /// A leaver goes as soon as the next view is decided.
    LeaverGoesEarly,
}
