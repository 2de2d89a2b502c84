//! The mutants, and the mutant of a run.

use crate::protocol::Init;

/// The description of a mutant.
struct About {
    mutant: Mutant,
    name: &'static str,
    /// The check that must name it, and a second one if the defect truly breaks both.
    checks: &'static str,
    /// A scenario in which the defect shows.
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
        "a message is accepted, and no node delivers it";
    LoseThousandth, "lose-thousandth", "validity", "long-stream", "any",
        "every thousandth message of a sender is accepted, and no node delivers it";
    LoseKibibyte, "lose-kibibyte", "agreement", "boundary-sizes", "any",
        "one node does not deliver messages of exactly 1,024 bytes";
    LoseBeforeStop, "lose-before-stop", "validity", "all-senders", "any",
        "a message is accepted, and no node delivers it; when all stop, the others install \
         views without its sender";
    Swap, "swap", "total-order", "all-senders", "any",
        "one node swaps two messages of two senders";
    SwapSender, "swap-sender", "sender-order", "all-senders", "any",
        "all nodes swap two messages of one sender";
    Duplicate, "duplicate", "integrity-once", "all-senders", "any",
        "one node delivers a message twice";
    Corrupt, "corrupt", "integrity-bytes", "all-senders", "any",
        "one node delivers a message with a wrong last byte";
    Invent, "invent", "integrity-sent", "all-senders", "any",
        "one node delivers a message that no node sent";
    WrongSender, "wrong-sender", "integrity-sent", "all-senders", "any",
        "one node names itself as the sender of another node's message";
    WrongAddressee, "wrong-addressee", "integrity-addressee", "overlapping-groups", "any",
        "nodes deliver messages of groups that they are not members of";
    ReorderAcrossGroups, "reorder-across-groups", "acyclic-order", "across-groups", "any",
        "one node swaps two messages of different groups, and keeps the order within each group";
    LeakNull, "leak-null", "nulls-invisible", "all-senders", "any",
        "one node calls its application without a message";
    DeliverEarly, "deliver-early", "uniform-agreement", "restart", "killed",
        "the killed node delivered its own message before sending it";
    GapBeforeCrash, "gap-before-crash", "prefix-order", "kill-receiver", "killed",
        "the killed node left out a message";
    LoseOnRestart, "lose-on-restart", "durable-kept", "restart", "any",
        "a restarted node has forgotten its last deliveries";
    ReorderOnRestart, "reorder-on-restart", "durable-kept total-order", "restart", "any",
        "a restarted node replays a message before earlier deliveries";
    DurableAhead, "durable-ahead", "durable-prefix", "all-senders", "any",
        "one node reports deliveries durable that it has not made";
    ViewMismatch, "view-mismatch", "view-unique", "all-senders", "any",
        "one node has a different list of members for the same view";
    ViewBack, "view-back", "view-rising", "restart", "any",
        "a restarted node installs its first view twice";
    ViewWithoutSelf, "view-without-self", "view-self", "all-senders", "any",
        "one node installs views that lack it";
    ViewMinority, "view-minority", "view-majority", "kill-receiver", "any",
        "after a crash only one node continues";
    LateView, "late-view", "view-delivery", "kill-receiver", "survivor",
        "one node delivers the first message of a view before it installs it";
    DifferentSet, "different-set", "view-same-set", "kill-receiver", "survivor",
        "one survivor left out a message of the previous view";
    DeliverAfterLeaving, "deliver-after-leaving", "removed-silent", "leave", "leaver",
        "a leaving node delivered its own message, which was never sent";
    DeliverPending, "deliver-pending", "removed-silent", "stop-until-removed", "any",
        "a removed node delivers its own unsent messages";
    ForgetAtLeave, "forget-at-leave", "validity", "leave", "leaver",
        "a leaving node accepted messages and never sent them";
    NoAnswer, "no-answer", "liveness", "all-senders", "any",
        "one node never answers one of its multicasts";
    DeliverAlone, "deliver-alone", "uniform-agreement", "kill-alone-1", "killed",
        "from its 33rd message on, one node delivers its own messages before sending them";
    LoseAfterView, "lose-after-view", "agreement", "join", "any",
        "one node loses the first message of its second view";
    SwapAfterView, "swap-after-view", "total-order", "join", "any",
        "one node swaps the first two messages of a later view";
    DuplicateAfterView, "duplicate-after-view", "integrity-once", "kill-receiver", "survivor",
        "one node delivers the last message of a view again in the next one";
    LoseAfterPause, "lose-after-pause", "agreement", "slow-consumer", "any",
        "one node loses the message after a slow delivery";
    TruncateLarge, "truncate-large", "integrity-bytes", "large-messages", "any",
        "one node truncates messages to 8 KiB";
    CorruptHuge, "corrupt-huge", "integrity-bytes", "huge-messages", "any",
        "one node corrupts the last byte of messages above 1 MiB";
    LoseEmpty, "lose-empty", "agreement", "empty-messages", "any",
        "one node does not deliver empty messages";
    LoseAtWrap, "lose-at-wrap", "agreement", "all-senders", "any",
        "one node loses its 256th message";
    SwapAtWindow, "swap-at-window", "sender-order", "all-senders", "any",
        "a sender's 65th message is sent after its 66th";
    JoinLate, "join-late", "agreement", "join", "any",
        "a node that joins loses the first three messages";
    LoseSecondStart, "lose-second-start", "agreement", "restart", "any",
        "one node mistakes messages of a restarted sender for old ones";
    ForgetAll, "forget-all", "durable-kept", "restart", "any",
        "a restarted node replays nothing";
    ReplayAsNew, "replay-as-new", "durable-kept view-delivery", "restart", "any",
        "a restarted node delivers its old messages again as new";
    DurableOfAll, "durable-of-all", "durable-prefix", "overlapping-groups", "any",
        "one node counts the deliveries of all groups as durable in each";
    ViewOrder, "view-order", "view-unique", "join", "any",
        "one node lists the members of later views in a different order";
    OldView, "old-view", "view-delivery", "kill-receiver", "survivor",
        "one node delivers the first message of a view in the previous one";
    TwiceInTwoGroups, "twice-in-two-groups", "integrity-once", "across-groups", "any",
        "a member of two groups delivers a message for both twice";
    SwapOutsider, "swap-outsider", "total-order", "outside-sender", "member",
        "one node swaps a message of a sender that is not a member with the next";
    RefuseAndSend, "refuse-and-send", "integrity-sent", "all-senders", "any",
        "one node refuses a message but sends it";
    IgnoreLeave, "ignore-leave", "liveness", "leave", "leaver",
        "a node does not leave when it is asked to";
    Chatter, "chatter", "quiescence", "quiet", "any",
        "nodes post while no node sends";
    Stall, "stall", "liveness", "kill-receiver", "any",
        "once a node is gone, nothing more is delivered";
    Hang, "hang", "liveness", "all-senders", "any",
        "one node does not stop when it is asked to";
    GiveUp, "give-up", "liveness", "all-senders", "any",
        "one node halts without cause";
    ReorderAfterCrash, "reorder-after-crash", "acyclic-order", "across-groups-kill", "survivor",
        "after a crash, one node swaps two messages of different groups";
    LoseClientAgain, "lose-client-again", "agreement", "outside-sender-kill", "member",
        "one node mistakes messages of a returning client for old ones";
    LoseOnSecondRestart, "lose-on-second-restart", "durable-kept", "restart-all-again", "any",
        "after its second restart a node has forgotten its last deliveries";
    DurableUnsynced, "durable-unsynced", "durable-kept", "power-loss-1", "any",
        "one node reports deliveries durable that are written but not synced";
    IgnoreFullDisk, "ignore-full-disk", "durable-kept", "full-disk", "any",
        "one node reports deliveries durable that its full disk rejected";
    LoseFromClient, "lose-from-client", "validity", "shards", "client",
        "a client's message is accepted, and no node delivers it";
    LoseWithLeader, "lose-with-leader", "uniform-agreement", "shards-kill-leader", "killed",
        "only the leader delivers a message, and is then killed";
    LoseInGroup, "lose-in-group", "agreement", "shards-kill-leader", "killed",
        "after a change of leader, a group lacks a message that another group delivers";
    DoubleAfterLeaderChange, "double-after-leader-change", "integrity-once", "shards-kill-leader",
        "killed",
        "after a change of leader, a group delivers its last message again";
    GapBeforeLeaderCrash, "gap-before-leader-crash", "prefix-order", "shards-kill-leader",
        "killed",
        "the killed leader left out a message";
    WrongGroup, "wrong-group", "integrity-addressee", "shards-mixed", "member",
        "the members of a group deliver a message addressed to another group";
    OrderDifferently, "order-differently", "acyclic-order", "shards", "member",
        "two groups deliver their two common messages in opposite orders";
    OrderInARing, "order-in-a-ring", "acyclic-order", "shards", "member",
        "each two of three groups share one message, and their orders form a ring";
    StateHole, "state-hole", "durable-kept", "shards-restart", "any",
        "the state that a returning member takes over lacks a message that it had delivered";
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
