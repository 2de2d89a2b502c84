//! Options shared by several experiments: which members send, how a member is driven, and which
//! techniques are enabled.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tramontane_core::multicast::Switches;

/// The number of members that send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Senders {
    /// Every member.
    #[default]
    All,
    /// Every other member.
    Half,
    /// Only the first member.
    One,
}

impl Senders {
    /// Returns the number of senders in a group of `nodes` members.
    #[must_use]
    pub const fn of(self, nodes: u16) -> u16 {
        match self {
            Self::All => nodes,
            Self::Half => nodes.div_ceil(2),
            Self::One => 1,
        }
    }
}

/// The thread that steps the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Drive {
    /// The process's own loop, which also sends.
    Caller,
    /// A polling thread; the sending thread helps when it finds no free slot.
    Polled,
}

/// One of Spindle's techniques, to be disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Technique {
    /// Send one message per step.
    SendBatching,
    /// Receive one message per step.
    ReceiveBatching,
    /// Deliver one message per step.
    DeliveryBatching,
    /// Nulls are disabled.
    Nulls,
    /// Post after each stage.
    LatePosting,
    /// All techniques are disabled, which is the paper's baseline.
    All,
}

/// Returns the switches that remain when these techniques are disabled.
#[must_use]
pub fn switches_without(techniques: &[Technique]) -> Switches {
    techniques.iter().fold(Switches::all(), |switches, technique| {
        switches.difference(match technique {
            Technique::SendBatching => Switches::SEND_BATCHING,
            Technique::ReceiveBatching => Switches::RECEIVE_BATCHING,
            Technique::DeliveryBatching => Switches::DELIVERY_BATCHING,
            Technique::Nulls => Switches::NULLS,
            Technique::LatePosting => Switches::LATE_POSTING,
            Technique::All => Switches::all(),
        })
    })
}

/// Returns a short list of the enabled techniques.
pub(crate) fn techniques(switches: Switches) -> String {
    if switches == Switches::all() {
        return "all".into();
    }
    if switches.is_empty() {
        return "none".into();
    }
    let names = [
        (Switches::SEND_BATCHING, "send"),
        (Switches::RECEIVE_BATCHING, "receive"),
        (Switches::DELIVERY_BATCHING, "delivery"),
        (Switches::NULLS, "nulls"),
        (Switches::LATE_POSTING, "late"),
    ];
    let on = names.iter().filter(|(switch, _)| switches.contains(*switch));
    on.map(|(_, name)| *name).collect::<Vec<_>>().join("+")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_members_rounds_up() {
        assert_eq!(Senders::Half.of(1), 1);
        assert_eq!(Senders::Half.of(5), 3);
    }

    #[test]
    fn enabled_techniques_are_printed_by_name() {
        assert_eq!(techniques(Switches::all()), "all");
        assert_eq!(techniques(Switches::empty()), "none");
        assert_eq!(techniques(Switches::NULLS | Switches::SEND_BATCHING), "send+nulls");
    }
}
