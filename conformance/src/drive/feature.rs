//! What an adapter may claim, and a scenario may need.

use std::fmt;

/// A feature of the adapter protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// When members are killed, the others, if they are a majority, go on.
    Crash,
    /// A member can leave.
    Leave,
    /// A node can join running groups.
    Join,
    /// A killed node can come back on its storage folder.
    Restart,
    /// Delivery can be slowed down.
    Pause,
    /// Posts are counted.
    Stats,
    /// Groups may overlap.
    SeveralGroups,
    /// A message may be for several groups, in one order.
    OrderAcrossGroups,
    /// A sender need not be a member.
    OutsideSenders,
    /// Members talk over the addresses that they are given, and survive partitions.
    Network,
    /// A member that is suspended for a while goes on, or halts with notice.
    Suspension,
    /// A message may have no bytes.
    EmptyMessages,
    /// Messages may be as large as the limits say.
    LargeMessages,
    /// Messages may be far larger than a network takes in one piece.
    HugeMessages,
}

impl Feature {
    /// Its name in the protocol.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Leave => "leave",
            Self::Join => "join",
            Self::Restart => "restart",
            Self::Pause => "pause",
            Self::Stats => "stats",
            Self::SeveralGroups => "several-groups",
            Self::OrderAcrossGroups => "order-across-groups",
            Self::OutsideSenders => "outside-senders",
            Self::Network => "network",
            Self::Suspension => "suspension",
            Self::EmptyMessages => "empty-messages",
            Self::LargeMessages => "large-messages",
            Self::HugeMessages => "huge-messages",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
