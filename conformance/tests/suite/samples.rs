//! Sample histories of a group, in the format of `docs/history.md`.
//!
//! Bad samples break one promise each; good ones look suspicious and are correct; malformed ones
//! are not histories. They are files under `fixtures/histories`, so that a person can read them and
//! pass them to any checker; the README there lists them. This module does not judge them.

/// A history that can be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The sample's name, which is also its file name.
    pub name: &'static str,
    /// The history.
    pub text: &'static str,
    /// The name of the only check that it breaks; nothing if it is correct.
    pub breaks: Option<&'static str>,
    /// The fault, or the reason why a suspicious history is correct.
    pub why: &'static str,
}

/// A text that is not a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The sample's name, which is also its file name.
    pub name: &'static str,
    /// The bytes.
    pub bytes: &'static [u8],
    /// The line at which it must be refused, from 1.
    pub line: u64,
    /// The problem with that line.
    pub why: &'static str,
}

macro_rules! bad {
    ($($name:literal breaks $check:literal: $why:literal;)*) => {
        /// Histories that each break one check.
        pub const BAD: &[Sample] = &[$(Sample {
            name: $name,
            text: include_str!(concat!("../../../fixtures/histories/bad/", $name, ".jsonl")),
            breaks: Some($check),
            why: $why,
        },)*];
    };
}

macro_rules! good {
    ($($name:literal: $why:literal;)*) => {
        /// Histories that look suspicious but break no promise.
        pub const GOOD: &[Sample] = &[$(Sample {
            name: $name,
            text: include_str!(concat!("../../../fixtures/histories/good/", $name, ".jsonl")),
            breaks: None,
            why: $why,
        },)*];
    };
}

macro_rules! malformed {
    ($($name:literal at $line:literal: $why:literal;)*) => {
        /// Texts that must be refused.
        pub const MALFORMED: &[Malformed] = &[$(Malformed {
            name: $name,
            bytes: include_bytes!(concat!("../../../fixtures/histories/malformed/", $name, ".jsonl")),
            line: $line,
            why: $why,
        },)*];
    };
}

/// Iterates over the bad and then the good samples.
pub fn all() -> impl Iterator<Item = &'static Sample> {
    BAD.iter().chain(GOOD)
}

