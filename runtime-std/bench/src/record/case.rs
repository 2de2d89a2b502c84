//! What is run for a claim. Equal cases are one run.

use crate::blocks::figures::Completions;
pub(super) use crate::options::Variant;

/// A machine of the papers, by the name of its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Machine {
    /// Spindle's sixteen.
    Spindle,
    /// The same, with our core in place of Derecho.
    SpindleCore,
    /// RDMC's sixteen.
    Fractus,
    /// Of the Lawrence Livermore National Laboratory.
    Sierra,
    /// Of the University of Texas.
    Stampede,
    /// Of EmuLab, with a slow network between racks.
    Apt,
}

impl Machine {
    /// As its profile is named.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Spindle => "spindle",
            Self::SpindleCore => "spindle-core",
            Self::Fractus => "fractus",
            Self::Sierra => "sierra",
            Self::Stampede => "stampede",
            Self::Apt => "apt",
        }
    }
}

/// Anything that is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Case {
    /// Small messages in order.
    Sending(Sending),
    /// Large messages in blocks.
    Transfer(Transfer),
    /// A storage layer's writes to three replicas of fifteen, all by one algorithm (RDMC Fig. 9).
    Storage(Way),
}

/// Which members send, or wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    All,
    Half,
    One,
}

impl Who {
    /// How many of so many.
    pub(super) const fn of(self, nodes: u16) -> u16 {
        match self {
            Self::All => nodes,
            Self::Half => nodes.div_ceil(2),
            Self::One => 1,
        }
    }
}

/// For how long a sender waits after each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wait {
    /// Not at all.
    No,
    /// So many nanoseconds.
    Ns(u64),
    /// For ever: it declares itself a sender, and sends nothing.
    ForEver,
}

/// Small messages, sent continuously (Spindle IV).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sending {
    pub(super) variant: Variant,
    /// Sends wait until so many messages are ready: what III-A tried and left.
    pub(super) fixed_batch: Option<u16>,
    pub(super) nodes: u16,
    pub(super) senders: Who,
    pub(super) bytes: u32,
    pub(super) window: u32,
    /// Subgroups, each of all nodes.
    pub(super) subgroups: u16,
    /// Whether all subgroups send; otherwise the first alone.
    pub(super) all_active: bool,
    pub(super) wait: Wait,
    /// Which senders wait.
    pub(super) waiting: Who,
    /// Time that the application's upcall takes.
    pub(super) upcall_ns: u64,
    /// Whether the application copies messages into slots and out of them.
    pub(super) copies: bool,
}

impl Sending {
    /// The usual run: 10 KB, a window of 100, one subgroup, everyone sends.
    pub(super) const fn new(variant: Variant, nodes: u16) -> Self {
        Self {
            variant,
            fixed_batch: None,
            nodes,
            senders: Who::All,
            bytes: 10_240,
            window: 100,
            subgroups: 1,
            all_active: false,
            wait: Wait::No,
            waiting: Who::One,
            upcall_ns: 0,
            copies: false,
        }
    }

    /// The same with other senders.
    pub(super) const fn by(self, senders: Who) -> Self {
        Self { senders, ..self }
    }

    /// The same with sends that wait until so many messages are ready.
    pub(super) const fn in_batches_of(self, messages: u16) -> Self {
        Self { fixed_batch: Some(messages), ..self }
    }

    /// The same in so many subgroups, of which the first sends.
    pub(super) const fn idle(self, subgroups: u16) -> Self {
        Self { subgroups, ..self }
    }

    /// The same where some wait.
    pub(super) const fn waits(self, wait: Wait, waiting: Who) -> Self {
        Self { wait, waiting, ..self }
    }
}

/// How blocks go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    Sequential,
    Chain,
    Tree,
    Pipeline,
}

impl Way {
    /// As our core names it.
    pub(super) const fn algorithm(self) -> tramontane_core::rdmc::Algorithm {
        use tramontane_core::rdmc::Algorithm;
        match self {
            Self::Sequential => Algorithm::Sequential,
            Self::Chain => Algorithm::Chain,
            Self::Tree => Algorithm::Tree,
            Self::Pipeline => Algorithm::Pipeline,
        }
    }
}

/// Messages in blocks (RDMC).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Transfer {
    pub(super) machine: Machine,
    pub(super) algorithm: Way,
    pub(super) nodes: usize,
    pub(super) bytes: usize,
    pub(super) block_bytes: usize,
    /// Messages of each group, one after the other.
    pub(super) messages: usize,
    /// Groups of the same members, each with another root.
    pub(super) groups: usize,
    /// What blocks take on one link, in percent of the usual.
    pub(super) slow_percent: u64,
    /// For how many blocks' time one member stands still in the middle; on Stampede, whether the
    /// relay of Table 1 is away for 100 us.
    pub(super) pause_blocks: u64,
    /// Whether only ports take time, as in the paper's analysis (4.5).
    pub(super) ports_alone: bool,
    pub(super) notice: Completions,
    /// Whether the card relays by itself.
    pub(super) offloaded: bool,
}

impl Transfer {
    /// One message in blocks of 1 MiB, from one root.
    pub(super) const fn new(machine: Machine, algorithm: Way, nodes: usize, bytes: usize) -> Self {
        Self {
            machine,
            algorithm,
            nodes,
            bytes,
            block_bytes: 1 << 20,
            messages: 1,
            groups: 1,
            slow_percent: 100,
            pause_blocks: 0,
            ports_alone: false,
            notice: Completions::Hybrid,
            offloaded: false,
        }
    }
}

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Figure {
    /// Bytes delivered in a second at the mean member.
    BytesPerSecond,
    /// Messages delivered in a second at the mean member.
    MessagesPerSecond,
    /// From commit to delivery, at the mean, in microseconds; of a transfer from its send to the
    /// last completion.
    LatencyUs,
    /// Updates handed to the card for all peers, at a member, for each message of a sender.
    Puts,
    /// Time of posting at a member, for each message of a sender, in microseconds.
    PostingUs,
    /// Posting's share of the polling thread's time.
    PostingShare,
    /// The share of the run that a sender waits for a free slot.
    BlockedShare,
    SendBatch,
    ReceiveBatch,
    DeliveryBatch,
    /// The share of send batches of fewer than 5.
    SmallSendBatches,
    /// The share of delivery batches that are multiples of the senders.
    WholeDeliveryBatches,
    /// The active subgroup's share of the polling thread's time.
    ActiveShare,
    /// Receive predicates that sent nulls at a waiting sender, and at one that does not wait, for
    /// each message of a sender.
    WaitingNulls,
    OtherNulls,
    /// From one delivery to the next, at the mean of a sender's messages, in microseconds.
    BetweenUs,
    /// From the first receiver's completion to the last's, in microseconds.
    SkewUs,
    /// The busy share of a receiver's processor.
    ProcessorShare,
    /// What the farthest member's time is made of, in microseconds (RDMC Table 1).
    RemoteSetupUs,
    RemoteBlocksUs,
    LocalSetupUs,
    BlocksUs,
    WaitingUs,
    CopyUs,
    /// How long the root waits before a send, in microseconds: in most steps, and in the worst.
    UsualWaitUs,
    WorstWaitUs,
}
