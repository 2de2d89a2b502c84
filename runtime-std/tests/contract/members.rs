//! Three members on a real fabric, all in this process. A lost member is dropped, and racing
//! members have their own threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tramontane_contract::{Actor, Breach, Next, Seat, Wake};
use tramontane_core::fabric::Fabric;
use tramontane_core::ids::Rank;
use tramontane_core::memory::{Row, RowWriter};

/// A time limit longer than a ring takes, even on a busy machine.
pub const SLEEP_MAX: Duration = Duration::from_secs(5);

/// A time limit longer than any race takes.
const RACE_MAX: Duration = Duration::from_secs(120);

/// The interface of a member in a race.
pub trait Racer: Send {
    /// Its fabric.
    type Fabric: Fabric;

    /// Number of turns between two checks of the clock, at which the other thread may get the
    /// processor.
    const TURNS_PER_LOOK: u32;

    /// Returns the member's fabric, its row, and all rows as the member sees them.
    fn seat(&mut self) -> (&mut Self::Fabric, RowWriter<'_>, Vec<Row<'_>>);

    /// Begins a member's step, because actors that only read do not poll.
    fn begin(fabric: &mut Self::Fabric);

    /// Sleeps for at most [`SLEEP_MAX`].
    fn sleep(fabric: &mut Self::Fabric) -> Wake;

    /// Yields the processor to the other thread, because both may have to share one.
    fn give_way() {
        std::thread::yield_now();
    }
}

/// The members by rank.
pub struct Members<M>(Vec<Option<M>>);

impl<M> FromIterator<M> for Members<M> {
    fn from_iter<I: IntoIterator<Item = M>>(members: I) -> Self {
        Self(members.into_iter().map(Some).collect())
    }
}

impl<M> Members<M> {
    pub fn get(&self, rank: Rank) -> &M {
        self.0[rank.index()].as_ref().expect("nobody uses who was lost")
    }

    pub fn get_mut(&mut self, rank: Rank) -> &mut M {
        self.0[rank.index()].as_mut().expect("nobody uses who was lost")
    }

    /// Returns the remaining members.
    pub fn iter(&self) -> impl Iterator<Item = &M> {
        self.0.iter().flatten()
    }

    /// Returns the remaining members, mutably.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut M> {
        self.0.iter_mut().flatten()
    }

    /// Drops a member, without any notice to the others.
    pub fn lose(&mut self, rank: Rank) {
        self.0[rank.index()] = None;
    }
}

impl<M: Racer> Members<M> {
    /// Runs two members in two threads until both are done, or one has found a breach.
    pub fn race(&mut self, actors: [(Rank, &mut dyn Actor<M::Fabric>); 2]) -> Result<(), Breach> {
        let race = Race::default();
        let mut members: Vec<Option<&mut M>> = self.0.iter_mut().map(Option::as_mut).collect();
        std::thread::scope(|scope| {
            let racing = actors.map(|(rank, actor)| {
                let member = members[rank.index()].take().expect("two different members");
                let race = &race;
                scope.spawn(move || {
                    let ended = act(member, actor, race);
                    if ended.is_err() {
                        race.stop.store(true, Ordering::Relaxed);
                    }
                    ended
                })
            });
            let [first, second] = racing.map(|thread| thread.join().expect("no panic"));
            first.and(second)
        })
    }
}

/// The state shared by the threads of a race.
#[derive(Default)]
struct Race {
    /// Set when one of them has found a breach.
    stop: AtomicBool,
    /// The number of actors that are done.
    done: AtomicUsize,
}

/// Runs an actor's turns until both actors are done, or the other has found a breach. An actor that
/// is done keeps stepping, because its last posts may wait for room, and the other actor for those
/// posts.
fn act<M: Racer>(
    member: &mut M,
    actor: &mut dyn Actor<M::Fabric>,
    race: &Race,
) -> Result<(), Breach> {
    let until = Instant::now() + RACE_MAX;
    let (fabric, row, rows) = member.seat();
    let mut slept = None;
    let mut turns = 0_u32;
    let mut is_done = false;
    while !race.stop.load(Ordering::Relaxed) && race.done.load(Ordering::Relaxed) < 2 {
        M::begin(fabric);
        if is_done {
            M::give_way();
        } else {
            match actor.turn(&mut Seat { fabric: &mut *fabric, row, rows: &rows }, slept.take())? {
                Next::Done => {
                    is_done = true;
                    race.done.fetch_add(1, Ordering::Relaxed);
                }
                Next::Sleep => slept = Some(M::sleep(fabric)),
                Next::Turn => {}
            }
        }
        turns = turns.wrapping_add(1);
        if turns.is_multiple_of(M::TURNS_PER_LOOK) {
            if Instant::now() > until {
                return Err(Breach(format!("after {RACE_MAX:?} the two members are not done")));
            }
            M::give_way();
        }
    }
    Ok(())
}
