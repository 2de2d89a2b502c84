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
//! replica has only the list, then nobody has begun, and rank 0 may list the processes again.

use tramontane_core::ids::Rank;

use super::durable::Journal;
use super::founding::{Founding, FoundingAnswer, FoundingMove, FoundingWait};
use super::founding_stage::FoundingStage;
use super::messages::Standing;
use super::service::Formation;
use super::start_error::StartError;

impl Founding<'_> {
    /// Decides the next move of a replica with a disk that has no state.
    pub(super) fn form_on_disk(
        &self,
        journal: &Journal,
        answers: &[(Rank, FoundingAnswer)],
    ) -> Result<FoundingMove, StartError> {
        let Formation { founders, stage } = self.service.formation();
        let standings = || answers.iter().filter_map(|(_, answer)| Some(&answer.as_ref().ok()?.1));
        let has_list = |of: &&Standing| of.founders == founders;
        let has_state =
            |of: &&Standing| matches!(of.stage, FoundingStage::Ready | FoundingStage::Begun);
        let is_listed = stage == FoundingStage::Listed;
        if let Some(formed) = standings().find(has_state) {
            return Ok(match is_listed && has_list(&formed) {
                true => FoundingMove::Found,
                false => FoundingMove::Return(formed.founders.clone().unwrap_or_default()),
            });
        }
        let has_lost = |of: &Standing| of.stage == FoundingStage::Lost;
        if stage == FoundingStage::Lost || standings().any(has_lost) {
            return Ok(FoundingMove::Return(founders.unwrap_or_default()));
        }
        let is_with_us = |of: &Standing| of.stage == FoundingStage::Listed && has_list(&of);
        let are_all_here = standings().count() == answers.len();
        if is_listed && are_all_here && standings().all(is_with_us) {
            return Ok(FoundingMove::Found);
        }
        let listed = match self.own.rank {
            Rank(0) => self.list_all(answers),
            rank => {
                let first = standing_of(answers, Rank(0)).and_then(|of| of.founders.clone());
                first.filter(|list| self.is_among(list, rank, self.identity.incarnation))
            }
        };
        if let Some(listed) = listed.filter(|listed| Some(listed) != founders.as_ref()) {
            self.reach(journal, FoundingStage::Listed, &listed)?;
        }
        Ok(FoundingMove::Wait)
    }

    /// Waits until a replica that has its first state, or had it before it was started again, may
    /// take a step.
    pub(super) fn begin(&self, journal: &Journal) -> Result<(), StartError> {
        let founders = self.service.formation().founders.unwrap_or_default();
        self.reach(journal, FoundingStage::Ready, &founders)?;
        let mut waiting = FoundingWait::default();
        loop {
            let answers = self.ask_all(0)?;
            let may_begin = |answer: &FoundingAnswer| {
                answer.as_ref().is_ok_and(|(_, of)| of.stage != FoundingStage::Listed)
            };
            if answers.iter().all(|(_, answer)| may_begin(answer)) {
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
