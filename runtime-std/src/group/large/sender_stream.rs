//! One sender's large messages in one subgroup and view: a block group with the sender as its root.

use std::sync::Arc;

use tramontane_core::fabric::{Area, BlockEvent, Channel, LossCause, Region};
use tramontane_core::ids::{Rank, SenderRank, SubgroupId};
use tramontane_core::rdmc::transfer::{Cause, Failure, OpenError, Outcome};

use super::failure::LargeFailure;
use super::inbox::{Inbox, Receiving, Refusal};
use super::outbox::Outbox;
use super::pool::Pool;
use crate::block_transfer::options::GroupOptions;
use crate::block_transfer::transfer::{Transfer, TransferSetup, TransferView};
use crate::fabric::AnyFabric;

/// This member's side of a stream, which holds the memory for the stream's messages.
pub(super) enum StreamEnd {
    /// This node's outbox with this index.
    Own(usize),
    Of(Inbox),
}

impl StreamEnd {
    /// Returns the area for first blocks; the root posts no receive.
    pub(super) fn staging(&self) -> Area {
        match self {
            Self::Own(_) => Area { region: Region::ROW, offset: 0 },
            Self::Of(inbox) => inbox.staging(),
        }
    }
}

/// The stream of one sender.
pub(super) struct SenderStream {
    pub(super) subgroup: SubgroupId,
    pub(super) sender: SenderRank,
    /// The sender's rank in the view.
    pub(super) rank: Rank,
    pub(super) end: StreamEnd,
    transfer: Transfer,
    /// The number of messages that were reported to the node.
    told: u64,
    /// Whether the end of the stream has been reported.
    is_explained: bool,
}

/// The results of a step of a stream.
#[derive(Debug, Default)]
pub(super) struct Stepped {
    pub(super) is_busy: bool,
    /// Whether a message is in flight.
    pub(super) is_moving: bool,
    /// The number of the sender's messages that have arrived. Set when it has risen.
    pub(super) arrived: Option<u64>,
    /// A member that can no longer send to, or receive from, this one.
    pub(super) lost: Option<Rank>,
    /// A member that no longer accepts anything from this one.
    pub(super) denied_by: Option<Rank>,
    /// The failure that stops this member.
    pub(super) failure: Option<LargeFailure>,
}

impl SenderStream {
    pub(super) fn open(
        table: &Arc<TransferView>,
        (subgroup, sender): (SubgroupId, SenderRank),
        place: TransferSetup,
        options: &GroupOptions,
        end: StreamEnd,
        fabric: &AnyFabric,
    ) -> Result<Self, OpenError> {
        let rank = place.members.first().copied().unwrap_or_default();
        let transfer = Transfer::open(table, place, options, fabric)?;
        Ok(Self { subgroup, sender, rank, end, transfer, told: 0, is_explained: false })
    }

    pub(super) const fn channel(&self) -> Channel {
        self.transfer.channel()
    }

    pub(super) fn take(
        &mut self,
        event: &BlockEvent,
        outboxes: &mut [(SubgroupId, Outbox)],
        pool: &mut Pool,
    ) {
        match &mut self.end {
            StreamEnd::Own(index) => {
                if let Some((_, outbox)) = outboxes.get_mut(*index) {
                    self.transfer.take(event, outbox);
                }
            }
            StreamEnd::Of(inbox) => self.transfer.take(event, &mut Receiving { inbox, pool }),
        }
    }

    /// Posts everything that is due now.
    pub(super) fn step(
        &mut self,
        own: Rank,
        fabric: &mut AnyFabric,
        outboxes: &mut [(SubgroupId, Outbox)],
        pool: &mut Pool,
    ) -> Stepped {
        let mut stepped = Stepped::default();
        let progress = match &mut self.end {
            StreamEnd::Own(index) => {
                let Some((_, outbox)) = outboxes.get_mut(*index) else { return stepped };
                stepped.is_busy |= outbox.submit(&mut self.transfer);
                self.transfer.step(fabric, outbox)
            }
            StreamEnd::Of(inbox) => {
                let progress = self.transfer.step(fabric, &mut Receiving { inbox, pool });
                let arrived = inbox.arrived();
                if arrived > self.told {
                    self.told = arrived;
                    stepped.arrived = Some(arrived);
                }
                progress
            }
        };
        stepped.is_busy |= !progress.is_idle();
        stepped.is_moving = self.transfer.is_moving();
        if let Some(Outcome::Failed(failure)) = self.transfer.outcome()
            && !self.is_explained
        {
            self.is_explained = true;
            let refusal = match &self.end {
                StreamEnd::Of(inbox) => inbox.refusal.as_ref(),
                StreamEnd::Own(_) => None,
            };
            let Self { subgroup, rank, .. } = self;
            tracing::info!(%subgroup, sender = %rank, ?failure, ?refusal, "large messages are stopped");
            match consequence(failure, refusal, own, *rank) {
                Consequence::Lost(member) => stepped.lost = Some(member),
                Consequence::DeniedBy(member) => stepped.denied_by = Some(member),
                Consequence::Stop(why) => stepped.failure = Some(why),
            }
        }
        stepped
    }
}

/// The consequence of a stream's end for this member.
#[derive(Debug, PartialEq, Eq)]
enum Consequence {
    /// A member can no longer send to, or receive from, this one. A view change removes it, and
    /// informs the others.
    Lost(Rank),
    /// A member considers this one dead, so this one halts.
    DeniedBy(Rank),
    /// This member cannot continue.
    Stop(LargeFailure),
}

fn consequence(
    failure: Failure,
    refusal: Option<&Refusal>,
    own: Rank,
    sender: Rank,
) -> Consequence {
    match (refusal, failure.cause) {
        (Some(Refusal::Misbehaved), _) => Consequence::Lost(sender),
        (Some(Refusal::NoMemory(why)), _) => {
            let what = format!("not enough memory for a large message: {why}");
            Consequence::Stop(LargeFailure::Memory(what))
        }
        (None, Cause::Fabric | Cause::NoMemory) if failure.member == own => {
            let what = "the blocks of a large message cannot be posted";
            Consequence::Stop(LargeFailure::Fabric(what.to_owned()))
        }
        (None, Cause::Lost(LossCause::Denied)) => Consequence::DeniedBy(failure.member),
        (None, _) => Consequence::Lost(failure.member),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_faulty_member_is_removed() {
        let (own, sender, other) = (Rank(0), Rank(1), Rank(2));
        let ends = |member, cause, refusal: Option<Refusal>| {
            consequence(Failure { member, cause }, refusal.as_ref(), own, sender)
        };
        // The block group treats a refusal by this member as this member's own failure.
        assert_eq!(
            ends(own, Cause::NoMemory, Some(Refusal::Misbehaved)),
            Consequence::Lost(sender)
        );
        let no_memory = ends(own, Cause::NoMemory, Some(Refusal::NoMemory("full".into())));
        let why = "not enough memory for a large message: full".to_owned();
        assert_eq!(no_memory, Consequence::Stop(LargeFailure::Memory(why)));
        let refused = ends(own, Cause::Fabric, None);
        assert!(
            matches!(refused, Consequence::Stop(LargeFailure::Fabric(_))),
            "its memory is not to blame"
        );
        assert_eq!(ends(other, Cause::NoMemory, None), Consequence::Lost(other));
        assert_eq!(
            ends(other, Cause::Lost(LossCause::Unreachable), None),
            Consequence::Lost(other)
        );
        assert_eq!(ends(other, Cause::Lost(LossCause::Denied), None), Consequence::DeniedBy(other));
    }
}
