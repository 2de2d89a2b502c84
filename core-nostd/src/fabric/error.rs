//! Causes of failed posts and lost peers.
//!
//! Requirement: FAB-1.

/// The kinds of failure that the core distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum ErrorKind {
    /// The queue to this peer is full, or the peer is not ready yet. The same post may succeed in a
    /// later step.
    QueueFull = 1,
    /// The connection to the peer is lost.
    PeerLost = 2,
    /// The peer has revoked the permission to write.
    Revoked = 3,
    /// A range is outside the row, or a list is longer than the fabric accepts.
    OutOfRange = 4,
    /// Any other failure; a retry does not help.
    Other = 5,
    /// A view cannot be opened on this memory: either the memory has been used before, or this
    /// fabric did not allocate it for the view.
    WrongMemory = 6,
}

/// An error of a fabric, classified by kind.
pub trait FabricError: core::fmt::Debug {
    /// Returns the kind of this error.
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
            Self::Revoked => "the peer revoked the permission to write",
            Self::OutOfRange => "a write is outside the row, or a list is too long",
            Self::Other => "the fabric failed",
            Self::WrongMemory => "the memory was not created for this view",
        })
    }
}

impl core::error::Error for ErrorKind {}

/// Reason why a fabric considers a peer lost (HAL-5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum LossCause {
    /// The peer's process ended without leaving first.
    Exited = 1,
    /// The peer left on purpose.
    Left = 2,
    /// The peer does not acknowledge writes.
    Unreachable = 3,
    /// The peer denied a write.
    Denied = 4,
    /// The peer published a value that no correct member can publish.
    Misbehaved = 5,
}

impl core::fmt::Display for LossCause {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::Exited => "its process ended",
            Self::Left => "it left",
            Self::Unreachable => "it cannot be reached",
            Self::Denied => "it denied a write",
            Self::Misbehaved => "it published something that no correct member can publish",
        })
    }
}
