//! How replicas with disks form their group.
//!
//! A group whose processes are all killed while it forms must form again, but a replica that has
//! lost its disk must not form a second group. Both have no state. So the replicas form a group in
//! stages, and each stage is on the disk before the others learn of it:
//!
//! | stage | reached once |
//! |---|---|
//! | `Listed`: the list of founders is saved | rank 0 has listed all processes, and nobody has a state |
//! | `Ready`: the first state is saved | all have the same list |
//! | `Begun`: the replica may take a step | all others are ready, or have lost their disks |
//!
//! If a replica is ready, then all had the list, and one that has none has lost its disk. If a
//! replica has only the list, then nobody has begun. Rank 0 then lists the processes again, but
//! only if one of them can never have had the list, because the answers that rank 0 has received
//! may be older than the first state of another replica. If a disk is lost at that moment, the
//! group may report that its state is lost, although nobody had begun.

use tramontane_core::ids::Rank;

use super::durable::Journal;
use super::founding::{Founding, FoundingAnswer, FoundingMove, FoundingWait, list_all};
use super::founding_stage::FoundingStage;
use super::messages::Standing;
use super::service::Formation;
use super::start_error::StartError;

/// The next move of a replica with a disk that has no state.
#[derive(Debug, PartialEq, Eq)]
enum FormingMove {
    /// The replica is a founder.
    Found,
    /// The replica saves this list of founders.
    List(Vec<u64>),
    Wait,
    /// The group was formed by these processes, and the replica returns to it.
    Return(Vec<u64>),
}

/// The position of a replica in its group while the group forms.
#[derive(Clone, Debug)]
struct FormingReplica {
    rank: Rank,
    life: u64,
    formation: Formation,
}

impl FormingReplica {
    fn next_move(&self, answers: &[(Rank, FoundingAnswer)]) -> FormingMove {
        let Formation { founders, stage } = &self.formation;
        let standings = || answers.iter().filter_map(|(_, answer)| Some(&answer.as_ref().ok()?.1));
        let has_list = |of: &&Standing| of.founders == *founders;
        let has_state =
            |of: &&Standing| matches!(of.stage, FoundingStage::Ready | FoundingStage::Begun);
        let is_listed = *stage == FoundingStage::Listed;
        if let Some(formed) = standings().find(has_state) {
            return match is_listed && has_list(&formed) {
                true => FormingMove::Found,
                false => FormingMove::Return(formed.founders.clone().unwrap_or_default()),
            };
        }
        let has_lost = |of: &Standing| of.stage == FoundingStage::Lost;
        if *stage == FoundingStage::Lost || standings().any(has_lost) {
            return FormingMove::Return(founders.clone().unwrap_or_default());
        }
        let is_with_us = |of: &Standing| of.stage == FoundingStage::Listed && has_list(&of);
        let are_all_here = standings().count() == answers.len();
        if is_listed && are_all_here && standings().all(is_with_us) {
            return FormingMove::Found;
        }
        let listed = match self.rank {
            // Some replicas may be ready already, unless one has never had the list.
            Rank(0) if is_listed && !self.lacks_list(answers) => None,
            Rank(0) => list_all(self.life, answers),
            rank => {
                let first = standing_of(answers, Rank(0)).and_then(|of| of.founders.clone());
                first.filter(|list| list.get(rank.index()) == Some(&self.life))
            }
        };
        match listed.filter(|listed| Some(listed) != founders.as_ref()) {
            Some(listed) => FormingMove::List(listed),
            None => FormingMove::Wait,
        }
    }

    /// Returns whether a replica that is not in the list has not saved it. Its earlier process in
    /// the list had not saved it either, or its disk is lost.
    fn lacks_list(&self, answers: &[(Rank, FoundingAnswer)]) -> bool {
        let listed = self.formation.founders.as_deref().unwrap_or_default();
        answers.iter().any(|(rank, answer)| {
            answer.as_ref().is_ok_and(|(life, of)| {
                of.founders.as_deref() != Some(listed) && listed.get(rank.index()) != Some(life)
            })
        })
    }
}

/// Returns whether a replica that is ready may take a step.
fn may_begin(answers: &[(Rank, FoundingAnswer)]) -> bool {
    let is_ready = |answer: &FoundingAnswer| {
        answer.as_ref().is_ok_and(|(_, of)| of.stage != FoundingStage::Listed)
    };
    answers.iter().all(|(_, answer)| is_ready(answer))
}

impl Founding<'_> {
    /// Decides the next move of a replica with a disk that has no state.
    pub(super) fn form_on_disk(
        &self,
        journal: &Journal,
        answers: &[(Rank, FoundingAnswer)],
    ) -> Result<FoundingMove, StartError> {
        let forming = FormingReplica {
            rank: self.own.rank,
            life: self.identity.incarnation,
            formation: self.service.formation(),
        };
        Ok(match forming.next_move(answers) {
            FormingMove::Found => FoundingMove::Found,
            FormingMove::Return(founders) => FoundingMove::Return(founders),
            FormingMove::Wait => FoundingMove::Wait,
            FormingMove::List(listed) => {
                self.reach(journal, FoundingStage::Listed, &listed)?;
                FoundingMove::Wait
            }
        })
    }

    /// Waits until a replica that has its first state, or had it before it was started again, may
    /// take a step.
    pub(super) fn begin(&self, journal: &Journal) -> Result<(), StartError> {
        let founders = self.service.formation().founders.unwrap_or_default();
        self.reach(journal, FoundingStage::Ready, &founders)?;
        let mut waiting = FoundingWait::default();
        loop {
            let answers = self.ask_all(0)?;
            if may_begin(&answers) {
                return self.reach(journal, FoundingStage::Begun, &founders);
            }
            self.wait(&answers, &mut waiting)?;
        }
    }

    /// Saves a stage, and shows it to the others.
    fn reach(
        &self,
        journal: &Journal,
        stage: FoundingStage,
        founders: &[u64],
    ) -> Result<(), StartError> {
        if stage == FoundingStage::Listed {
            self.know_founders(founders);
        }
        journal.keep_formation(self.at_least.max(1), founders, stage)?;
        self.service.set_formation(Formation { founders: Some(founders.to_vec()), stage });
        Ok(())
    }
}

fn standing_of(answers: &[(Rank, FoundingAnswer)], rank: Rank) -> Option<&Standing> {
    let (_, answer) = answers.iter().find(|(of, _)| *of == rank)?;
    Some(&answer.as_ref().ok()?.1)
}

#[cfg(test)]
mod tests;
