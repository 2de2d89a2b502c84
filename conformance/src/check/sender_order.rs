//! Checks that each incarnation's messages are delivered in the order in which it sent them, and
//! that none is skipped.
//!
//! An incarnation's messages to a group are ordered by the lines of their multicasts. For each
//! deliverer, sending incarnation and group, only the latest delivery is stored, because in a
//! correct history the next delivery is of a later message.
//!
//! Invariant: a deliverer's messages are observed in the order in which it delivered them.

use super::groups::{GroupId, Groups};
use super::message::SentMessage;
use super::mixing::MixedTable;
use super::name::{Name, Names};
use super::roster::{Roster, StartId};
use super::tally::{Tally, blames, finding, shows};

/// A delivery of a message that its sender sent at `sent_line`.
#[derive(Clone, Copy, Debug)]
struct Latest {
    sent_line: u64,
    line: u64,
    name: Name,
}

/// The observed deliveries and findings.
#[derive(Debug, Default)]
pub(super) struct SenderOrder {
    /// The latest delivery by deliverer, sender and group.
    latest: MixedTable<(StartId, StartId, GroupId), Latest>,
    /// The latest delivery by sender and group, at any member.
    later: MixedTable<(StartId, GroupId), (StartId, Latest)>,
    /// `sender-order`.
    pub(super) tally: Tally,
}

impl SenderOrder {
    /// Observes a delivery, after all earlier deliveries of the same incarnation.
    pub(super) fn observe(
        &mut self,
        (roster, groups, names): (&Roster, &Groups, &Names),
        by: StartId,
        (name, sent, line): (Name, &SentMessage, u64),
    ) {
        let new = Latest { sent_line: sent.line, line, name };
        let node = roster.node_of(by);
        for group in
            groups.of(sent.groups).groups.iter().filter(|group| groups.has_member(**group, node))
        {
            let later = self.later.entry((sent.start, *group)).or_insert((by, new));
            if later.1.sent_line < new.sent_line {
                *later = (by, new);
            }
            let Some(latest) = self.latest.get_mut(&(by, sent.start, *group)) else {
                self.latest.insert((by, sent.start, *group), new);
                continue;
            };
            self.tally.cases(1);
            if latest.sent_line <= new.sent_line {
                *latest = new;
                continue;
            }
            let latest = *latest;
            self.tally.breach(1, line, || {
                let what = format!(
                    "{} delivered {} before {}, but {} had sent them to {} in the opposite order",
                    roster.called(by),
                    names.text(latest.name),
                    names.text(name),
                    roster.called(sent.start),
                    groups.name(*group)
                );
                finding(
                    what,
                    [
                        shows(sent.line, "sent first"),
                        shows(latest.sent_line, "sent second"),
                        shows(latest.line, "the second, delivered first"),
                        blames(line, "the first, delivered second"),
                    ],
                )
            });
        }
    }

    /// Returns whether an incarnation has delivered a later message of the same sender to the
    /// group. If so, it will not deliver the earlier message.
    pub(super) fn has_passed(&self, by: StartId, sent: &SentMessage, group: GroupId) -> bool {
        self.latest
            .get(&(by, sent.start, group))
            .is_some_and(|latest| latest.sent_line >= sent.line)
    }

    /// Records a message that was neither delivered nor refused, but breaks no other promise by
    /// this.
    pub(super) fn left_out(
        &mut self,
        (roster, groups, names): (&Roster, &Groups, &Names),
        name: Name,
        sent: &SentMessage,
    ) {
        let mut later = groups.of(sent.groups).groups.iter().filter_map(|group| {
            let (by, latest) = self.later.get(&(sent.start, *group))?;
            (latest.sent_line > sent.line).then_some((*group, *by, *latest))
        });
        if let Some((group, by, latest)) = later.next() {
            self.tally.breach(1, sent.line, || {
                let what = format!(
                    "{} delivered {}, but no node delivered {}, which {} had sent to {} before it",
                    roster.called(by),
                    names.text(latest.name),
                    names.text(name),
                    roster.called(sent.start),
                    groups.name(group)
                );
                finding(
                    what,
                    [
                        blames(sent.line, "left out"),
                        shows(latest.sent_line, "sent later"),
                        shows(latest.line, "the later one, delivered"),
                    ],
                )
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::check::CheckId;
    use crate::check::testing::{Play, broken, held};

    #[test]
    fn deliveries_in_sender_order_pass() {
        let mut play = Play::new(&["a", "b"]);
        play.sends("a", 3);
        play.deliver("a", &["a/1/0", "a/1/1", "a/1/2"]);
        play.deliver("b", &["a/1/0", "a/1/1", "a/1/2"]);
        assert!(held(&play.verdict(), CheckId::SenderOrder));
    }

    #[test]
    fn swapped_deliveries_are_reported_with_four_lines() {
        let mut play = Play::new(&["a", "b"]);
        let sent = play.sends("a", 2);
        let mut lines = play.deliver("b", &["a/1/1", "a/1/0"]);
        play.deliver("a", &["a/1/1", "a/1/0"]);
        lines.splice(0..0, sent);
        assert_eq!(broken(&play.verdict()), [(CheckId::SenderOrder, lines)]);
    }

    #[test]
    fn skipped_message_of_crashed_sender_is_a_violation() {
        let mut play = Play::new(&["a", "b"]);
        let sent = play.sends("a", 2);
        let delivered = play.deliver("b", &["a/1/1"]);
        play.fault("kill", "a");
        play.end("b");
        assert_eq!(broken(&play.verdict()), [(CheckId::SenderOrder, [sent, delivered].concat())]);
    }

    #[test]
    fn sender_order_covers_deliveries_recorded_before_sends() {
        let mut play = Play::new(&["a", "b"]);
        play.deliver("b", &["a/1/1", "a/1/0"]);
        play.sends("a", 2);
        play.deliver("a", &["a/1/1", "a/1/0"]);
        assert!(broken(&play.verdict()).iter().any(|(check, _)| *check == CheckId::SenderOrder));
    }
}
