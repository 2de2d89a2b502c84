//! Checks of single deliveries: the message was sent, is complete, is delivered once and to an
//! addressee, in the installed view, and before the deliverer's own end.
//!
//! A delivery is judged when its message is forgotten or at the end of the history, because only
//! then is it known whether the message was refused.

use super::groups::{GroupId, GroupSetId, Groups};
use super::message::{Delivery, HeldMessage, Marks, SentMessage};
use super::mixing::MixedTable;
use super::name::Names;
use super::roster::{Roster, StartId};
use super::tally::{Tally, blames, finding, shows};
use super::verdict::{Finding, Witness};

/// The findings about single deliveries.
#[derive(Debug, Default)]
pub(super) struct Integrity {
    /// `integrity-once`.
    pub(super) once: Tally,
    /// `integrity-sent`.
    pub(super) sent: Tally,
    /// `integrity-addressee`.
    pub(super) addressee: Tally,
    /// `integrity-bytes`.
    pub(super) bytes: Tally,
    /// `nulls-invisible`.
    pub(super) nulls: Tally,
    /// The part of `removed-silent` that concerns single deliveries.
    pub(super) silent: Tally,
    /// `view-delivery`, which counts only for groups that turn out to have views.
    pub(super) in_view: MixedTable<GroupId, Tally>,
}

/// Access to the names of nodes and groups.
#[derive(Clone, Copy)]
pub(super) struct Naming<'a> {
    /// Nodes and incarnations.
    pub(super) roster: &'a Roster,
    /// Groups.
    pub(super) groups: &'a Groups,
    /// Messages.
    pub(super) names: &'a Names,
}

impl Integrity {
    /// Judges a message's deliveries once no more are expected. `view_ids` contains the ids of all
    /// views.
    pub(super) fn judge(&mut self, naming: Naming<'_>, view_ids: &[u64], message: &HeldMessage) {
        let Some(sent) = message.sent.filter(|sent| !sent.is_void()) else {
            self.judge_unsent(naming, message);
            return;
        };
        let news = || message.deliveries.iter().filter(|delivery| !delivery.marks.any(Marks::PAST));
        for delivery in news() {
            if delivery.marks.any(Marks::UNADDRESSED) {
                self.judge_unaddressed(naming, message, &sent, delivery);
            } else if delivery.marks.any(Marks::REPEAT) {
                self.judge_repeat(naming, message, delivery);
            } else {
                self.judge_first(naming, message, &sent, delivery);
            }
        }
        self.judge_views(naming, view_ids, message);
    }

    fn judge_unsent(&mut self, naming: Naming<'_>, message: &HeldMessage) {
        for delivery in &message.deliveries {
            self.sent.cases(1);
            // If a delivery was forgotten before the refusal arrived, its line is lost.
            let refused = message.sent.map_or(0, |sent| sent.answer_line);
            self.sent.breach(1, if delivery.line > 0 { delivery.line } else { refused }, || {
                let (node, name) =
                    (naming.roster.called(delivery.start), naming.names.text(message.name));
                let delivered = blames(delivery.line, "delivered");
                match message.sent {
                    Some(sent) => finding(
                        format!("{node} delivered {name}, which its sender had definitely refused"),
                        [
                            shows(sent.line, "requested"),
                            shows(sent.answer_line, "refused"),
                            delivered,
                        ],
                    ),
                    None => {
                        finding(format!("{node} delivered {name}, which no node sent"), [delivered])
                    }
                }
            });
        }
    }

    fn judge_unaddressed(
        &mut self,
        naming: Naming<'_>,
        message: &HeldMessage,
        sent: &SentMessage,
        delivery: &Delivery,
    ) {
        if delivery.marks.any(Marks::REPEAT) {
            return;
        }
        self.addressee.cases(1);
        self.addressee.breach(1, delivery.line, || {
            let what = format!(
                "{} delivered {}, which is addressed to {}, but is not one of the addressees",
                naming.roster.called(delivery.start),
                naming.names.text(message.name),
                naming.set(sent.groups)
            );
            finding(
                what,
                [
                    shows(sent.line, "sent"),
                    blames(delivery.line, "delivered by a node that is not an addressee"),
                ],
            )
        });
    }

    fn judge_repeat(&mut self, naming: Naming<'_>, message: &HeldMessage, delivery: &Delivery) {
        self.once.breach(1, delivery.line, || {
            let first = message.first_by(delivery.start).map_or(0, |first| first.line);
            let what = format!(
                "{} delivered {} twice",
                naming.roster.called(delivery.start),
                naming.names.text(message.name)
            );
            finding(what, [shows(first, "delivered"), blames(delivery.line, "delivered again")])
        });
    }

