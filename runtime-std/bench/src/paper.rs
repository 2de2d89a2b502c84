//! What the paper reports, to stand beside a simulated run. Only numbers that its text states; none
//! is read off a plot.

use tramontane_core::multicast::Switches;

use crate::options::Senders;

/// A number of the paper.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Reported {
    /// Bytes a second delivered at each member, in GB/s.
    pub gigabytes_per_s: f64,
    /// Where the paper says so.
    pub source: &'static str,
}

/// What Spindle reports of one subgroup sending 10 KB messages continuously with a window of 100,
/// if it does.
#[must_use]
pub fn reported(
    nodes: u16,
    senders: Senders,
    switches: Switches,
    delay_us: u64,
) -> Option<Reported> {
    if senders != Senders::All {
        return None;
    }
    let batching =
        Switches::SEND_BATCHING | Switches::RECEIVE_BATCHING | Switches::DELIVERY_BATCHING;
    let say = |gigabytes_per_s, source| Some(Reported { gigabytes_per_s, source });
    if delay_us > 0 {
        return match (switches == Switches::all(), delay_us) {
            (true, 100) => say(10.0, "IV-B.1: the peak over all delayed cases"),
            _ => None,
        };
    }
    if switches == Switches::all() && (4..=16).contains(&nodes) {
        return say(9.7, "IV-C: 77.6 % of the network from 4 to 16 members");
    }
    if switches == batching && nodes == 11 {
        return say(8.03, "IV-A.1: the peak of batching alone");
    }
    if switches.is_empty() {
        return say(1.0, "abstract: the system before Spindle, without a member count");
    }
    None
}
