//! How a group ends: closed by its root, or failed, and then for everyone (RDM-6).
//!
//! Closing: the root says how many messages there were; each member, once it has them all, says the same to
//! the root; the root, once all have, decides and tells. Who learns of the decision knows that everything
//! reached everyone, whatever happens next.
//!
//! Who has told the root that it has everything depends on the root alone: others may be gone because they
//! know the decision already. What becomes of them then is for the root to judge, which waits for each; and a decision that
//! has arrived counts before any loss, the root's own too.
//!
//! Failing: who learns of a failure, from its fabric or from a peer's cell, tells all. So a survivor that no
//! other can reach in one way is reached in another. Who says that a peer denied it is itself the one that failed: that a
//! member [was denied](LossCause::Denied) is known to that member alone. Who is cut off from all and has nothing under way learns
//! nothing from a fabric: whoever watches its peers (the view's heartbeats) tells it through `lost`.

use super::cells::Name;
use super::failure::{Cause, Failure};
use super::group::{BlockGroup, Outcome, Progress, Stage};
use crate::fabric::{Blocks, ErrorKind, FabricError, LossCause};
use crate::ids::Rank;

/// Members whose cells are looked at in one call, at most.
const LOOKS_MAX: usize = 64;

/// Members that are told in one call, at most.
const TOLD_MAX: u32 = 32;

/// How far closing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Close {
    /// Nobody asked here.
    NotAsked,
    /// The root's application asked.
    Asked,
    /// The root tells how many messages there were; so many members were told.
    Announcing(usize),
    /// The root waits for all to have them.
    Gathering,
    /// The root tells that all have them; so many members were told.
    Concluding(usize),
    /// A receiver told the root that it has everything.
    Confirmed,
}

impl Close {
    /// Whether nothing can fail any more.
    pub(super) const fn is_decided(self) -> bool {
        matches!(self, Self::Concluding(_))
    }
}

impl BlockGroup<'_> {
    /// Looks whether some peers say that the group failed: the next few, in turn. There is more to do until all were
    /// looked at.
    pub(super) fn hear_of_failures(&mut self, progress: &mut Progress) {
        if matches!(self.stage, Stage::Over(_)) {
            return;
        }
        for member in self.setup.members.iter().skip(self.looked).take(LOOKS_MAX) {
            let cell =
                if *member == self.memory.own { 0 } else { self.told_by(*member, Name::Failed) };
            if cell != 0 {
                self.hear(*member, cell);
                if matches!(self.stage, Stage::Over(_)) {
                    return;
                }
            }
        }
        self.looked = self.looked.saturating_add(LOOKS_MAX);
        if self.looked < self.setup.members.len() {
            progress.has_more = true;
        } else {
            self.looked = 0;
        }
    }

    /// A peer says that the group failed, or what no correct member says.
    fn hear(&mut self, teller: Rank, cell: u64) {
        let told =
            Failure::decode(cell).filter(|failure| self.setup.members.contains(&failure.member));
        let failure = match told {
            // A peer that was denied is gone to whoever denied it; to accuse that one would turn everybody against the living.
            Some(Failure { cause: Cause::Lost(LossCause::Denied), .. }) => {
                Failure { member: teller, cause: Cause::Lost(LossCause::Unreachable) }
            }
            Some(failure) => failure,
            None => Failure { member: teller, cause: Cause::Lost(LossCause::Misbehaved) },
        };
        if self.is_root(teller) {
            self.end_failed(failure);
        } else {
            self.fail(failure.member, failure.cause);
        }
    }

    fn is_root(&self, member: Rank) -> bool {
        self.setup.members.first() == Some(&member)
    }

    /// Ends the group here for what became of a member, unless that no longer matters; everybody will be told.
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
        if self.has_heard_of_close() {
            self.stage = Stage::Over(Outcome::Closed);
            return;
        }
        self.cells.publish(self.memory.row, Name::Failed, failure.encode());
        self.stage = Stage::Over(Outcome::Failed(failure));
    }

    /// Whether the root's decision that everybody has everything is here. It counts only from who was asked.
    fn has_heard_of_close(&self) -> bool {
        let root = self.setup.members.first();
        self.close == Close::Confirmed
            && root.is_some_and(|root| self.told_by(*root, Name::Closed) != 0)
    }

    /// Tells who was not told yet of the failure.
    pub(super) fn tell_failure<F: Blocks>(&mut self, fabric: &mut F, progress: &mut Progress) {
        self.told = self.tell_all(fabric, Name::Failed, self.told, progress);
    }

    /// Takes closing on by what is known now.
    pub(super) fn go_on_closing<F: Blocks>(&mut self, fabric: &mut F, progress: &mut Progress) {
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
        let everyone = self.setup.members.len();
        let all_of_it = self.done.saturating_add(1);
        if self.close == Close::Asked {
            self.cells.publish(self.memory.row, Name::Closing, all_of_it);
            self.close = Close::Announcing(0);
        }
        if let Close::Announcing(told) = self.close {
            let told = self.tell_all(fabric, Name::Closing, told, progress);
            self.close = if told >= everyone { Close::Gathering } else { Close::Announcing(told) };
        }
        if self.close == Close::Gathering && self.all_confirmed(all_of_it) {
            self.cells.publish(self.memory.row, Name::Closed, 1);
            self.close = Close::Concluding(0);
        }
        if let Close::Concluding(told) = self.close {
            let told = self.tell_all(fabric, Name::Closed, told, progress);
            self.close = Close::Concluding(told);
            if told >= everyone {
                self.stage = Stage::Over(Outcome::Closed);
            }
        }
    }

    /// Whether every other member says that it has everything. Who says more than that misbehaves.
    fn all_confirmed(&mut self, all_of_it: u64) -> bool {
        let mut confirmed = true;
        for member in self.setup.members.iter().skip(1) {
            match self.told_by(*member, Name::Closing) {
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
        let said = self.told_by(root, Name::Closing);
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
        if self.has_heard_of_close() {
            self.stage = Stage::Over(Outcome::Closed);
        }
    }

    /// Posts a cell to the members from the `told`-th on, as many as a call may. How many are told then.
    ///
    /// Who cannot be told is passed over: it is lost, and that is told to the others in its turn.
    fn tell_all<F: Blocks>(
        &self,
        fabric: &mut F,
        name: Name,
        mut told: usize,
        progress: &mut Progress,
    ) -> usize {
        for _ in 0..TOLD_MAX {
            let Some(member) = self.setup.members.get(told).copied() else { return told };
            if member != self.memory.own {
                match fabric.post(self.setup.view, member, &[self.cells.write(name)], None) {
                    Err(error) if error.kind() == ErrorKind::QueueFull => break,
                    Ok(()) => progress.posts = progress.posts.saturating_add(1),
                    Err(_) => {}
                }
            }
            told = told.saturating_add(1);
        }
        progress.has_more |= told < self.setup.members.len();
        told
    }
}
