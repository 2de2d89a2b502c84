//! The features that an adapter may claim and a scenario may need.

use std::fmt;

macro_rules! features {
    ($($(#[doc = $doc:literal])* $feature:ident => $name:literal;)*) => {
        /// A feature of the adapter protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Feature { $($(#[doc = $doc])* $feature,)* }

        impl Feature {
            /// All features.
            pub const ALL: &[Self] = &[$(Self::$feature,)*];

            /// Returns the feature of this name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|feature| feature.name() == name)
            }

            /// Returns the feature's name in the protocol.
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
    /// Members report which deliveries survive a restart.
    Durable => "durable";
    /// When members are killed, the others continue if they are a majority.
    Crash => "crash";
    /// A member can leave.
    Leave => "leave";
    /// A node can join running groups.
    Join => "join";
    /// A killed node can come back with its storage folder.
    Restart => "restart";
    /// Delivery can be slowed down.
    Pause => "pause";
    /// Posts are counted.
    Stats => "stats";
    /// Groups may overlap.
    SeveralGroups => "several-groups";
    /// A message may be addressed to several groups, in one order.
    OrderAcrossGroups => "order-across-groups";
    /// A sender need not be a member.
    OutsideSenders => "outside-senders";
    /// A group has one leader at a time, which announces itself.
    Leaders => "leaders";
    /// A killed member can come back without its storage, and receives the state of its group.
    Rejoin => "rejoin";
    /// Members communicate only over the addresses given to them, and survive partitions.
    Network => "network";
    /// A member whose storage folder is full continues, or halts and reports it, and keeps
    /// everything that it reported durable.
    FullDisk => "full-disk";
    /// Answered messages survive the loss of power at all members at once, even if no member says
    /// which deliveries survive a restart.
    PowerLoss => "power-loss";
    /// A member that is suspended for some time continues, or halts and reports it.
    Suspension => "suspension";
    /// A message may have an empty payload.
    EmptyMessages => "empty-messages";
    /// Messages may be as large as the limits allow.
    LargeMessages => "large-messages";
    /// Messages may be far larger than one packet of the network.
    HugeMessages => "huge-messages";
}

impl fmt::Display for Feature {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