    fn judge_first(
        &mut self,
        naming: Naming<'_>,
        message: &HeldMessage,
        sent: &SentMessage,
        delivery: &Delivery,
    ) {
        for tally in [&mut self.once, &mut self.sent, &mut self.addressee] {
            tally.cases(1);
        }
        let marks = delivery.marks;
        if marks.any(Marks::BYTES_KNOWN) {
            self.bytes.cases(1);
        }
        if !marks.any(
            Marks::NO_GROUP
                | Marks::EARLY
                | Marks::SENDER_WRONG
                | Marks::BYTES_WRONG
                | Marks::AFTER_END,
        ) {
            return;
        }
        let said = |what: &str, role| naming.said(message, sent, delivery, what, role);
        let line = delivery.line;
        if marks.any(Marks::NO_GROUP) {
            self.addressee.breach(1, line, || {
                said(
                    "through a group that is not one of the message's and the node's groups",
                    "through a wrong group",
                )
            });
        }
        if marks.any(Marks::EARLY) {
            self.sent.breach(1, line, || said("before it was sent", "delivered before"));
        }
        if marks.any(Marks::SENDER_WRONG) {
            self.sent.breach(1, line, || said("as another node's", "names another sender"));
        }
        if marks.any(Marks::BYTES_WRONG) {
            self.bytes.breach(1, line, || {
                said("with different bytes from those sent", "different bytes")
            });
        }
        if marks.any(Marks::AFTER_END) {
            self.silent.breach(1, line, || {
                let start = &naming.roster.starts[delivery.start.index()];
                let (node, name) =
                    (naming.roster.called(delivery.start), naming.names.text(message.name));
                let end = start.end.map_or(0, |end| end.line);
                finding(
                    format!("{node} delivered {name} after it had ended"),
                    [shows(end, "the end"), blames(line, "delivered after it")],
                )
            });
        }
    }

    fn judge_views(&mut self, naming: Naming<'_>, view_ids: &[u64], message: &HeldMessage) {
        let new = |delivery: &&Delivery| delivery.is_in_view() && !delivery.marks.any(Marks::PAST);
        // The first view of the message in each of its groups, and its line.
        let past = message.past_views.iter().filter(|(_, past)| past.is_direct);
        let mut firsts: Vec<(GroupId, u64, u64)> =
            past.map(|(group, past)| (*group, past.view, 0)).collect();
        for delivery in message.deliveries.iter().filter(new) {
            let tally = self.in_view.entry(delivery.group).or_default();
            tally.cases(1);
            let (group, node) =
                (naming.groups.name(delivery.group), || naming.roster.called(delivery.start));
            let name = || naming.names.text(message.name);
            if delivery.marks.any(Marks::VIEWLESS) {
                tally.breach(1, delivery.line, || {
                    let what = format!(
                        "{} delivered {} before it had installed a view of {group}",
                        node(),
                        name()
                    );
                    finding(what, [blames(delivery.line, "delivered before any view")])
                });
            } else if delivery.marks.any(Marks::VIEW_WRONG) {
                tally.breach(1, delivery.line, || {
                    let view = view_ids[delivery.view as usize];
                    let what = format!(
                        "{} delivered {} in view {view} of {group}, which is not its installed view",
                        node(),
                        name()
                    );
                    finding(what, [blames(delivery.line, "delivered in another view")])
                });
            }
            let Some(own) = view_ids.get(delivery.view as usize).copied() else { continue };
            let Some((_, view, other)) =
                firsts.iter().find(|(group, ..)| *group == delivery.group).copied()
            else {
                firsts.push((delivery.group, own, delivery.line));
                continue;
            };
            if own == view {
                continue;
            }
            tally.breach(1, delivery.line, || {
                let what = format!(
                    "{} delivered {} in view {} of {group}, although it was delivered in view {view} before",
                    node(),
                    name(),
                    own
                );
                finding(what, [shows(other, "delivered"), blames(delivery.line, "delivered in another view")])
            });
        }
    }
}

impl Naming<'_> {
    /// Returns the names of a set's groups.
    pub(super) fn set(&self, set: GroupSetId) -> String {
        let names: Vec<&str> =
            self.groups.of(set).groups.iter().map(|group| self.groups.name(*group)).collect();
        names.join(" and ")
    }

    /// Returns the display name of an incarnation.
    pub(super) fn start(&self, start: StartId) -> String {
        self.roster.called(start)
    }

    fn said(
        &self,
        message: &HeldMessage,
        sent: &SentMessage,
        delivery: &Delivery,
        what: &str,
        role: &'static str,
    ) -> Finding {
        let what = format!(
            "{} delivered {} {what}",
            self.start(delivery.start),
            self.names.text(message.name)
        );
        let witness: [Witness; 2] = [shows(sent.line, "sent"), blames(delivery.line, role)];
        finding(what, witness)
    }
}

#[cfg(test)]
mod tests {
    use crate::check::CheckId;
    use crate::check::testing::{Play, broken, held};

    fn only(play: &Play) -> (CheckId, Vec<u64>) {
        let found = broken(&play.verdict());
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().expect("one")
    }

