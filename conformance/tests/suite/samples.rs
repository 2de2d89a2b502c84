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
    /// The name of the only check that the sample breaks; `None` if it is correct.
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
        "A message to two groups is delivered once through each of them.";
    "integrity-once-after-a-leader-change" breaks "integrity-once":
        "n1 delivers a message as a follower, and again after it becomes the leader.";
    "integrity-once-in-the-state-and-new" breaks "integrity-once":
        "A member that returned took over a message with the state, and also delivers it as new.";
    "integrity-sent-by-nobody" breaks "integrity-sent":
        "All members deliver a message that no node multicast.";
    "integrity-sent-though-refused" breaks "integrity-sent":
        "The message was definitely refused, but one node delivers it.";
    "integrity-sent-before-it-was" breaks "integrity-sent":
        "n1 delivers a nanosecond before the message was multicast.";
    "integrity-sent-by-itself-later" breaks "integrity-sent":
        "The sender delivers its own message at the time of the multicast, but on an earlier line.";
    "integrity-sent-by-another" breaks "integrity-sent":
        "A crashed node names the wrong sender in its last event.";
    "integrity-addressee-outsider" breaks "integrity-addressee":
        "n2 is not a member of g0 but delivers its message, in the last event.";
    "integrity-addressee-other-group" breaks "integrity-addressee":
        "A message to g0 is delivered through g1, of which the node is also a member.";
    "integrity-addressee-no-such-group" breaks "integrity-addressee":
        "A message is delivered through a group that the history does not declare.";
    "integrity-addressee-empty-group" breaks "integrity-addressee":
        "In a group without members, the external sender delivers its own message.";
    "integrity-addressee-of-another-shard" breaks "integrity-addressee":
        "A client's message for g0 is delivered by the member of another group.";
    "integrity-bytes-digest" breaks "integrity-bytes":
        "One node delivers different bytes.";
    "integrity-bytes-of-an-empty-message" breaks "integrity-bytes":
        "A node delivers an empty message with one byte, and then crashes.";
    "nulls-invisible-null" breaks "nulls-invisible":
        "The application of n1 is called without any message.";
    "nulls-invisible-at-the-crash" breaks "nulls-invisible":
        "A node delivers an empty name in its last event; it was killed, and the event is recorded after the kill.";
    "validity-lost" breaks "validity":
        "n0 sends, and nobody ever delivers it.";
    "validity-alone" breaks "validity":
        "In a group of one, the member never delivers its last message.";
    "validity-from-outside" breaks "validity":
        "The sender is not a member. In a group with views, no running member gets any of its messages.";
    "validity-while-parted" breaks "validity":
        "The partition never heals, so no liveness is promised, but the message was lost before it.";
    "validity-after-a-leader-change" breaks "validity":
        "The leader is killed, and its successor never orders what a client had sent to the old leader.";
    "validity-before-an-orderly-stop" breaks "validity":
        "n0 accepts a message that no node delivers, and is the first to stop. The next views of the others lack n0, as they must.";
    "validity-before-its-own-end" breaks "validity":
        "The same without records of the stop: the views without n0 come after its end.";
    "agreement-one-lacks" breaks "agreement":
        "n0 delivers its message, but n1 never does.";
    "agreement-the-last" breaks "agreement":
        "One node lacks the last of two messages.";
    "agreement-last-view" breaks "agreement":
        "In the last view, which no member leaves for another, one of three lacks a message.";
    "agreement-first-to-stop" breaks "agreement":
        "The first member that stops lacks a message that the two others delivered.";
    "agreement-half-of-the-groups" breaks "agreement":
        "A message to two groups with views reaches only one of them.";
    "agreement-after-a-leader-change" breaks "agreement":
        "A message to two groups is lost in the group whose leader was killed.";
    "uniform-agreement-crashed" breaks "uniform-agreement":
        "n2 delivers a message and crashes; the others never get it.";
    "uniform-agreement-its-own" breaks "uniform-agreement":
        "The sender delivers its own message as its last event and crashes; the others continue in the next view without it.";
    "uniform-agreement-came-back" breaks "uniform-agreement":
        "The crashed node returned and halted; the other node lacks the delivery of its first start.";
    "uniform-agreement-leader-and-client" breaks "uniform-agreement":
        "The leader delivers a client's message, and both are killed; the followers never get it.";
    "sender-order-all-alike" breaks "sender-order":
        "All members deliver the second message of n0 before its first.";
    "sender-order-left-out" breaks "sender-order":
        "The sender crashed; its first message is lost, but its second was delivered.";
    "sender-order-no-total-order" breaks "sender-order":
        "A group without total order must still keep each sender's order, but n1 swaps the last two messages.";
    "sender-order-left-out-alone" breaks "sender-order":
        "The only member of a group delivers the second message of an external sender without the first, and crashes.";
    "total-order-two-orders" breaks "total-order":
        "Two nodes deliver the messages of two senders in different orders.";
    "total-order-crashed" breaks "total-order":
        "The last two deliveries of a node that then crashes are swapped.";
    "total-order-two-starts" breaks "total-order":
        "In a group of one, messages that were not durable are delivered again after the restart, in another order.";
    "total-order-leader-that-was-suspended" breaks "total-order":
        "A suspended leader resumes and delivers in its own order, which differs from its successor's.";
    "acyclic-order-two-groups" breaks "acyclic-order":
        "Two nodes in two groups deliver one message of each group in opposite orders.";
    "acyclic-order-three-crashed" breaks "acyclic-order":
        "Three nodes of one group each deliver two of three messages, in a cycle, and crash.";
    "acyclic-order-three-groups" breaks "acyclic-order":
        "In three groups of two, every pair of nodes shares only one message, and the orders form a cycle.";
    "acyclic-order-two-shards" breaks "acyclic-order":
        "Two groups without a common member deliver two messages for both in different orders.";
    "acyclic-order-three-shards" breaks "acyclic-order":
        "Three groups without common members: any two share one message, and the orders form a cycle.";
    "acyclic-order-child-after-a-leader-change" breaks "acyclic-order":
        "A group has a different order from its parent, because its new leader did not know the parent's order.";
    "prefix-order-crashed" breaks "prefix-order":
        "The crashed node delivered the second message but not the first.";
    "prefix-order-removed" breaks "prefix-order":
        "The removed node has a gap in the view that it shared.";
    "prefix-order-left" breaks "prefix-order":
        "A leaver skips a message just before it leaves.";
    "prefix-order-of-one-group" breaks "prefix-order":
        "In a group with a separate order, the crashed node has a gap.";
    "prefix-order-across-shards" breaks "prefix-order":
        "The crashed member of one group skipped a message that a member of another group delivered before.";
    "total-order-of-one-group" breaks "total-order":
        "A group with a separate order has two different orders.";
    "view-unique-two-lists" breaks "view-unique":
        "Two nodes install view 1 with different members.";
    "view-unique-other-order" breaks "view-unique":
        "A crashed node installed the first view with its members in another order.";
    "view-unique-foreign-member" breaks "view-unique":
        "All members install a view with a node that is not a member of the group.";
    "view-unique-member-twice" breaks "view-unique":
        "All members install a view that names n0 twice.";
    "view-rising-back" breaks "view-rising":
        "n0 goes back from view 2 to view 1.";
    "view-rising-restarted" breaks "view-rising":
        "A restarted node installs the view of its first start again.";
    "view-self-removed" breaks "view-self":
        "n2 installs the view that removes it.";
    "view-self-first" breaks "view-self":
        "The first view of a group of one has no members.";
    "view-majority-alone" breaks "view-majority":
        "One of three members continues by itself.";
    "view-majority-half" breaks "view-majority":
        "Two of four are not a majority. The other two crashed; they did not leave.";
    "view-majority-before-the-stop" breaks "view-majority":
        "One of three continues by itself; a later stop of all three does not excuse it.";
    "view-delivery-old-view" breaks "view-delivery":
        "n1 delivers in view 1 although it has installed view 2.";
    "view-delivery-before-the-first" breaks "view-delivery":
        "n1 delivers before it has installed any view.";
    "view-delivery-two-views" breaks "view-delivery":
        "The records name no view. According to the order of its lines, n1 delivers in the next view, as its last event before it crashes.";
    "view-delivery-false-replay" breaks "view-delivery":
        "n1 was there from the beginning, but marks its delivery as replayed and names a view that it never installed.";
    "view-same-set-two-sets" breaks "view-same-set":
        "Two nodes go from view 1 to view 2, one of them without the message.";
    "view-same-set-then-crashed" breaks "view-same-set":
        "The node without the message crashes as soon as it has installed the next view.";
    "removed-silent-removed" breaks "removed-silent":
        "n2 is cut off and removed, and delivers its own message in the old view. The others never get it.";
    "removed-silent-after-its-end" breaks "removed-silent":
        "n1 delivers after it has left, in the last event of the history.";
    "removed-silent-left" breaks "removed-silent":
        "A leaver delivers its own message and leaves; no other member gets it.";
    "quiescence-chatter" breaks "quiescence":
        "A second after the last message n0 posts again, and nobody sends.";
    "quiescence-just-settled" breaks "quiescence":
        "In a group of one, the first count is taken 500 ms and one nanosecond after its start, and the second immediately after.";
    "durable-prefix-ahead" breaks "durable-prefix":
        "n1 reports two deliveries as durable, but made only one.";
    "durable-prefix-falls" breaks "durable-prefix":
        "The number of durable deliveries decreases.";
    "durable-prefix-of-nothing" breaks "durable-prefix":
        "The first position is durable before anything was delivered, at a node that then crashes.";
    "durable-kept-lost" breaks "durable-kept":
        "n1 returns without its durable messages, and continues with new ones.";
    "durable-kept-the-last" breaks "durable-kept":
        "The last of two durable messages is not replayed.";
    "durable-kept-second-restart" breaks "durable-kept":
        "The first restart is killed early; the second replays the wrong message in that position.";
    "durable-kept-hole-in-the-state" breaks "durable-kept":
        "The state that a returning member took over lacks the first message.";
    "liveness-after-the-heal" breaks "liveness":
        "After the partition has healed, n0 sends, but no node delivers the message.";
    "liveness-at-the-last-fault" breaks "liveness":
        "The message is multicast in the same nanosecond as the last fault.";
    "liveness-hung" breaks "liveness":
        "n1 delivers everything, but does not stop when asked.";
    "liveness-halted" breaks "liveness":
        "n1 halts although there was no fault.";
    "liveness-all-gave-up" breaks "liveness":
        "One of three crashes; the two others halt although they are a majority.";
    "liveness-stuck-in-the-old-view" breaks "liveness":
        "n2 crashes, and n0 installs the next view; n1 is a member of it, but stays in view 1.";
    "liveness-no-view-at-all" breaks "liveness":
        "n2 is a member of view 1, but never installs a view.";
    "liveness-view-keeps-the-dead" breaks "liveness":
        "n2 crashes, and the survivors install a view that still names it.";
    "liveness-view-keeps-the-leaver" breaks "liveness":
        "n2 leaves, but no later view is installed.";
    "liveness-survivor-gave-up" breaks "liveness":
        "One of five members crashes. n3 installs the view without it and then gives up.";
}

