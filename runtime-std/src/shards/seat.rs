//! Obtains a client's number and incarnation from a quorum of the root's replicas.
//!
//! # Invariants
//! - Two live clients never have the same number, because each has obtained its number from a
//!   quorum of the same group, and any two quorums share a replica.
//! - Under the same number, a later client has a higher incarnation.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tramontane_core::ids::ClientNumber;
use tramontane_core::tram::ReplicaId;

use super::ask::{AskError, Asker};
use super::calls::{is_final, why_refused};
use super::lives::{Life, Seat};
use super::messages::{AskReply, AskRequest};
use super::places::Places;
use super::start_error::StartError;

/// Time limit for the answer of one replica.
const LOOK: Duration = Duration::from_secs(1);

/// The interval between attempts.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// A client's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) number: ClientNumber,
    pub(super) life: Life,
}

/// The group that grants places to clients, and the means of asking it.
pub(super) struct Seats<'s> {
    pub(super) asker: &'s Asker,
    pub(super) places: &'s Places,
    pub(super) until: Instant,
    pub(super) cancel: &'s AtomicBool,
}

impl Seats<'_> {
    /// Takes a place for a process, excluding the places in `but`.
    pub(super) fn take(&self, life: u64, but: &BTreeSet<u16>) -> Result<Taken, StartError> {
        let mut tried = but.clone();
        let mut is_full = false;
        loop {
            if self.cancel.load(Ordering::Relaxed) {
                return Err(StartError::Cancelled);
            }
            let (seats, missing) = self.look()?;
            if let Some(seats) = seats {
                let wanted = self.choose(life, &seats, &tried);
                is_full = wanted.is_none();
                if let Some(taken) = wanted {
                    if self.claim(&taken) {
                        return Ok(taken);
                    }
                    tried.insert(taken.number.0);
                    continue;
                }
                // Places that other clients have taken in the meantime may become free, so only the
                // excluded ones count as tried.
                tried.clone_from(but);
            }
            if Instant::now() >= self.until {
                let clients = self.places.overlay().limits().clients;
                let full = StartError::NoSeat(clients);
                return Err(if is_full { full } else { StartError::NotMet { missing } });
            }
            std::thread::sleep(LOOK_PAUSE);
        }
    }

    /// Returns a place.
    pub(super) fn give_back(&self, taken: &Taken) {
        let Taken { number, life } = *taken;
        let request = AskRequest::GiveBack { number: number.0, life: life.life };
        let _ = self.asker.ask_all(&self.root(), request, LOOK, self.cancel);
    }

    fn root(&self) -> Vec<ReplicaId> {
        self.places.replicas_of(self.places.root()).collect()
    }

    fn quorum(&self) -> usize {
        usize::from(self.places.overlay().quorum(self.places.root()))
    }

    /// Returns the places as known to all replicas that answer, if these form a quorum, and the
    /// replicas that do not answer.
    #[allow(clippy::type_complexity)]
    fn look(&self) -> Result<(Option<Vec<Seat>>, Vec<String>), StartError> {
        let answers = self.asker.ask_all(&self.root(), AskRequest::Seats, LOOK, self.cancel);
        let (mut answered, mut all, mut missing) = (0, Vec::new(), Vec::new());
        for (replica, answer) in answers {
            match answer {
                Ok(AskReply::Seats(seats)) => {
                    answered += 1;
                    all.extend(seats);
                }
                Err(AskError::OpenSession(error)) if is_final(&error) => {
                    let why = why_refused(&error, self.asker.digest());
                    return Err(StartError::Refused { replica: self.places.name(replica), why });
                }
                Ok(_) | Err(_) => missing.push(self.places.name(replica)),
            }
        }
        Ok(((answered >= self.quorum()).then_some(all), missing))
    }

    /// Chooses a number that all replicas consider free, with an incarnation that none of them has
    /// seen. Clients that start at the same time begin their search at different numbers.
    fn choose(&self, life: u64, seats: &[Seat], tried: &BTreeSet<u16>) -> Option<Taken> {
        let clients = self.places.overlay().limits().clients;
        let first = u16::try_from(life % u64::from(clients)).unwrap_or(0);
        let known = |number: u16| seats.iter().filter(move |seat| seat.number == number);
        let mut numbers = (first..clients).chain(0..first);
        let number = numbers
            .find(|number| !tried.contains(number) && known(*number).all(|seat| seat.is_free))?;
        let highest = known(number).map(|seat| seat.incarnation).max().unwrap_or(0);
        let life = Life { life, incarnation: highest.saturating_add(1) };
        Some(Taken { number: ClientNumber(number), life })
    }

    /// Claims a place. If only a minority grants it, the place is returned.
    fn claim(&self, taken: &Taken) -> bool {
        let Taken { number, life } = *taken;
        let request = AskRequest::Claim { number: number.0, life };
        let answers = self.asker.ask_all(&self.root(), request, LOOK, self.cancel);
        let is_given = |answer: &&(_, _)| matches!(answer.1, Ok(AskReply::Claimed(true)));
        let is_taken = answers.iter().filter(is_given).count() >= self.quorum();
        if !is_taken {
            self.give_back(taken);
        }
        is_taken
    }
}
