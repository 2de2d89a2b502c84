//! The times at which an idle sender asks to pause, and at which it asks to send again (Spindle
//! III-B).
//!
//! # Invariants
//! - Each wish is expressed once. The request persists across views until it is in effect.
//! - A sender with a message that is not delivered yet never asks to pause. If it sends while its
//!   request is under way, the message is carried over, and it asks to send again.

use tramontane_core::ids::Time;

/// The recent activity of one sender of a subgroup.
#[derive(Debug)]
pub(crate) struct Pausing {
    after_ns: u64,
    /// The messages delivered when it was last seen to send, and the time.
    seen: Option<(u64, Time)>,
    /// Whether this node has asked to send, or to pause, and the group has not done so yet.
    asked: Option<bool>,
}

impl Pausing {
    /// Creates the state of a sender that pauses after this time.
    pub(crate) fn new(after_ms: u64) -> Self {
        Self { after_ns: after_ms.saturating_mul(1_000_000), seen: None, asked: None }
    }

    /// Handles the beginning of a view in which this node does, or does not, send.
    pub(crate) fn view_begins(&mut self, sends: bool) {
        self.seen = None;
        self.asked = self.asked.filter(|asked| *asked != sends);
    }

    /// Returns the wish of a node that sends: to pause, if it has delivered the same number of its
    /// messages for long enough. Call it only while none of its messages is undelivered.
    pub(crate) fn rests(&mut self, delivered: u64, now: Time) -> Option<bool> {
        let (count, since) = *self.seen.get_or_insert((delivered, now));
        if count != delivered {
            self.seen = Some((delivered, now));
            return None;
        }
        if now.since(since) < self.after_ns { None } else { self.ask(false) }
    }

    /// Notes that a node that sends has a message that is not delivered yet.
    pub(crate) fn is_busy(&mut self) {
        self.seen = None;
    }

    /// Returns the wish of a paused node that has something to send.
    pub(crate) fn wakes(&mut self) -> Option<bool> {
        self.ask(true)
    }

    fn ask(&mut self, sends: bool) -> Option<bool> {
        if self.asked == Some(sends) {
            return None;
        }
        self.asked = Some(sends);
        self.asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_sender_asks_once_for_each_change() {
        let mut pausing = Pausing::new(5);
        let at = |ms: u64| Time(ms * 1_000_000);
        assert_eq!(pausing.rests(7, at(100)), None);
        assert_eq!(pausing.rests(8, at(104)), None);
        assert_eq!(pausing.rests(8, at(108)), None);
        pausing.is_busy();
        assert_eq!(pausing.rests(8, at(110)), None);
        assert_eq!(pausing.rests(8, at(115)), Some(false));
        assert_eq!(pausing.rests(8, at(130)), None, "it has asked already");
        pausing.view_begins(true);
        assert_eq!([pausing.rests(8, at(131)), pausing.rests(8, at(140))], [None; 2]);
        pausing.view_begins(false);
        assert_eq!([pausing.wakes(), pausing.wakes()], [Some(true), None]);
        pausing.view_begins(true);
        assert_eq!(pausing.rests(8, at(150)), None);
        assert_eq!(pausing.rests(8, at(155)), Some(false));
    }
}