good! {
    "crashed-without-messages":
        "A crashed node need not deliver anything.";
    "sender-crashed":
        "The sender crashed, and its last message was not delivered anywhere.";
    "joiner-in-the-middle":
        "A joiner has no messages of the views before its first.";
    "delivered-again":
        "Messages that were not durable are delivered again after the restart, as new.";
    "empty-messages":
        "Empty messages have no digest, and are distinguished by name.";
    "no-total-order":
        "Groups with only the order of each sender: the orders differ, and cycles are allowed.";
    "leaver-of-two":
        "One of two members leaves, and the other continues by itself. It is half, which is still a majority after a leave.";
    "recorded-after-the-kill":
        "Deliveries of a node before it was killed are read from its pipe afterwards.";
    "recorded-after-the-end":
        "A delivery is on a line after the end, with the same time as the end.";
    "refused":
        "A refused message is not delivered anywhere, but the next one is.";
    "refused-perhaps-delivered":
        "The refusal was uncertain, and the message was delivered everywhere.";
    "refused-perhaps-lost":
        "The refusal was uncertain; the message was delivered nowhere, but a later one was.";
    "node-by-node":
        "Records are grouped by node: the delivery is on a line before the multicast, but later by the clock.";
    "at-the-same-time":
        "A message is delivered in the same nanosecond in which it was multicast.";
    "never-started":
        "A member never started, and a group was used by no node.";
    "minority-halted":
        "The partitioned member halts; the others continue without it.";
    "removed-and-unaware":
        "n2 was removed but does not know it. It stays in the old view and lacks all later messages. No member must deliver its own message.";
    "orderly-stop":
        "All members are asked to stop, and leave one after another: the last view has one member.";
    "removed-then-stopped":
        "n2 was removed but does not know it; a later stop of all members changes nothing.";
    "removed-recorded-after-its-end":
        "Records are grouped by node: the views that removed n2 are recorded after its end, but happened before it.";
    "busy-posts":
        "Posts grow during a silence that has not lasted 500 ms.";
    "replays-more":
        "A restarted node replays more than was reported as durable, then continues.";
    "killed-before-it-replayed":
        "A start that was killed before it replayed need not replay anything; the next one replays everything.";
    "either-group":
        "A message to two groups is delivered once, through either of them.";
    "outside-sender":
        "A sender that is not a member delivers nothing.";
    "took-over-the-state":
        "A member returns, and the state that it takes over contains the deliveries made while it was down.";
    "shards-alone-and-together":
        "Two groups without a common member: only messages to both have one order in both.";
    "client-crashed-in-the-middle":
        "A client crashed during its multicasts: one reached both groups, and one reached none.";
    "two-that-say-they-lead":
        "A leader that was suspended reports again that it leads; there is no promise about leadership.";
    "prefix-of-the-crashed":
        "Three nodes crash with prefixes of different lengths.";
    "independent-groups":
        "Two groups that do not share two nodes: the orders between them differ, but cannot conflict.";
    "views-without-numbers":
        "Deliveries do not name their view, and view ids are not consecutive.";
    "restart-rises":
        "A restarted node joins a later view, and replays its deliveries of the earlier one.";
    "halted-after-a-crash":
        "In a group of two, one member crashes, and the other halts because it has no majority.";
    "minority-in-the-old-view":
        "Two of three members crash. The last one does not install a view that one of them had installed.";
    "removed-gives-up-after-a-crash":
        "One of five members crashes, and the next view excludes another one too, which then gives up.";
    "stopped-before-the-view":
        "All members are asked to stop right after one of them has installed a view.";
    "unknown-fields-and-events":
        "There are unknown fields, an unknown event, empty lines and carriage returns.";
    "empty":
        "There are no records.";
    "cut-short":
        "The driver was stopped in the middle of a line. A message that no node has delivered yet breaks no promise yet.";
    "suspended":
        "A node is suspended and resumed, and delivers late.";
    "orders-of-their-own":
        "Two groups have separate orders and no common one; with a common order there would be a cycle.";
    "gap-of-another-order":
        "A crashed node lacks a message of a group with a separate order, and has a later one of another such group.";
    "names-with-escapes":
        "Names have escapes and letters beyond ASCII; the first message of one node is a\\b.";
}

