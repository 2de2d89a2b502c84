//! Lets a starting replica find out whether it forms its group or returns to it.
//!
//! A group forms once all its replicas are running and are not in a group yet: the replica of rank
//! 0 then lists their processes, and the others receive the list. The listed processes are
//! founders. Any process that starts later is a returning one: its memory is lost, so it counts in
//! no quorum before a quorum that excludes it has admitted it (TRM-5).
//!
//! # Invariants
//! - A process is a founder only if it is in the single list made by rank 0, or if its disk has
//!   that list (see `forming`).
//! - A returning replica uses an incarnation that it has received from a quorum of the others.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tramontane_control::{Identity, OpenSessionError, OpenedSession};
use tramontane_core::ids::Rank;
use tramontane_core::tram::ReplicaId;

use super::calls::{is_final, why_refused};
use super::durable::Journal;
use super::founding_stage::FoundingStage;
use super::lives::Life;
use super::messages::{JoinReply, JoinRequest, REPLY_MAX, Standing};
use super::places::Places;
use super::service::{Formation, Service};
use super::start_error::StartError;
use crate::group::ControlEndpoints;
use crate::session_messages::{ask_each, receive_message, send_message};
use crate::shards::calls::open_join;

/// Time limit for the answer of one replica.
const LOOK: Duration = Duration::from_secs(1);

/// The interval between rounds of questions.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// The interval between reports of the missing replicas, and the delay before the first report.
const TELL_PAUSE: Duration = Duration::from_secs(4);

/// The time after which a group counts as lost if the replicas that have not returned do not form a
/// quorum. The delay is needed because one of the returned replicas may have just been admitted. It
/// is shorter than the time after which a surviving replica stops, so that the returning one still
/// learns of the loss.
const LOST_AFTER: Duration = Duration::from_millis(500);

/// The decision on whether a replica may return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Return {
    /// The replica returns with this incarnation.
    As(u16),
    /// Too few members have answered so far.
    NotYet,
    /// The replicas that count in quorums are too few to form one.
    LacksVoters,
}

/// The terms on which a replica is part of its group: its incarnation, and whether it is a founder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundingPart {
    pub(super) incarnation: u16,
    pub(super) is_founder: bool,
}

/// A starting replica.
pub(super) struct Founding<'s> {
    pub(super) own: ReplicaId,
    pub(super) identity: Identity,
    pub(super) endpoints: &'s ControlEndpoints,
    pub(super) places: &'s Places,
    pub(super) service: &'s Service,
    pub(super) until: Instant,
    pub(super) cancel: &'s AtomicBool,
    pub(super) told: Option<fn(&[String])>,
    /// An incarnation that no earlier process of this replica has had, if its disk has one.
    pub(super) at_least: u16,
}

/// The next move of a starting replica.
#[derive(Debug)]
pub(super) enum FoundingMove {
    /// The replica is a founder.
    Found,
    Wait,
    /// The group was formed by these processes, and the replica returns to it.
    Return(Vec<u64>),
}

/// The time of the next report of the missing replicas.
#[derive(Debug)]
pub(super) struct FoundingWait {
    tells_at: Instant,
}

impl Default for FoundingWait {
    fn default() -> Self {
        Self { tells_at: Instant::now() + TELL_PAUSE }
    }
}

/// Another replica's answer, with the number of its process.
pub(super) type FoundingAnswer = Result<(u64, Standing), OpenSessionError>;