bad! {
    "integrity-once-twice" breaks "integrity-once":
        "n1 delivers one message twice.";
    "integrity-once-after-its-replay" breaks "integrity-once":
        "A restarted node replays a message and then delivers it as new, in the last event before its end.";
    "integrity-once-by-two-groups" breaks "integrity-once":
        "A message to two groups comes once by each of them.";
    "integrity-once-after-a-leader-change" breaks "integrity-once":
        "A message that n1 delivered as a follower is doubled when it comes to lead the group.";
    "integrity-once-in-the-state-and-new" breaks "integrity-once":
        "A member that came back took over a message with the state, and delivers it as new too.";
    "integrity-sent-by-nobody" breaks "integrity-sent":
        "A message comes that nobody multicast; all deliver it.";
    "integrity-sent-though-refused" breaks "integrity-sent":
        "The message was refused for certain, and one node delivers it all the same.";
    "integrity-sent-before-it-was" breaks "integrity-sent":
        "n1 delivers a nanosecond before the message was multicast.";
    "integrity-sent-by-itself-later" breaks "integrity-sent":
        "The sender delivers its own message on a line before it is asked to send it, at the same time.";
    "integrity-sent-by-another" breaks "integrity-sent":
        "A crashed node named the wrong sender in its last event.";
    "integrity-addressee-outsider" breaks "integrity-addressee":
        "n2 is no member of g0 and delivers its message, in the last event.";
    "integrity-addressee-other-group" breaks "integrity-addressee":
        "A message to g0 comes by g1, of which the node is a member too.";
    "integrity-addressee-no-such-group" breaks "integrity-addressee":
        "A message comes by a group that was never declared.";
    "integrity-addressee-empty-group" breaks "integrity-addressee":
        "A group without members: the outside sender delivers its own message.";
    "integrity-addressee-of-another-shard" breaks "integrity-addressee":
        "A client's message for g0 is delivered by the member of another group.";
    "integrity-bytes-digest" breaks "integrity-bytes":
        "One node delivers other bytes.";
    "integrity-bytes-of-an-empty-message" breaks "integrity-bytes":
        "An empty message comes with one byte, at a node that then crashes.";
    "nulls-invisible-null" breaks "nulls-invisible":
        "The application of n1 is called for nobody's message.";
    "nulls-invisible-at-the-crash" breaks "nulls-invisible":
        "An empty name, in the last event of a node that crashed, recorded after the kill.";
    "validity-lost" breaks "validity":
        "n0 sends, and nobody ever delivers it.";
    "validity-alone" breaks "validity":
        "A group of one: its last message never comes back to it.";
    "validity-from-outside" breaks "validity":
        "The sender is no member; with views, the members that are there get nothing of it.";
    "validity-while-parted" breaks "validity":
        "The partition never heals, so no promise of liveness holds; the message before it was lost all the same.";
    "validity-after-a-leader-change" breaks "validity":
        "The leader is killed, and the next one never orders what a client had sent to the old one.";
    "validity-before-an-orderly-stop" breaks "validity":
        "n0 answered for a message that nobody delivers, and is the first to stop: the others' next views lack it, as they must.";
    "validity-before-its-own-end" breaks "validity":
        "The same without records of the stop: the views without n0 come after its end.";
    "agreement-one-lacks" breaks "agreement":
        "n0 delivers its message, n1 never does.";
    "agreement-the-last" breaks "agreement":
        "Of two messages, one node lacks the last.";
    "agreement-last-view" breaks "agreement":
        "In the last view, where nobody goes on, one of three lacks a message.";
    "agreement-first-to-stop" breaks "agreement":
        "The first that stops lacks a message that the two others delivered.";
    "agreement-half-of-the-groups" breaks "agreement":
        "A message to two groups with views reaches one of them only.";
    "agreement-after-a-leader-change" breaks "agreement":
        "A message for two groups is lost in one of them, whose leader was killed.";
    "uniform-agreement-crashed" breaks "uniform-agreement":
        "n2 delivers and crashes; the others never get it.";
    "uniform-agreement-its-own" breaks "uniform-agreement":
        "The sender delivers its own message as its last event and crashes; the others go on to the next view without it.";
    "uniform-agreement-came-back" breaks "uniform-agreement":
        "The crashed node came back and halted: what its first start delivered is missing at the other.";
    "uniform-agreement-leader-and-client" breaks "uniform-agreement":
        "The leader delivers a client's message, and both are killed; the followers never get it.";
    "sender-order-all-alike" breaks "sender-order":
        "All deliver the second message of n0 before its first.";
    "sender-order-left-out" breaks "sender-order":
        "The sender crashed; its first message is lost, its second came.";
    "sender-order-no-total-order" breaks "sender-order":
        "A group without total order still keeps each sender's order, but for its last two messages at n1.";
    "sender-order-left-out-alone" breaks "sender-order":
        "A group of one member, which crashes after the second message of an outside sender, without the first.";
    "total-order-two-orders" breaks "total-order":
        "Two nodes, two senders, two orders.";
    "total-order-crashed" breaks "total-order":
        "The last two deliveries of a node that then crashed are the wrong way round.";
    "total-order-two-starts" breaks "total-order":
        "A group of one: what was not durable is delivered again after the restart, in another order.";
    "total-order-leader-that-was-suspended" breaks "total-order":
        "A leader was suspended, and delivers in its own order what its successor had put in another.";
    "acyclic-order-two-groups" breaks "acyclic-order":
        "Two nodes in two groups deliver a message of each the other way round.";
    "acyclic-order-three-crashed" breaks "acyclic-order":
        "Three nodes of one group each deliver two of three messages, in a ring, and crash.";
    "acyclic-order-three-groups" breaks "acyclic-order":
        "Three groups of two: every pair of nodes shares one message only, and the orders make a ring.";
    "acyclic-order-two-shards" breaks "acyclic-order":
        "Two groups without a common member deliver two messages for both in different orders.";
    "acyclic-order-three-shards" breaks "acyclic-order":
        "Three groups without common members: any two share one message, and the orders make a ring.";
    "acyclic-order-child-after-a-leader-change" breaks "acyclic-order":
        "A group has another order than its parent, since a member leads it that did not know the parent's.";
    "prefix-order-crashed" breaks "prefix-order":
        "The crashed node delivered the second message and not the first.";
    "prefix-order-removed" breaks "prefix-order":
        "The node that was removed has a gap in the view that it shared.";
    "prefix-order-left" breaks "prefix-order":
        "A leaver skips a message just before it leaves.";
    "prefix-order-of-one-group" breaks "prefix-order":
        "A group with an order of its own: the crashed node has a gap in it.";
    "prefix-order-across-shards" breaks "prefix-order":
        "The crashed member of one group skipped a message that the member of another delivered before.";
    "total-order-of-one-group" breaks "total-order":
        "A group with an order of its own has two orders.";
    "view-unique-two-lists" breaks "view-unique":
        "Two nodes install view 1 with different members.";
    "view-unique-other-order" breaks "view-unique":
        "A crashed node had the first view with its members in another order.";
    "view-rising-back" breaks "view-rising":
        "n0 goes back from view 2 to view 1.";
    "view-rising-restarted" breaks "view-rising":
        "A restarted node installs the view of its first start again.";
    "view-self-removed" breaks "view-self":
        "n2 installs the view that removes it.";
    "view-self-first" breaks "view-self":
        "The first view of a group of one has no members at all.";
    "view-majority-alone" breaks "view-majority":
        "One of three goes on alone.";
    "view-majority-half" breaks "view-majority":
        "Two of four: half is no majority. The other two crashed, they did not leave.";
    "view-majority-before-the-stop" breaks "view-majority":
        "One of three goes on alone; that all three are asked to stop later does not excuse it.";
    "view-delivery-old-view" breaks "view-delivery":
        "n1 delivers in view 1 although it has installed view 2.";
    "view-delivery-before-the-first" breaks "view-delivery":
        "n1 delivers before it has installed any view.";
    "view-delivery-two-views" breaks "view-delivery":
        "The records name no view; by the order of its lines n1 delivers in the next one, as its last event before it crashes.";
    "view-same-set-two-sets" breaks "view-same-set":
        "Two nodes go from view 1 to view 2, one without the message.";
    "view-same-set-then-crashed" breaks "view-same-set":
        "The one without the message crashes as soon as it has installed the next view.";
    "removed-silent-removed" breaks "removed-silent":
        "n2 is cut off and removed, and delivers its own message in the old view, which the others never get.";
    "removed-silent-after-its-end" breaks "removed-silent":
        "n1 delivers after it has left, in the last event of the history.";
    "removed-silent-left" breaks "removed-silent":
        "A leaver delivers its own message and goes; nobody else gets it.";
    "quiescence-chatter" breaks "quiescence":
        "A second after the last message n0 posts again, and nobody sends.";
    "quiescence-just-settled" breaks "quiescence":
        "A group of one; the first count is taken 500 ms and one nanosecond after its start, the second at once after.";
    "durable-prefix-ahead" breaks "durable-prefix":
        "n1 calls two deliveries durable, and made one.";
    "durable-prefix-falls" breaks "durable-prefix":
        "What is durable shrinks.";
    "durable-prefix-of-nothing" breaks "durable-prefix":
        "The first place is durable before anything was delivered, at a node that then crashes.";
    "durable-kept-lost" breaks "durable-kept":
        "n1 comes back without what was durable, and goes on with what is new.";
    "durable-kept-the-last" breaks "durable-kept":
        "Of two durable messages the last is not replayed.";
    "durable-kept-second-restart" breaks "durable-kept":
        "The first restart is killed before it gets far; the second replays the wrong message in that place.";
    "durable-kept-hole-in-the-state" breaks "durable-kept":
        "The state that a member took over when it came back lacks the first message.";
    "liveness-after-the-heal" breaks "liveness":
        "Once the partition has healed, n0 sends, and nobody delivers it.";
    "liveness-at-the-last-fault" breaks "liveness":
        "The message is multicast in the very nanosecond of the last fault.";
    "liveness-hung" breaks "liveness":
        "n1 delivers everything and does not stop when asked.";
    "liveness-halted" breaks "liveness":
        "n1 gives up, and there was no fault.";
    "liveness-all-gave-up" breaks "liveness":
        "One of three crashes; the two others, a majority, give up.";
}