malformed! {
    "not-json" at 2: "A line is not JSON.";
    "not-an-object" at 1: "A line is a list.";
    "not-utf8" at 2: "A byte is not valid UTF-8.";
    "half-a-line-in-the-middle" at 2: "Half a line is not at the end, so it is an error and not a cut.";
    "lacks-a-field" at 2: "A start has no time.";
    "time-is-a-text" at 2: "A time is in quotes.";
    "time-is-negative" at 2: "A time is negative.";
    "number-too-large" at 2: "A time has more than 64 bits.";
    "two-objects" at 1: "There are two objects on a line.";
    "field-twice" at 1: "A field appears twice.";
    "unknown-fault" at 3: "A fault has an unknown kind.";
    "unknown-end" at 3: "An end has an unknown reason.";
    "run-not-first" at 2: "`run` is not the first record.";
    "run-twice" at 2: "There are two `run` records.";
    "other-version" at 1: "The version is not the supported one.";
    "group-twice" at 2: "A group is declared twice.";
    "member-twice" at 1: "A member is named twice.";
    "sender-twice" at 1: "A sender is named twice.";
    "view-of-no-group" at 3: "A view belongs to a group that was not declared.";
    "durable-in-no-group" at 3: "A durability record belongs to a group that was not declared.";
    "leader-of-no-group" at 3:
        "A leader belongs to a group that was not declared.";
    "multicast-to-no-group" at 3: "A multicast is addressed to a group that was not declared.";
    "multicast-to-nobody" at 3: "A multicast has no destination group.";
    "multicast-to-one-group-twice" at 3: "A multicast names a group twice.";
    "multicast-to-several-with-an-own-order" at 4: "A multicast is addressed to several groups, one of which has a separate order.";
    "multicast-by-no-sender" at 4: "A node that is not among the senders multicasts.";
    "multicast-twice" at 4: "A message is multicast twice.";
    "multicast-without-a-name" at 3: "A message has an empty name.";
    "refused-but-not-multicast" at 3: "A message is refused that was never multicast.";
    "refused-twice" at 5: "A message is refused twice.";
    "refused-by-another" at 5: "A message is refused by a node that did not multicast it.";
    "refused-by-the-next-start" at 6: "A message is refused by a later incarnation of its sender.";
    "time-falls" at 3: "The time of a node decreases.";
    "time-falls-at-a-fault" at 3: "A kill is earlier than the start before it.";
    "not-started" at 2: "A node has a record before it starts.";
    "other-inc" at 3: "A record belongs to an incarnation that is not the node's latest.";
    "start-without-end" at 3: "A node starts again although it neither ended nor was killed.";
    "inc-does-not-rise" at 4: "A node starts again with the same incarnation.";
    "end-twice" at 4: "An incarnation ends twice.";
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
