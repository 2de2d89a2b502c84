//! The mutants, and the mutant of a run.

use crate::protocol::Init;

/// The description of a mutant.
struct About {
    mutant: Mutant,
    name: &'static str,
    /// The check that must name it, and a second one if the defect truly breaks both.
    checks: &'static str,
    /// A scenario in which it shows.
    scenario: &'static str,
    /// The node that must be wrong in that scenario: any, the killed one, a survivor, the one that
    /// leaves, a member, or a client.
    at: &'static str,
    what: &'static str,
}

macro_rules! mutants {
    ($(
        $id:ident, $name:literal, $checks:literal, $scenario:literal, $at:literal, $what:literal;
    )*) => {
        /// The mutants by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mutant {
            $(#[doc = $what] $id,)*
        }

        const ALL: &[About] = &[$(About {
            mutant: Mutant::$id,
            name: $name,
            checks: $checks,
            scenario: $scenario,
            at: $at,
            what: $what,
        },)*];
    };
}

mutants! {
    Drop, "drop", "agreement", "all-senders", "any",
        "one node does not deliver one message";
    DropEverywhere, "drop-everywhere", "validity", "all-senders", "any",
        "a message is taken and delivered by nobody";
    LoseThousandth, "lose-thousandth", "validity", "long-stream", "any",
        "each thousandth message of a sender is taken and delivered by nobody";
    LoseKibibyte, "lose-kibibyte", "agreement", "boundary-sizes", "any",
        "one node does not deliver messages of exactly 1,024 bytes";
    LoseBeforeStop, "lose-before-stop", "validity", "all-senders", "any",
        "a message is taken and delivered by nobody, and when all stop, the others install views \
         without its sender";
    Swap, "swap", "total-order", "all-senders", "any",
        "one node delivers two messages of two senders in the other order";
    SwapSender, "swap-sender", "sender-order", "all-senders", "any",
        "all nodes deliver two messages of one sender in the other order";
    Duplicate, "duplicate", "integrity-once", "all-senders", "any",
        "one node delivers a message twice";
    Corrupt, "corrupt", "integrity-bytes", "all-senders", "any",
        "one node delivers a message with another last byte";
    Invent, "invent", "integrity-sent", "all-senders", "any",
        "one node delivers a message that nobody sent";
    WrongSender, "wrong-sender", "integrity-sent", "all-senders", "any",
        "one node names itself as the sender of someone else's message";
    WrongAddressee, "wrong-addressee", "integrity-addressee", "overlapping-groups", "any",
        "nodes deliver the messages of groups of which they are no members";
    ReorderAcrossGroups, "reorder-across-groups", "acyclic-order", "across-groups", "any",
        "one node delivers two messages of two groups in the other order, and each group's in its right one";
    LeakNull, "leak-null", "nulls-invisible", "all-senders", "any",
        "one node calls its application for nothing";
    DeliverEarly, "deliver-early", "uniform-agreement", "restart", "killed",
        "the node that is killed delivered a message of its own before it got out";
    GapBeforeCrash, "gap-before-crash", "prefix-order", "kill-receiver", "killed",
        "the node that is killed left out a message";
    LoseOnRestart, "lose-on-restart", "durable-kept", "restart", "any",
        "a restarted node has forgotten the last that it delivered";
    ReorderOnRestart, "reorder-on-restart", "durable-kept total-order", "restart", "any",
        "a restarted node replays a message before others that it delivered earlier";
    DurableAhead, "durable-ahead", "durable-prefix", "all-senders", "any",
        "one node says durable of what it has not delivered";
    ViewMismatch, "view-mismatch", "view-unique", "all-senders", "any",
        "one node has another list of members for the same view";
    ViewBack, "view-back", "view-rising", "restart", "any",
        "a restarted node installs its first view twice";
    ViewWithoutSelf, "view-without-self", "view-self", "all-senders", "any",
        "one node installs views that lack it";
    ViewMinority, "view-minority", "view-majority", "kill-receiver", "any",
        "after a crash one node alone goes on";
    LateView, "late-view", "view-delivery", "kill-receiver", "survivor",
        "one node delivers the first message of a view before it installs it";
    DifferentSet, "different-set", "view-same-set", "kill-receiver", "survivor",
        "one node that survives left out a message of the view that ended";
    DeliverAfterLeaving, "deliver-after-leaving", "removed-silent", "leave", "leaver",
        "a node that leaves delivered a message of its own that never got out";
    DeliverPending, "deliver-pending", "removed-silent", "stop-until-removed", "any",
        "a removed node delivers its own messages that had not got out";
    ForgetAtLeave, "forget-at-leave", "validity", "leave", "leaver",
        "a node that leaves took messages that it never sent";
    NoAnswer, "no-answer", "liveness", "all-senders", "any",
        "one node never answers one multicast";
    DeliverAlone, "deliver-alone", "uniform-agreement", "kill-alone-1", "killed",
        "from its 33rd message on, one node delivers its own before it sends them";
    LoseAfterView, "lose-after-view", "agreement", "join", "any",
        "one node loses the first message of its second view";
    SwapAfterView, "swap-after-view", "total-order", "join", "any",
        "one node delivers the first two messages of a later view in the other order";
    DuplicateAfterView, "duplicate-after-view", "integrity-once", "kill-receiver", "survivor",
        "one node delivers the last message of a view again in the next";
    LoseAfterPause, "lose-after-pause", "agreement", "slow-consumer", "any",
        "one node loses the message after a delivery that took long";
    TruncateLarge, "truncate-large", "integrity-bytes", "large-messages", "any",
        "one node cuts messages at 8 KiB";
    CorruptHuge, "corrupt-huge", "integrity-bytes", "huge-messages", "any",
        "one node spoils the last byte of messages of more than a MiB";
    LoseEmpty, "lose-empty", "agreement", "empty-messages", "any",
        "one node does not deliver empty messages";
    LoseAtWrap, "lose-at-wrap", "agreement", "all-senders", "any",
        "one node loses its 256th message";
    SwapAtWindow, "swap-at-window", "sender-order", "all-senders", "any",
        "a sender's 65th message gets out after its 66th";
    JoinLate, "join-late", "agreement", "join", "any",
        "a node that joins loses the first three messages";
    LoseSecondStart, "lose-second-start", "agreement", "restart", "any",
        "one node takes the messages of a restarted sender for old ones";
    ForgetAll, "forget-all", "durable-kept", "restart", "any",
        "a restarted node replays nothing";
    ReplayAsNew, "replay-as-new", "durable-kept view-delivery", "restart", "any",
        "a restarted node delivers again what it had, as if it were new";
    DurableOfAll, "durable-of-all", "durable-prefix", "overlapping-groups", "any",
        "one node counts the deliveries of all groups as durable in each";
    ViewOrder, "view-order", "view-unique", "join", "any",
        "one node lists the members of later views in another order";
    OldView, "old-view", "view-delivery", "kill-receiver", "survivor",
        "one node delivers the first message of a view as one of the view before";
    TwiceInTwoGroups, "twice-in-two-groups", "integrity-once", "across-groups", "any",
        "a member of two groups delivers a message for both twice";
    SwapOutsider, "swap-outsider", "total-order", "outside-sender", "member",
        "one node delivers a message of a sender that is no member after the next";
    RefuseAndSend, "refuse-and-send", "integrity-sent", "all-senders", "any",
        "one node refuses a message and sends it";
    IgnoreLeave, "ignore-leave", "liveness", "leave", "leaver",
        "a node does not leave when it is asked to";
    Chatter, "chatter", "quiescence", "quiet", "any",
        "nodes post while nobody sends";
    Stall, "stall", "liveness", "kill-receiver", "any",
        "once a node is gone, nothing more is delivered";
    Hang, "hang", "liveness", "all-senders", "any",
        "one node does not stop when it is asked to";
    GiveUp, "give-up", "liveness", "all-senders", "any",
        "one node halts without cause";
    ReorderAfterCrash, "reorder-after-crash", "acyclic-order", "across-groups-kill", "survivor",
        "after a crash, one node delivers two messages of two groups in the other order";
    LoseClientAgain, "lose-client-again", "agreement", "outside-sender-kill", "member",
        "one node takes the messages of a client that came back for old ones";
    LoseOnSecondRestart, "lose-on-second-restart", "durable-kept", "restart-all-again", "any",
        "at its second restart a node has forgotten the last that it delivered";
    DurableUnsynced, "durable-unsynced", "durable-kept", "power-loss-1", "any",
        "one node says durable of what it has written and not synced";
    IgnoreFullDisk, "ignore-full-disk", "durable-kept", "full-disk", "any",
        "one node says durable of what its full disk did not take";
    LoseFromClient, "lose-from-client", "validity", "shards", "client",
        "a client's message is taken and delivered by nobody";
    LoseWithLeader, "lose-with-leader", "uniform-agreement", "shards-kill-leader", "killed",
        "a message is delivered by the leader alone, which is killed then";
    LoseInGroup, "lose-in-group", "agreement", "shards-kill-leader", "killed",
        "after a change of its leader, a group lacks a message that another group delivers";
    DoubleAfterLeaderChange, "double-after-leader-change", "integrity-once", "shards-kill-leader",
        "killed",
        "after a change of its leader, a group delivers its last message again";
    GapBeforeLeaderCrash, "gap-before-leader-crash", "prefix-order", "shards-kill-leader",
        "killed",
        "the leader that is killed left out a message";
    WrongGroup, "wrong-group", "integrity-addressee", "shards-mixed", "member",
        "the members of a group deliver a message that is for another group";
    OrderDifferently, "order-differently", "acyclic-order", "shards", "member",
        "a group delivers two messages in the other order than another group that both are for";
    OrderInARing, "order-in-a-ring", "acyclic-order", "shards", "member",
        "the orders of three groups, of which any two share one message, make a ring";
    StateHole, "state-hole", "durable-kept", "shards-restart", "any",
        "what a member takes over when it comes back lacks a message that it had delivered";
}

