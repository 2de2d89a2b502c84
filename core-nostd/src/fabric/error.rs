//! Why a post failed and why a peer is thought lost.
//!
//! Requirement: FAB-1.

/// The kinds of failure that the core tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum ErrorKind {
    /// No room in the queue to this peer now, or the peer is not ready yet; the same post may go
    /// through at a later step.
    QueueFull = 1,
    /// The peer is gone.
    PeerLost = 2,
    /// The peer took back the right to write.
    Revoked = 3,
    /// A range outside the row, or a list longer than the fabric takes.
    OutOfRange = 4,
    /// Anything else; trying again does not help.
    Other = 5,
    /// Memory that a view cannot be opened with: used before, or not made for it by this fabric.
    WrongMemory = 6,
}

/// What every fabric's error can say of itself.
pub trait FabricError: core::fmt::Debug {
    /// The kind.
    fn kind(&self) -> ErrorKind;
}

impl FabricError for ErrorKind {
    fn kind(&self) -> ErrorKind {
        *self
    }
}

impl core::fmt::Display for ErrorKind {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::QueueFull => "the queue to this peer is full",
            Self::PeerLost => "the peer is lost",
            Self::Revoked => "the peer revoked the right to write",
            Self::OutOfRange => "a write outside the row, or too long a list",
            Self::Other => "the fabric failed",
            Self::WrongMemory => "memory that was not made for this view",
        })
    }
}

impl core::error::Error for ErrorKind {}

/// Why a fabric thinks that a peer is lost (HAL-5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum LossCause {
    /// Its process ended without saying so.
    Exited = 1,
    /// It said that it leaves.
    Left = 2,
    /// Writes to it are not acknowledged.
    Unreachable = 3,
    /// It denied a write.
    Denied = 4,
    /// It published something that no correct member can publish.
    Misbehaved = 5,
}

impl core::fmt::Display for LossCause {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::Exited => "its process ended",
            Self::Left => "it left",
            Self::Unreachable => "it cannot be reached",
            Self::Denied => "it denied a write",
            Self::Misbehaved => "it published what no correct member can",
        })
    }
}
