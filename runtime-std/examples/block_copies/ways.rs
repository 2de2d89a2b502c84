//! The ways to copy that are compared.

use std::fmt;

use tramontane_runtime::shared_memory::copying::Stores;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Through the fabric.
    Fabric,
    /// By hand.
    Raw {
        /// From memory of the receiver's own: nothing is shared.
        own: bool,
        /// How bytes are stored.
        stores: Stores,
        /// Bytes that are copied at a time.
        block: usize,
        /// All receivers copy the same block at about the same time.
        together: bool,
    },
}

const KIB: usize = 1 << 10;

impl Way {
    /// All of them, in the order in which they take turns.
    pub fn all() -> Vec<Self> {
        let mut ways = vec![Self::Fabric];
        for stores in [Stores::Cached, Stores::Streaming] {
            ways.push(Self::Raw { own: true, stores, block: usize::MAX, together: false });
            ways.push(Self::Raw { own: false, stores, block: usize::MAX, together: false });
            ways.push(Self::Raw { own: false, stores, block: 256 * KIB, together: false });
            for block in [64 * KIB, 256 * KIB, 1024 * KIB, 4096 * KIB] {
                ways.push(Self::Raw { own: false, stores, block, together: true });
            }
        }
        ways
    }
}

impl fmt::Display for Way {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Raw { own, stores, block, together } = self else { return out.write_str("fabric") };
        out.write_str(match stores {
            Stores::Cached => "memcpy",
            Stores::Streaming => "stream",
        })?;
        if *own {
            return out.write_str(", own");
        }
        match block {
            &usize::MAX => out.write_str(", whole"),
            block if *together => write!(out, ", {} KiB together", block / KIB),
            block => write!(out, ", {} KiB", block / KIB),
        }
    }
}