impl std::str::FromStr for Mutant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = ALL.iter().find(|about| about.name == text);
        found
            .map(|about| about.mutant)
            .ok_or_else(|| "--list-mutants names those that there are".to_owned())
    }
}

/// Returns one line per mutant, separated by tabs: the name, the check that must name it, a
/// scenario in which it shows, the node that must be wrong there, and what is wrong.
pub fn list() -> String {
    let line = |About { name, checks, scenario, at, what, .. }: &About| {
        format!("{name}\t{checks}\t{scenario}\t{at}\t{what}\n")
    };
    ALL.iter().map(line).collect()
}

/// The defect of this run.
#[derive(Clone, Debug)]
pub struct Mutation {
    pub(super) mutant: Mutant,
    /// The node with the defect.
    pub(super) at: Option<String>,
}

impl Mutation {
    /// Creates the mutation from the command line's arguments.
    pub fn new(mutant: Mutant, at: Option<String>) -> Self {
        Self { mutant, at }
    }

    /// Selects the last node if none was named.
    pub fn settle(self, init: &Init) -> Self {
        let last = || init.nodes.last().map(|node| node.node.clone());
        Self { mutant: self.mutant, at: self.at.or_else(last) }
    }

    /// Returns the same mutation as arguments for the sequencer's command line.
    pub fn arguments(&self) -> Vec<String> {
        let at = self.at.clone().unwrap_or_default();
        let name =
            ALL.iter().find(|about| about.mutant == self.mutant).map_or("", |about| about.name);
        vec![format!("--mutant={name}"), format!("--at={at}")]
    }
}
