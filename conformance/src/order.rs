//! The judge of order: what was sent and delivered in one group, against what atomic multicast promises.
//!
//! It knows no implementation. A record is names and lists; whoever has them can be judged. It is written
//! to be read: each rule is a function of its own, in the order in which they are listed here.
//!
//! | rule | says |
//! |---|---|
//! | identity | no message was sent twice: without that, nothing below can be told |
//! | integrity | a member delivers each message at most once, and only what was sent |
//! | sender order | what a member delivered of a sender is how that sender's list begins |
//! | total order | of any two members' deliveries, one is how the other begins |
//! | completeness | if the run ended calm, every survivor delivered everything that survivors sent |
//!
//! Sender order has no gaps and total order is a prefix because membership is fixed: nothing that was
//! delivered anywhere may be skipped elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// One group's run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The members. A name stands for its place in this list.
    pub members: Vec<Member>,
    /// Whether all members were to deliver in one order, or each sender's messages in that sender's only.
    pub total_order: bool,
    /// Whether the run ended with nothing left to do, so that nothing may be missing.
    pub calm: bool,
}

/// What one member did. Messages are named by any number that is theirs alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// What it sent, in order.
    pub sent: Vec<u64>,
    /// What it delivered, in order.
    pub delivered: Vec<u64>,
    /// Whether it was there to the end.
    pub survived: bool,
}

/// A promise that was broken. Members are named by their place in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The record names two messages alike.
    SentTwice {
        /// The message.
        message: u64,
    },
    /// A message was delivered again.
    Duplicate {
        /// By whom.
        member: usize,
        /// The message.
        message: u64,
    },
    /// A message was delivered that nobody sent.
    Unsent {
        /// By whom.
        member: usize,
        /// The message.
        message: u64,
    },
    /// A sender's messages were delivered in another order than it sent them, or some were left out.
    SenderOrder {
        /// By whom.
        member: usize,
        /// Whose messages.
        sender: usize,
        /// What was due.
        due: u64,
        /// What came.
        message: u64,
    },
    /// Two members delivered different messages as their n-th.
    Disagreement {
        /// The one.
        member: usize,
        /// The other.
        other: usize,
        /// How many messages they agree on.
        place: usize,
    },
    /// A calm run left a survivor without a message.
    Missing {
        /// Who lacks it.
        member: usize,
        /// The message.
        message: u64,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SentTwice { message } => write!(out, "message {message:#x} was sent twice"),
            Self::Duplicate { member, message } => {
                write!(out, "member {member} delivered message {message:#x} twice")
            }
            Self::Unsent { member, message } => {
                write!(out, "member {member} delivered message {message:#x}, which nobody sent")
            }
            Self::SenderOrder { member, sender, due, message } => write!(
                out,
                "member {member} delivered {message:#x} of sender {sender} where {due:#x} was due"
            ),
            Self::Disagreement { member, other, place } => {
                write!(
                    out,
                    "members {member} and {other} differ in what they delivered after {place} messages"
                )
            }
            Self::Missing { member, message } => {
                write!(out, "member {member} never delivered message {message:#x}")
            }
        }
    }
}

impl std::error::Error for Violation {}

/// Judges a record: the first broken promise, if any.
///
/// # Errors
/// The violation.
pub fn judge(record: &Record) -> Result<(), Violation> {
    let senders = identity(record)?;
    integrity(record, &senders)?;
    sender_order(record, &senders)?;
    if record.total_order {
        total_order(record)?;
    }
    if record.calm {
        completeness(record)?;
    }
    Ok(())
}

/// By message: who sent it, and as which of its messages.
type Senders = BTreeMap<u64, (usize, usize)>;

fn identity(record: &Record) -> Result<Senders, Violation> {
    let mut senders = Senders::new();
    for (sender, member) in record.members.iter().enumerate() {
        for (index, message) in member.sent.iter().enumerate() {
            if senders.insert(*message, (sender, index)).is_some() {
                return Err(Violation::SentTwice { message: *message });
            }
        }
    }
    Ok(senders)
}

fn integrity(record: &Record, senders: &Senders) -> Result<(), Violation> {
    for (index, member) in record.members.iter().enumerate() {
        let mut delivered = BTreeSet::new();
        for message in &member.delivered {
            if !senders.contains_key(message) {
                return Err(Violation::Unsent { member: index, message: *message });
            }
            if !delivered.insert(message) {
                return Err(Violation::Duplicate { member: index, message: *message });
            }
        }
    }
    Ok(())
}

fn sender_order(record: &Record, senders: &Senders) -> Result<(), Violation> {
    for (index, member) in record.members.iter().enumerate() {
        let mut next = vec![0; record.members.len()];
        for message in &member.delivered {
            let Some((sender, place)) = senders.get(message).copied() else { continue };
            if place != next[sender] {
                let due = record.members[sender].sent[next[sender]];
                return Err(Violation::SenderOrder { member: index, sender, due, message: *message });
            }
            next[sender] += 1;
        }
    }
    Ok(())
}

