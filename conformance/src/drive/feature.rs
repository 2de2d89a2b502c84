//! What an adapter may claim, and a scenario may need.

use std::fmt;

macro_rules! features {
    ($($(#[doc = $doc:literal])* $feature:ident => $name:literal;)*) => {
        /// A feature of the adapter protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Feature { $($(#[doc = $doc])* $feature,)* }

        impl Feature {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$feature,)*];

            /// The feature of that name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|feature| feature.name() == name)
            }

            /// Its name in the protocol.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$feature => $name,)* }
            }
        }
    };
}

features! {
    /// Members learn of views.
    Views => "views";
    /// Members say what survives a restart.
    Durable => "durable";
    /// When members are killed, the others, if they are a majority, go on.
    Crash => "crash";
    /// A member can leave.
    Leave => "leave";
    /// A node can join running groups.
    Join => "join";
    /// A killed node can come back on its storage folder.
    Restart => "restart";
    /// Delivery can be slowed down.
    Pause => "pause";
    /// Posts are counted.
    Stats => "stats";
    /// Groups may overlap.
    SeveralGroups => "several-groups";
    /// A message may be for several groups, in one order.
    OrderAcrossGroups => "order-across-groups";
    /// A sender need not be a member.
    OutsideSenders => "outside-senders";
    /// A group has one leader at a time, who says so.
    Leaders => "leaders";
    /// A killed member can come back with nothing, and takes over the state of its group.
    Rejoin => "rejoin";
    /// Members talk over the addresses that they are given, and survive partitions.
    Network => "network";
    /// A member whose storage folder has no room left goes on or halts with notice, and keeps what
    /// it said to be durable.
    FullDisk => "full-disk";
    /// A member that is suspended for a while goes on, or halts with notice.
    Suspension => "suspension";
    /// A message may have no bytes.
    EmptyMessages => "empty-messages";
    /// Messages may be as large as the limits say.
    LargeMessages => "large-messages";
    /// Messages may be far larger than a network takes in one piece.
    HugeMessages => "huge-messages";
}

impl fmt::Display for Feature {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