good! {
    "crashed-without-messages":
        "A crashed node owes nothing.";
    "sender-crashed":
        "The sender crashed, and its last message came nowhere.";
    "joiner-in-the-middle":
        "A joiner has nothing of the views before its first.";
    "delivered-again":
        "What was not durable is delivered again after the restart, as new.";
    "empty-messages":
        "Empty messages have no digest, and are told apart by name.";
    "no-total-order":
        "Groups with the order of senders alone: different orders, and no cycle is looked for.";
    "leaver-of-two":
        "One of two leaves; the other goes on alone. It is half, and still a majority.";
    "recorded-after-the-kill":
        "What a node delivered before it was killed is read from its pipe after.";
    "recorded-after-the-end":
        "A delivery on a line after the end, at the same time as the end.";
    "refused":
        "A message that was refused comes nowhere, and the one after it does.";
    "refused-perhaps-delivered":
        "A refusal without certainty: the message came, everywhere.";
    "refused-perhaps-lost":
        "A refusal without certainty: the message came nowhere, and a later one did.";
    "node-by-node":
        "Records grouped by node: the delivery is on a line before the multicast, and later by the clock.";
    "at-the-same-time":
        "A message is delivered in the nanosecond in which it was multicast.";
    "never-started":
        "A member that never started, and a group that nobody used.";
    "minority-halted":
        "The one that was cut off gives up; the others go on without it.";
    "removed-and-unaware":
        "n2 was removed and does not know: it stays in the old view, lacks what came after, and its own message is nobody's duty.";
    "orderly-stop":
        "All are asked to stop, and go one after the other: the last view has one member.";
    "removed-then-stopped":
        "n2 was removed and does not know: that all are asked to stop later changes nothing.";
    "removed-recorded-after-its-end":
        "Node by node: the views that removed n2 are recorded after its end, and were before it.";
    "busy-posts":
        "Posts grow in silence that is not yet 500 ms long.";
    "replays-more":
        "A restarted node replays more than was said to be durable, then goes on.";
    "killed-before-it-replayed":
        "A start that was killed before it replayed owes nothing; the next one replays it all.";
    "either-group":
        "A message to two groups comes once, by either of them.";
    "outside-sender":
        "A sender that is no member delivers nothing.";
    "took-over-the-state":
        "A member comes back, and what it takes over has what was delivered while it was down.";
    "shards-alone-and-together":
        "Two groups without a common member: only messages for both have one order in both.";
    "client-crashed-in-the-middle":
        "A client crashed in the middle of its multicasts: one came to both groups, one to none.";
    "two-that-say-they-lead":
        "A leader that was suspended says again that it leads; who leads is no promise.";
    "prefix-of-the-crashed":
        "Three nodes crash with prefixes of different length.";
    "independent-groups":
        "Two groups that share no two nodes: the orders between them differ and cannot meet.";
    "views-without-numbers":
        "Deliveries that do not say their view, and view ids that jump.";
    "restart-rises":
        "A restarted node joins a later view, and replays what it had of the earlier one.";
    "halted-after-a-crash":
        "A group of two: one crashes, the other, no majority, gives up.";
    "unknown-fields-and-events":
        "Unknown fields, an unknown event, empty lines and carriage returns.";
    "empty":
        "No records at all.";
    "cut-short":
        "The driver was stopped in the middle of a line. What nobody delivered yet is nobody's fault yet.";
    "suspended":
        "A node is suspended, resumed, and delivers late.";
    "orders-of-their-own":
        "Two groups with an order each and none together: elsewhere it would be a cycle.";
    "gap-of-another-order":
        "A node that crashed lacks a message of a group with an order of its own, and has a later one of another such group.";
    "names-with-escapes":
        "Names with escapes and letters beyond ASCII; the first message of one node is a\\b.";
}