fn total_order(record: &Record) -> Result<(), Violation> {
    // Whoever delivered most is what all others are compared with: prefixes of one list agree.
    let longest = record.members.iter().enumerate().max_by_key(|(_, member)| member.delivered.len());
    let Some((other, longest)) = longest else { return Ok(()) };
    for (member, candidate) in record.members.iter().enumerate() {
        let pairs = candidate.delivered.iter().zip(&longest.delivered);
        let agreed = pairs.take_while(|(one, two)| one == two).count();
        if agreed < candidate.delivered.len() {
            return Err(Violation::Disagreement { member, other, place: agreed });
        }
    }
    Ok(())
}

fn completeness(record: &Record) -> Result<(), Violation> {
    let survivors = || record.members.iter().enumerate().filter(|(_, member)| member.survived);
    for (index, member) in survivors() {
        let delivered: BTreeSet<u64> = member.delivered.iter().copied().collect();
        let missing = survivors().flat_map(|(_, sender)| &sender.sent).find(|sent| !delivered.contains(sent));
        if let Some(message) = missing {
            return Err(Violation::Missing { member: index, message: *message });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(sent: &[u64], delivered: &[u64]) -> Member {
        Member { sent: sent.to_vec(), delivered: delivered.to_vec(), survived: true }
    }

    fn record(members: &[Member]) -> Record {
        Record { members: members.to_vec(), total_order: true, calm: true }
    }

    fn good() -> Record {
        record(&[member(&[1, 2], &[1, 9, 2]), member(&[9], &[1, 9, 2]), member(&[], &[1, 9, 2])])
    }

    #[test]
    fn a_good_record_passes() {
        assert_eq!(judge(&good()), Ok(()));
        assert_eq!(judge(&Record::default()), Ok(()));
    }

    #[test]
    fn each_broken_promise_is_found() {
        let cases: [(&str, Record, Violation); 8] = [
            (
                "two messages of one name",
                record(&[member(&[1], &[1]), member(&[1], &[1])]),
                Violation::SentTwice { message: 1 },
            ),
            (
                "a message twice",
                record(&[member(&[1, 2], &[1, 2, 1])]),
                Violation::Duplicate { member: 0, message: 1 },
            ),
            (
                "a message that nobody sent",
                record(&[member(&[1], &[1, 7])]),
                Violation::Unsent { member: 0, message: 7 },
            ),
            (
                "a sender's messages the wrong way round",
                record(&[member(&[1, 2], &[2, 1]), member(&[], &[2, 1])]),
                Violation::SenderOrder { member: 0, sender: 0, due: 1, message: 2 },
            ),
            (
                "a sender's message left out",
                record(&[member(&[1, 2, 3], &[1, 3])]),
                Violation::SenderOrder { member: 0, sender: 0, due: 2, message: 3 },
            ),
            (
                "two orders",
                record(&[member(&[1], &[1, 2]), member(&[2], &[2, 1])]),
                Violation::Disagreement { member: 0, other: 1, place: 0 },
            ),
            (
                "a hole in one member's deliveries",
                record(&[member(&[1], &[1, 2, 3]), member(&[2], &[1, 3]), member(&[3], &[1, 2, 3])]),
                Violation::Disagreement { member: 1, other: 2, place: 1 },
            ),
            (
                "a message that one survivor lacks",
                record(&[member(&[1, 2], &[1, 2]), member(&[], &[1])]),
                Violation::Missing { member: 1, message: 2 },
            ),
        ];
        for (name, record, violation) in cases {
            assert_eq!(judge(&record), Err(violation), "{name}");
        }
    }

    #[test]
    fn a_run_that_did_not_end_calm_may_lack_messages_but_not_order() {
        let mut short = record(&[member(&[1, 2], &[1, 2]), member(&[], &[1])]);
        short.calm = false;
        assert_eq!(judge(&short), Ok(()));
        short.members[1].delivered = vec![2];
        assert!(judge(&short).is_err());
    }

    #[test]
    fn who_did_not_survive_lacks_nothing_and_owes_nothing() {
        let mut record = record(&[member(&[1], &[1]), member(&[2], &[])]);
        record.members[1].survived = false;
        assert_eq!(judge(&record), Ok(()));
    }

    #[test]
    fn without_a_total_order_each_sender_still_has_its_own() {
        let mut unordered = record(&[member(&[1, 2], &[1, 2, 9]), member(&[9], &[9, 1, 2])]);
        assert!(matches!(judge(&unordered), Err(Violation::Disagreement { .. })));
        unordered.total_order = false;
        assert_eq!(judge(&unordered), Ok(()));
        unordered.members[1].delivered = vec![9, 2, 1];
        assert!(matches!(judge(&unordered), Err(Violation::SenderOrder { .. })));
    }
}
