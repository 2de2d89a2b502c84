//! The end of a group: either its root closes it, or it fails for all members (RDM-6).
//!
//! Closing: the root publishes the number of messages. Each member publishes the same number to the
//! root once it has all messages. Once all members have done so, the root decides that the group is
//! closed, and posts the decision to all. A member that sees the decision knows that every message
//! has reached every member, whatever happens next.
//!
//! A member that has confirmed to the root that it has everything depends only on the root. Other
//! members may have exited because they have already seen the decision. The root judges whether a
//! loss matters, because it waits for each member. A decision that has arrived takes precedence
//! over any loss, even over that of the root.
//!
//! Failing: a member that learns of a failure, from its fabric or from a peer's cell, posts it to
//! all others. A survivor that one member cannot reach therefore learns of the failure from
//! another. If a member's cell says that a peer denied it, that member itself counts as the one
//! that failed, because only it knows that it [was denied](LossCause::Denied). A member that is cut
//! off from all peers and has nothing in flight learns nothing from its fabric; the view protocol,
//! which watches heartbeats, reports the loss through `lost`.
//!
//! Requirement: FLT-2.

use super::cells::Name;
use super::failure::{Cause, Failure};
use super::group::{BlockGroup, Outcome, Progress, Stage};
use crate::fabric::{Blocks, ErrorKind, FabricError, LossCause};
use crate::ids::Rank;

/// Maximum number of members whose cells are read in one call.
const READ_MAX: usize = 64;

/// Maximum number of members to which one call posts a cell.
const POSTED_MAX: u32 = 32;

/// The progress of closing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Close {
    /// Closing has not been requested here, by the root or its application.
    NotAsked,
    /// The root's application has requested the close.
    Asked,
    /// The root posts the number of messages; the value is the number of members to which it has
    /// been posted.
    Announcing(usize),
    /// The root waits until every member has confirmed that it has the messages.
    Gathering,
    /// The root posts that all members have the messages; the value is the number of members to
    /// which this has been posted.
    Concluding(usize),
    /// A receiver has confirmed to the root that it has everything.
    Confirmed,
}

impl Close {
    /// Returns whether the close can no longer fail.
    pub(super) const fn is_decided(self) -> bool {
        matches!(self, Self::Concluding(_))
    }
}

