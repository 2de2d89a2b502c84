//! Methods by which receivers can have what lies in a sender's memory: what the machine can do with
//! nothing of a group between them, and what was compared before the fabric took one of them
//! (`docs/lab-notes/blocks-on-shared-memory.md`).

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use tramontane_runtime::shared_memory::copying::{PIECE_BYTES, Stores};

/// Bytes of a piece that all receivers copy at about the same time with streaming stores.
const LARGE_PIECE_BYTES: usize = 4 << 20;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// A memcpy of the whole from memory of the receiver's own: nothing is shared
    Own,
    /// A memcpy of the whole
    Memcpy,
    /// A memcpy of 256 KiB at a time
    Pieces,
    /// The same, all receivers at the same piece
    PiecesTogether,
    /// Stores past the caches, the whole
    Streaming,
    /// Stores past the caches, 256 KiB at a time
    StreamingPieces,
    /// The same with 4 MiB, all receivers at the same piece
    StreamingTogether,
    /// No copy: every byte is read where the sender has it
    Lent,
}

impl Method {
    /// The methods that stand beside a group where none is named.
    pub(in crate::blocks) const USUAL: [Self; 2] = [Self::Memcpy, Self::Lent];

    pub(super) const fn stores(self) -> Stores {
        match self {
            Self::Streaming | Self::StreamingPieces | Self::StreamingTogether => Stores::Streaming,
            Self::Own | Self::Memcpy | Self::Pieces | Self::PiecesTogether | Self::Lent => {
                Stores::Cached
            }
        }
    }

    /// Bytes that are copied at a time, of a message of this size.
    pub(super) fn piece_bytes(self, bytes: usize) -> usize {
        let most = match self {
            Self::Own | Self::Memcpy | Self::Streaming | Self::Lent => bytes,
            Self::Pieces | Self::PiecesTogether | Self::StreamingPieces => PIECE_BYTES,
            Self::StreamingTogether => LARGE_PIECE_BYTES,
        };
        most.clamp(1, bytes.max(1))
    }

    /// Whether each receiver begins a piece only when all have the one before.
    pub(super) const fn is_together(self) -> bool {
        matches!(self, Self::PiecesTogether | Self::StreamingTogether)
    }
}

#[cfg(test)]
mod tests {
    use tramontane_local::options::name;

    use super::*;

    #[test]
    fn names_are_those_of_the_command_line() {
        for method in Method::value_variants() {
            assert_eq!(serde_json::to_value(method).expect("a name"), name(method));
        }
    }
}