impl Founding<'_> {
    /// Runs until the group has formed, and returns the terms on which this replica is part of it.
    pub(super) fn run(&self, journal: Option<&Journal>) -> Result<FoundingPart, StartError> {
        let (mut at_least, mut lost_since) = (self.at_least, None::<Instant>);
        let mut waiting = FoundingWait::default();
        loop {
            let answers = self.ask_all(at_least)?;
            let next = match journal {
                Some(journal) => self.form_on_disk(journal, &answers)?,
                None => self.form_in_memory(&answers),
            };
            match next {
                FoundingMove::Found => {
                    let incarnation = self.at_least.max(1);
                    return Ok(FoundingPart { incarnation, is_founder: true });
                }
                FoundingMove::Wait => {}
                FoundingMove::Return(founders) => match self.judge_return(&answers, &founders) {
                    Return::As(given) if given == at_least => {
                        self.return_to(&answers, founders);
                        return Ok(FoundingPart { incarnation: given, is_founder: false });
                    }
                    // Asks once more, so that a quorum knows the incarnation that was given.
                    Return::As(given) => {
                        at_least = given;
                        continue;
                    }
                    Return::LacksVoters => {
                        if lost_since.get_or_insert_with(Instant::now).elapsed() >= LOST_AFTER {
                            let group = self.places.group_name(self.own.group).to_owned();
                            return Err(StartError::GroupLost { group });
                        }
                    }
                    Return::NotYet => lost_since = None,
                },
            }
            self.wait(&answers, &mut waiting)?;
        }
    }

    /// Pauses before the next round of questions, and reports who is missing.
    pub(super) fn wait(
        &self,
        answers: &[(Rank, FoundingAnswer)],
        waiting: &mut FoundingWait,
    ) -> Result<(), StartError> {
        self.note_missing(answers);
        if let Some(told) = self.told.filter(|_| Instant::now() >= waiting.tells_at) {
            waiting.tells_at = Instant::now() + TELL_PAUSE;
            told(&self.service.missing());
        }
        if Instant::now() >= self.until {
            return Err(StartError::NotMet { missing: self.service.missing() });
        }
        if self.cancel.load(Ordering::Relaxed) {
            return Err(StartError::Cancelled);
        }
        std::thread::sleep(LOOK_PAUSE);
        Ok(())
    }

    /// Decides the next move of a replica without a disk.
    fn form_in_memory(&self, answers: &[(Rank, FoundingAnswer)]) -> FoundingMove {
        let said = answers.iter().find_map(|(_, answer)| answer.as_ref().ok()?.1.founders.clone());
        let listed = said.or_else(|| match self.own.rank {
            Rank(0) => list_all(self.identity.incarnation, answers),
            _ => None,
        });
        match listed {
            None => FoundingMove::Wait,
            Some(listed) if self.is_among(&listed, self.own.rank, self.identity.incarnation) => {
                self.know_founders(&listed);
                self.set_begun(listed);
                FoundingMove::Found
            }
            Some(listed) => FoundingMove::Return(listed),
        }
    }

    /// Returns the terms of a replica that continues from its disk. It counts in quorums at once,
    /// so it asks no other replica.
    pub(super) const fn continue_from_disk(&self) -> FoundingPart {
        FoundingPart { incarnation: self.at_least, is_founder: false }
    }

    fn others(&self) -> impl Iterator<Item = ReplicaId> + '_ {
        self.places.replicas_of(self.own.group).filter(|replica| *replica != self.own)
    }

    /// Asks all other replicas at the same time. A different configuration at one of them ends the
    /// start.
    pub(super) fn ask_all(&self, at_least: u16) -> Result<Vec<(Rank, FoundingAnswer)>, StartError> {
        let ask = |replica| self.ask(replica, at_least);
        let answers = ask_each(self.others(), ask, || Err(OpenSessionError::Malformed));
        for (replica, answer) in &answers {
            if let Err(error) = answer
                && is_final(error)
            {
                let why = why_refused(error, self.identity.digest);
                return Err(StartError::Refused { replica: self.places.name(*replica), why });
            }
        }
        Ok(answers.into_iter().map(|(replica, answer)| (replica.rank, answer)).collect())
    }

    fn ask(&self, replica: ReplicaId, at_least: u16) -> FoundingAnswer {
        let node = self.places.node(replica);
        let opened = open_join(&self.identity, self.endpoints, node, LOOK, self.cancel)?;
        let OpenedSession { node: found, incarnation: life, mut session } = opened;
        let stage = self.service.formation().stage;
        if found != node {
            return Err(OpenSessionError::Malformed);
        }
        let asked = send_message(&mut session, &JoinRequest::Stand { at_least, stage }, LOOK)
            .and_then(|()| receive_message(&mut session, REPLY_MAX, LOOK));
        match asked {
            Ok(JoinReply::Standing(standing)) => Ok((life, standing)),
            Ok(_) => Err(OpenSessionError::Malformed),
            Err(_) => Err(OpenSessionError::NotThere),
        }
    }

    fn is_among(&self, founders: &[u64], rank: Rank, life: u64) -> bool {
        founders.get(rank.index()) == Some(&life)
    }

    /// Makes the listed processes the known ones.
    pub(super) fn know_founders(&self, founders: &[u64]) {
        let replicas = self.places.replicas_of(self.own.group).zip(founders);
        let lives: Vec<_> = replicas
            .map(|(replica, life)| {
                (self.places.node(replica), Life { life: *life, incarnation: 1 })
            })
            .collect();
        self.service.lives.begin(&lives);
    }

    fn set_begun(&self, founders: Vec<u64>) {
        let stage = FoundingStage::Begun;
        self.service.set_formation(Formation { founders: Some(founders), stage });
    }

    /// Decides the incarnation of a returning replica, once a quorum of members has answered.
    fn judge_return(&self, answers: &[(Rank, FoundingAnswer)], founders: &[u64]) -> Return {
        let overlay = self.places.overlay();
        let quorum = usize::from(overlay.quorum(self.own.group));
        let replicas = usize::from(overlay.replicas(self.own.group));
        let (mut members, mut strangers, mut returning) = (0, 0, 1);
        let mut incarnation = 0;
        for (rank, answer) in answers {
            let Ok((life, standing)) = answer else { continue };
            match standing.stage {
                FoundingStage::Begun => {
                    members += 1;
                    incarnation = incarnation.max(standing.incarnation);
                }
                // A founder that does not yet know that the group has formed.
                FoundingStage::Apart if self.is_among(founders, *rank, *life) => members += 1,
                FoundingStage::Apart | FoundingStage::Lost => strangers += 1,
                FoundingStage::Listed | FoundingStage::Ready => {}
            }
            returning = returning.max(usize::from(standing.returning));
        }
        let without = returning.max(strangers + 1);
        if replicas.saturating_sub(without) < quorum {
            return Return::LacksVoters;
        }
        // A founder that does not yet know that the group has formed assigns no incarnation.
        if members >= quorum && incarnation > 0 { Return::As(incarnation) } else { Return::NotYet }
    }

    fn return_to(&self, answers: &[(Rank, FoundingAnswer)], founders: Vec<u64>) {
        for (_, answer) in answers {
            if let Ok((_, standing)) = answer {
                self.service.lives.learn(self.places, &standing.clients);
            }
        }
        self.set_begun(founders);
    }

    fn note_missing(&self, answers: &[(Rank, FoundingAnswer)]) {
        let missing = answers.iter().filter(|(_, answer)| answer.is_err());
        let name = |rank: Rank| self.places.name(ReplicaId { group: self.own.group, rank });
        self.service.set_missing(missing.map(|(rank, _)| name(*rank)).collect());
    }
}

/// Returns the list of all processes, if all are present.
pub(super) fn list_all(own: u64, answers: &[(Rank, FoundingAnswer)]) -> Option<Vec<u64>> {
    let others: Option<Vec<u64>> =
        answers.iter().map(|(_, answer)| answer.as_ref().ok().map(|(life, _)| *life)).collect();
    let mut founders = vec![own];
    founders.extend(others?);
    Some(founders)
}