impl BlockGroup<'_> {
    /// Looks for cells that fail their check. Such cells count as not yet written, and end the
    /// group if they are not repaired.
    pub(super) fn check_cells(&mut self, progress: &mut Progress) {
        if !self.setup.checks.is_on() || matches!(self.stage, Stage::Over(_)) {
            return;
        }
        let mut others = self.setup.members.iter().filter(|member| **member != self.memory.own);
        let failed = others.find(|member| {
            let row = self.memory.rows.get(member.index());
            row.is_some_and(|row| !self.cells.is_readable(row))
        });
        let failed = failed.copied();
        progress.has_more |= failed.is_some();
        if let (Err(()), Some(member)) = (self.unreadable.count(failed.is_some()), failed) {
            self.fail(member, Cause::Lost(LossCause::Misbehaved));
        }
    }

    /// Reads the `failed` cells of the next few peers, in rank order. Sets `has_more` until all
    /// have been read.
    pub(super) fn read_failures(&mut self, progress: &mut Progress) {
        if matches!(self.stage, Stage::Over(_)) {
            return;
        }
        // bound: READ_MAX
        for member in self.setup.members.iter().skip(self.read).take(READ_MAX) {
            let cell =
                if *member == self.memory.own { 0 } else { self.cell_of(*member, Name::Failed) };
            if cell != 0 {
                self.take_failure(*member, cell);
                if matches!(self.stage, Stage::Over(_)) {
                    return;
                }
            }
        }
        self.read = self.read.saturating_add(READ_MAX);
        if self.read < self.setup.members.len() {
            progress.has_more = true;
        } else {
            self.read = 0;
        }
    }

    /// Handles a failure that a peer published, or a value that no correct member publishes.
    fn take_failure(&mut self, from: Rank, cell: u64) {
        let failure =
            Failure::decode(cell).filter(|failure| self.setup.members.contains(&failure.member));
        let failure = match failure {
            // A peer that was denied is lost to the member that denied it. Accusing that member
            // would turn all others against a correct one.
            Some(Failure { cause: Cause::Lost(LossCause::Denied), .. }) => {
                Failure { member: from, cause: Cause::Lost(LossCause::Unreachable) }
            }
            Some(failure) => failure,
            None => Failure { member: from, cause: Cause::Lost(LossCause::Misbehaved) },
        };
        if self.is_root(from) {
            self.end_failed(failure);
        } else {
            self.fail(failure.member, failure.cause);
        }
    }

    fn is_root(&self, member: Rank) -> bool {
        self.setup.members.first() == Some(&member)
    }

    /// Ends the group at this member because a member failed, unless that no longer matters. The
    /// failure is posted to all members.
    pub(super) fn fail(&mut self, member: Rank, cause: Cause) {
        if self.close == Close::Confirmed && !self.is_root(member) {
            return;
        }
        self.end_failed(Failure { member, cause });
    }

    fn end_failed(&mut self, failure: Failure) {
        if matches!(self.stage, Stage::Over(_)) || self.close.is_decided() {
            return;
        }
        if self.is_close_decided() {
            self.stage = Stage::Over(Outcome::Closed);
            return;
        }
        self.cells.publish(self.memory.row, Name::Failed, failure.encode());
        self.stage = Stage::Over(Outcome::Failed(failure));
    }

    /// Returns whether the root's decision that every member has everything has arrived. The
    /// decision counts only at a member that has confirmed.
    fn is_close_decided(&self) -> bool {
        let root = self.setup.members.first();
        self.close == Close::Confirmed
            && root.is_some_and(|root| self.cell_of(*root, Name::Closed) != 0)
    }

    /// Posts the failure to the members that have not received it yet.
    pub(super) fn post_failure<F: Blocks>(&mut self, fabric: &mut F, progress: &mut Progress) {
        self.posted = self.post_to_all(fabric, Name::Failed, self.posted, progress);
    }

    /// Advances closing as far as the current knowledge allows.
    pub(super) fn advance_closing<F: Blocks>(&mut self, fabric: &mut F, progress: &mut Progress) {
        if !matches!(self.stage, Stage::Between { .. }) {
            return;
        }
        if self.own == Rank::ZERO {
            self.lead_closing(fabric, progress);
        } else {
            self.follow_closing(fabric, progress);
        }
    }

    fn lead_closing<F: Blocks>(&mut self, fabric: &mut F, progress: &mut Progress) {
        let member_count = self.setup.members.len();
        let all_of_it = self.done.saturating_add(1);
        if self.close == Close::Asked {
            self.cells.publish(self.memory.row, Name::Closing, all_of_it);
            self.close = Close::Announcing(0);
        }
        if let Close::Announcing(posted) = self.close {
            let posted = self.post_to_all(fabric, Name::Closing, posted, progress);
            self.close =
                if posted >= member_count { Close::Gathering } else { Close::Announcing(posted) };
        }
        if self.close == Close::Gathering && self.all_confirmed(all_of_it) {
            self.cells.publish(self.memory.row, Name::Closed, 1);
            self.close = Close::Concluding(0);
        }
        if let Close::Concluding(posted) = self.close {
            let posted = self.post_to_all(fabric, Name::Closed, posted, progress);
            self.close = Close::Concluding(posted);
            if posted >= member_count {
                self.stage = Stage::Over(Outcome::Closed);
            }
        }
    }

    /// Returns whether every other member confirms that it has everything. A member that claims
    /// more than that misbehaves.
    fn all_confirmed(&mut self, all_of_it: u64) -> bool {
        let mut confirmed = true;
        // bound: the members of the group
        for member in self.setup.members.iter().skip(1) {
            match self.cell_of(*member, Name::Closing) {
                0 => confirmed = false,
                said if said == all_of_it => {}
                _ => {
                    self.fail(*member, Cause::Lost(LossCause::Misbehaved));
                    return false;
                }
            }
        }
        confirmed
    }

    fn follow_closing<F: Blocks>(&mut self, fabric: &mut F, progress: &mut Progress) {
        let Some(root) = self.setup.members.first().copied() else { return };
        let said = self.cell_of(root, Name::Closing);
        let have = self.done.saturating_add(1);
        if said != 0 && said < have {
            self.fail(root, Cause::Lost(LossCause::Misbehaved));
            return;
        }
        if self.close == Close::NotAsked && said == have {
            self.cells.publish(self.memory.row, Name::Closing, have);
            match fabric.post(self.setup.view, root, &[self.cells.write(Name::Closing)], None) {
                Ok(()) => {
                    self.close = Close::Confirmed;
                    progress.posts = progress.posts.saturating_add(1);
                }
                Err(error) => self.refused(root, error.kind(), progress),
            }
        }
        if self.is_close_decided() {
            self.stage = Stage::Over(Outcome::Closed);
        }
    }

    /// Posts a cell to the members from index `posted` onwards, up to the maximum per call. Returns
    /// the total number of members covered.
    ///
    /// A member that cannot be posted to is skipped because it is lost, and its loss will be posted
    /// to the others too.
    fn post_to_all<F: Blocks>(
        &self,
        fabric: &mut F,
        name: Name,
        mut posted: usize,
        progress: &mut Progress,
    ) -> usize {
        // bound: POSTED_MAX
        for _ in 0..POSTED_MAX {
            let Some(member) = self.setup.members.get(posted).copied() else { return posted };
            if member != self.memory.own {
                match fabric.post(self.setup.view, member, &[self.cells.write(name)], None) {
                    Err(error) if error.kind() == ErrorKind::QueueFull => break,
                    Ok(()) => progress.posts = progress.posts.saturating_add(1),
                    Err(_) => {}
                }
            }
            posted = posted.saturating_add(1);
        }
        progress.has_more |= posted < self.setup.members.len();
        posted
    }
}
