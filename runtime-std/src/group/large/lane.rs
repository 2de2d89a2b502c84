//! The way of one sender's large messages in one subgroup and view: a block group whose root the sender is.

use std::sync::Arc;

use tramontane_core::fabric::{Area, BlockEvent, Channel, Region};
use tramontane_core::ids::{Rank, SenderRank, SubgroupId};
use tramontane_core::rdmc::transfer::{Cause, Failure, OpenError, Outcome};

use super::inbox::{Inbox, Receiving, Refusal};
use super::outbox::Outbox;
use super::pool::Pool;
use crate::blocks::{GroupOptions, Place, Table, Transfer};
use crate::joined::JoinedFabric;

/// Where a lane's messages are kept.
pub(super) enum End {
    /// In the own outbox of that number.
    Own(usize),
    Of(Inbox),
}

impl End {
    /// Where first blocks go; the root posts no receive.
    pub(super) fn staging(&self) -> Area {
        match self {
            Self::Own(_) => Area { region: Region::ROW, offset: 0 },
            Self::Of(inbox) => inbox.staging(),
        }
    }
}

/// One sender's way.
pub(super) struct Lane {
    pub(super) subgroup: SubgroupId,
    pub(super) sender: SenderRank,
    /// The sender's rank in the view.
    pub(super) rank: Rank,
    pub(super) end: End,
    transfer: Transfer,
    /// How many messages the node was told of.
    told: u64,
}

/// What became of a lane in a step.
#[derive(Debug, Default)]
pub(super) struct Stepped {
    pub(super) is_busy: bool,
    /// A message is under way.
    pub(super) is_moving: bool,
    /// So many messages of the sender are here now; said when it has risen.
    pub(super) arrived: Option<u64>,
    /// A member that nothing more can be had from, or given to.
    pub(super) lost: Option<Rank>,
    /// This member cannot go on.
    pub(super) failure: Option<String>,
}

impl Lane {
    pub(super) fn open(
        table: &Arc<Table>,
        (subgroup, sender): (SubgroupId, SenderRank),
        place: Place,
        options: &GroupOptions,
        end: End,
        fabric: &JoinedFabric,
    ) -> Result<Self, OpenError> {
        let rank = place.members.first().copied().unwrap_or_default();
        let transfer = Transfer::open(table, place, options, fabric)?;
        Ok(Self { subgroup, sender, rank, end, transfer, told: 0 })
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
            End::Own(index) => {
                if let Some((_, outbox)) = outboxes.get_mut(*index) {
                    self.transfer.take(event, outbox);
                }
            }
            End::Of(inbox) => self.transfer.take(event, &mut Receiving { inbox, pool }),
        }
    }

    /// Posts what there is to post now. `own` is this member's rank.
    pub(super) fn step(
        &mut self,
        own: Rank,
        fabric: &mut JoinedFabric,
        outboxes: &mut [(SubgroupId, Outbox)],
        pool: &mut Pool,
    ) -> Stepped {
        let mut stepped = Stepped::default();
        let progress = match &mut self.end {
            End::Own(index) => {
                let Some((_, outbox)) = outboxes.get_mut(*index) else { return stepped };
                stepped.is_busy |= outbox.submit(&mut self.transfer, fabric);
                self.transfer.step(fabric, outbox)
            }
            End::Of(inbox) => {
                inbox.lend(fabric);
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
        if let Some(Outcome::Failed(Failure { member, cause })) = self.transfer.outcome() {
            self.explain(own, member, cause, &mut stepped);
        }
        stepped
    }

    /// Whose failure it was: a change of the view puts it right, and the others are told of it by that.
    fn explain(&mut self, own: Rank, member: Rank, cause: Cause, stepped: &mut Stepped) {
        let refusal = match &mut self.end {
            End::Of(inbox) => inbox.refusal.take(),
            End::Own(_) => None,
        };
        match (refusal, cause) {
            (Some(Refusal::Misbehaved), _) => {
                tracing::error!(subgroup = %self.subgroup, rank = %self.rank, "a member sends more than it may");
                stepped.lost = Some(self.rank);
            }
            (Some(Refusal::NoMemory(why)), _) => {
                stepped.failure = Some(format!("a large message has no place: {why}"));
            }
            (None, Cause::Fabric | Cause::NoMemory) if member == own => {
                stepped.failure = Some("its blocks cannot be posted".to_owned());
            }
            (None, _) => stepped.lost = Some(member),
        }
    }
}