malformed! {
    "not-json" at 2: "A line that is no JSON.";
    "not-an-object" at 1: "A line that is a list.";
    "not-utf8" at 2: "A byte that no UTF-8 text has.";
    "half-a-line-in-the-middle" at 2: "Half a line that is not the last: it is no cut, it is broken.";
    "lacks-a-field" at 2: "A start without its time.";
    "time-is-a-text" at 2: "A time in quotes.";
    "time-is-negative" at 2: "A time before the beginning.";
    "number-too-large" at 2: "A time of more than 64 bits.";
    "two-objects" at 1: "Two objects on a line.";
    "field-twice" at 1: "A field that is given twice.";
    "unknown-fault" at 3: "A fault of no known kind.";
    "unknown-end" at 3: "An end for no known reason.";
    "run-not-first" at 2: "`run` is not the first record.";
    "run-twice" at 2: "`run` comes twice.";
    "other-version" at 1: "A version that is not this one.";
    "group-twice" at 2: "A group is declared twice.";
    "member-twice" at 1: "A member is named twice.";
    "sender-twice" at 1: "A sender is named twice.";
    "view-of-no-group" at 3: "A view of a group that was not declared.";
    "durable-in-no-group" at 3: "Something durable in a group that was not declared.";
    "leader-of-no-group" at 3:
        "A leader of a group that was never declared.";
    "multicast-to-no-group" at 3: "A multicast to a group that was not declared.";
    "multicast-to-nobody" at 3: "A multicast to no group at all.";
    "multicast-to-one-group-twice" at 3: "A multicast that names a group twice.";
    "multicast-to-several-with-an-own-order" at 4: "A multicast to several groups, one of which has an order of its own.";
    "multicast-by-no-sender" at 4: "A multicast by a node that is not among the senders.";
    "multicast-twice" at 4: "A message is multicast twice.";
    "multicast-without-a-name" at 3: "A message whose name is empty.";
    "refused-but-not-multicast" at 3: "A refusal of what was never multicast.";
    "refused-twice" at 5: "A message is refused twice.";
    "refused-by-another" at 5: "A message is refused by a node that did not multicast it.";
    "refused-by-the-next-start" at 6: "A message is refused by a later start of its sender.";
    "time-falls" at 3: "The time of a node falls.";
    "time-falls-at-a-fault" at 3: "A kill earlier than the start that it follows.";
    "not-started" at 2: "A node speaks before it starts.";
    "other-inc" at 3: "A record of a start that is not the node's last.";
    "start-without-end" at 3: "A node starts again, though it neither ended nor was killed.";
    "inc-does-not-rise" at 4: "A node starts again as the same start.";
    "end-twice" at 4: "A start ends twice.";
}

const README: &str = include_str!("../../../fixtures/histories/README.md");

#[test]
fn samples_have_unique_names_and_readme_entries() {
    let names = all().map(|sample| sample.name).chain(MALFORMED.iter().map(|text| text.name));
    let mut names: Vec<&str> = names.collect();
    for name in &names {
        assert!(README.contains(&format!("| `{name}` |")), "{name}");
    }
    let count = names.len();
    assert_eq!(README.matches("\n| `").count(), count, "the README lists what is not there");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}