    #[test]
    fn correct_delivery_passes_every_integrity_check() {
        let mut play = Play::new(&["a", "b"]);
        play.line(r#"{"ev":"multicast","t_ns":1,"node":"a","inc":1,"msg":"x","groups":["g"],"bytes":3,"digest":"d"}"#);
        for node in ["a", "b"] {
            play.line(&format!(
                r#"{{"ev":"deliver","t_ns":1,"node":"{node}","inc":1,"group":"g","msg":"x","sender":"a","bytes":3,"digest":"d"}}"#
            ));
        }
        for check in [
            CheckId::IntegrityOnce,
            CheckId::IntegritySent,
            CheckId::IntegrityAddressee,
            CheckId::IntegrityBytes,
            CheckId::NullsInvisible,
        ] {
            assert!(held(&play.verdict(), check), "{check}");
        }
    }

    #[test]
    fn second_delivery_of_a_message_is_a_violation() {
        let mut play = Play::new(&["a"]);
        play.sends("a", 1);
        let lines = play.deliver("a", &["a/1/0", "a/1/0"]);
        assert_eq!(only(&play), (CheckId::IntegrityOnce, lines));
    }

    #[test]
    fn each_delivery_of_an_unsent_message_is_reported() {
        let mut play = Play::new(&["a"]);
        let lines = play.deliver("a", &["ghost", "ghost"]);
        assert_eq!(only(&play), (CheckId::IntegritySent, lines[..1].to_vec()));
    }

    #[test]
    fn late_refusal_makes_earlier_delivery_a_violation() {
        let mut play = Play::new(&["a", "b"]);
        let sent = play.sends("a", 1);
        let delivered = play.deliver("b", &["a/1/0"]);
        let refused = play.line(r#"{"ev":"refused","t_ns":1,"node":"a","inc":1,"msg":"a/1/0"}"#);
        assert_eq!(only(&play), (CheckId::IntegritySent, vec![sent[0], refused, delivered[0]]));
    }

    #[test]
    fn delivery_may_precede_multicast_only_in_lines() {
        let mut play = Play::new(&["a", "b"]);
        let early = play.deliver("b", &["a/1/0"]);
        play.line(r#"{"ev":"multicast","t_ns":1,"node":"a","inc":1,"msg":"a/1/0","groups":["g"]}"#);
        play.deliver("a", &["a/1/0"]);
        assert_eq!(broken(&play.verdict()), []);
        let mut play = Play::new(&["a", "b"]);
        assert_eq!(play.deliver("b", &["a/1/0"]), early);
        let sent = play
            .line(r#"{"ev":"multicast","t_ns":2,"node":"a","inc":1,"msg":"a/1/0","groups":["g"]}"#);
        assert_eq!(only(&play), (CheckId::IntegritySent, vec![sent, early[0]]));
    }

    #[test]
    fn delivery_outside_addressed_groups_is_a_violation() {
        let mut play = Play::new(&["a"]);
        play.line(r#"{"ev":"start","t_ns":0,"node":"z","inc":1}"#);
        let sent = play.sends("a", 1);
        let lines = play.deliver("z", &["a/1/0"]);
        let found = broken(&play.verdict());
        assert!(
            found.contains(&(CheckId::IntegrityAddressee, vec![sent[0], lines[0]])),
            "{found:?}"
        );
    }

    #[test]
    fn altered_payload_is_a_violation() {
        let mut play = Play::new(&["a"]);
        let sent =
            play.line(r#"{"ev":"multicast","t_ns":1,"node":"a","inc":1,"msg":"x","groups":["g"],"bytes":3,"digest":"d"}"#);
        let line = play.line(
            r#"{"ev":"deliver","t_ns":1,"node":"a","inc":1,"group":"g","msg":"x","digest":"e"}"#,
        );
        assert_eq!(only(&play), (CheckId::IntegrityBytes, vec![sent, line]));
    }

    #[test]
    fn delivery_without_message_is_a_violation() {
        let mut play = Play::new(&["a"]);
        let line =
            play.line(r#"{"ev":"deliver","t_ns":1,"node":"a","inc":1,"group":"g","msg":null}"#);
        assert_eq!(only(&play), (CheckId::NullsInvisible, vec![line]));
    }

    #[test]
    fn delivery_outside_installed_view_is_a_violation() {
        let mut play = Play::new(&["a", "b"]);
        play.sends("a", 1);
        play.line(
            r#"{"ev":"view","t_ns":1,"node":"a","inc":1,"group":"g","view":1,"members":["a","b"]}"#,
        );
        play.line(
            r#"{"ev":"deliver","t_ns":1,"node":"a","inc":1,"group":"g","msg":"a/1/0","view":1}"#,
        );
        let line = play.deliver("b", &["a/1/0"]);
        assert_eq!(only(&play), (CheckId::ViewDelivery, line));
    }
}
