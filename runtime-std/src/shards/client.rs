//! A client, which multicasts to sets of groups, and learns which replicas have delivered.
//!
//! A client has no thread of its own. Accepted messages are sent, and answers received, while its
//! owner calls it. A program that does other things after a multicast must call [`Client::step`]
//! from time to time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use tramontane_core::fabric::LocalBell as _;
use tramontane_core::ids::{ClientNumber, GroupId};
use tramontane_core::tram::{Answered, Answers, Destinations, MessageId, ReplicaId, SendError};
use tramontane_verbs::Site;

use super::ask::Asker;
use super::client_engine::{AnyEngine, ClientError, Delivery, each_engine};
use super::description::Description;
use super::lives::Life;
use super::places::Places;
use super::seat::{Seats, Taken};
use super::start::{StartOptions, StartingProcess, open_device};
use super::start_error::StartError;
use crate::fabric::{AnyBell, choice};
use crate::poll::Idle;
use crate::shared_memory;

/// The maximum sleep during a wait for an answer, after which the client checks that its peers are
/// still running.
const SLEEP_MAX: Duration = Duration::from_millis(5);

/// The maximum sleep of a client that has nothing in flight. Of a thousand idle clients on one
/// machine, few are awake at a time.
const IDLE_SLEEP_MAX: Duration = Duration::from_millis(100);

/// The sleep between two steps of a client that connects or leaves.
const SHORT_SLEEP: Duration = Duration::from_millis(1);

/// Time limit for the root to accept a returned place.
const GIVE_BACK: Duration = Duration::from_secs(1);

static NEVER: AtomicBool = AtomicBool::new(false);

/// A client of an overlay. If it is dropped, it leaves without notice, and its place becomes free
/// only when its lease has expired. See [`Client::leave`].
pub struct Client {
    engine: AnyEngine,
    asker: Asker,
    places: Places,
    taken: Taken,
}

impl Client {
    /// Obtains a place, and meets the replicas. Returns once a quorum is connected in each of these
    /// groups, and in each group that passes messages on to them. An empty set means all groups.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn connect(
        description: &Description,
        groups: Destinations,
        options: StartOptions<'_>,
    ) -> Result<Self, StartError> {
        let until = Instant::now() + options.time_limit;
        let place = StartingProcess::of(description)?;
        let asker = Asker::new(&place);
        let device = open_device(description, || place.own_address())?;
        let (taken, mut engine) = take_place(&place, description, device, &asker, until, &options)?;
        let needed = needed(&place.places, groups);
        loop {
            let missing = each_engine!(&engine, engine => engine.missing(needed));
            if missing.is_empty() {
                break;
            }
            if options.cancel.load(Ordering::Relaxed) {
                return Err(StartError::Cancelled);
            }
            if Instant::now() >= until {
                let missing = missing.into_iter().map(|of| place.places.name(of)).collect();
                return Err(StartError::NotMet { missing });
            }
            each_engine!(&mut engine, engine => engine.step())
                .map_err(|error| client_stopped(error, &place.places))?;
            let slept = each_engine!(&mut engine, engine => engine.sleep(SHORT_SLEEP, || false));
            slept.map_err(|error| client_stopped(error, &place.places))?;
        }
        Ok(Self { engine, asker, places: place.places, taken })
    }

    /// Returns the names and ids of the overlay.
    #[must_use]
    pub const fn places(&self) -> &Places {
        &self.places
    }

    /// Returns the client's number, which no other connected client has.
    #[must_use]
    pub const fn number(&self) -> ClientNumber {
        self.taken.number
    }

    /// Returns the client's incarnation, which distinguishes it from earlier clients with its
    /// number.
    #[must_use]
    pub const fn incarnation(&self) -> u32 {
        self.taken.life.incarnation
    }

    /// Returns the number of messages that are in flight, or that have been answered but not yet
    /// returned by [`Client::poll`].
    #[must_use]
    pub fn under_way(&self) -> u64 {
        each_engine!(&self.engine, engine => engine.under_way())
    }

    /// Returns the groups of which this client has too few replicas connected for a majority.
    /// Messages that are for such a group, or pass through it, are not answered until it has one.
    #[must_use]
    pub fn without_majority(&self) -> Destinations {
        each_engine!(&self.engine, engine => engine.without_majority())
    }

    /// Accepts a message for a set of groups. The next [`Client::step`] or wait sends it.
    ///
    /// # Errors
    /// [`SendError`]: nothing was sent then. [`SendError::Full`]: take answers first.
    #[inline]
    pub fn multicast(
        &mut self,
        destinations: Destinations,
        payload: &[u8],
        answers: Answers,
    ) -> Result<MessageId, SendError> {
        each_engine!(&mut self.engine, engine => engine.multicast(destinations, payload, answers))
    }

    /// Sends accepted messages, and checks for answers. Never blocks. Returns whether anything was
    /// done.
    ///
    /// # Errors
    /// [`ClientError`].
    #[inline]
    pub fn step(&mut self) -> Result<bool, ClientError> {
        each_engine!(&mut self.engine, engine => engine.step())
    }

    /// Returns the oldest answered message that has not been returned yet.
    #[inline]
    pub fn poll(&mut self) -> Option<Answered> {
        each_engine!(&mut self.engine, engine => engine.poll())
    }

    /// Waits for the next answered message, for at most `timeout`. Returns `None` if there is none.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<Answered>, ClientError> {
        let start = Instant::now();
        loop {
            let has_stepped = self.step_until(|| false, timeout.saturating_sub(start.elapsed()))?;
            match self.poll() {
                None if has_stepped && start.elapsed() < timeout => {}
                answered => return Ok(answered),
            }
        }
    }

    /// Steps until something was done, a message has been answered, or there is other work, for at
    /// most `timeout`. Returns false if the time has passed. Another thread that has work wakes
    /// this one with the [`waker`](Client::waker).
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn step_until(
        &mut self,
        has_work: impl Fn() -> bool,
        timeout: Duration,
    ) -> Result<bool, ClientError> {
        let start = Instant::now();
        let mut idle = Idle::new(each_engine!(&self.engine, engine => engine.idle_time()));
        loop {
            if self.step()? || self.has_answers() || has_work() {
                return Ok(true);
            }
            let is_time = idle.pause();
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            if is_time {
                let most = if self.under_way() == 0 { IDLE_SLEEP_MAX } else { SLEEP_MAX };
                let timeout = left.min(most);
                each_engine!(&mut self.engine, engine => engine.sleep(timeout, &has_work))?;
            }
        }
    }

    fn has_answers(&self) -> bool {
        each_engine!(&self.engine, engine => engine.has_answers())
    }

    /// Returns a waker that ends the sleep of the thread that steps this client.
    #[must_use]
    pub fn waker(&self) -> Waker {
        let bell = each_engine!(&self.engine, engine => engine.bell());
        Waker::from(Arc::new(ClientBell(bell)))
    }

    /// Returns the known deliveries of a message. Valid until the next message is accepted.
    #[must_use]
    pub fn deliveries(&self, answered: &Answered) -> Vec<Delivery> {
        each_engine!(&self.engine, engine => engine.deliveries(answered))
    }

    /// Copies the answer of one replica to a message, which may be longer than the given room.
    /// Returns its length in bytes, or `None` if the replica is not among the [deliveries]. If the
    /// length exceeds [`answer_max`](Description::answer_max), only the first bytes are known.
    /// Valid until the next message is accepted.
    ///
    /// [deliveries]: Client::deliveries
    #[must_use]
    pub fn answer(&self, answered: &Answered, replica: ReplicaId, into: &mut [u8]) -> Option<u64> {
        each_engine!(&self.engine, engine => engine.answer(answered, replica, into))
    }

    /// Waits until all messages in flight have been answered, announces that no more follow, and
    /// returns the client's place. Answers that have not been polled are lost. Returns whether the
    /// groups have closed the place in time; otherwise, they close it when its lease expires.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn leave(mut self, timeout: Duration) -> Result<bool, ClientError> {
        let until = Instant::now() + timeout;
        while each_engine!(&self.engine, engine => engine.under_way()) > 0 && Instant::now() < until
        {
            self.wait(SLEEP_MAX)?;
        }
        each_engine!(&mut self.engine, engine => engine.say_leaving());
        let mut has_left = each_engine!(&self.engine, engine => engine.has_left())?;
        while !has_left && Instant::now() < until {
            if !each_engine!(&mut self.engine, engine => engine.step())? {
                each_engine!(&mut self.engine, engine => engine.sleep(SHORT_SLEEP, || false))?;
            }
            has_left = each_engine!(&self.engine, engine => engine.has_left())?;
        }
        each_engine!(&mut self.engine, engine => engine.part());
        if has_left {
            let (asker, places) = (&self.asker, &self.places);
            let until = Instant::now() + GIVE_BACK;
            Seats { asker, places, until, cancel: &NEVER }.give_back(&self.taken);
        }
        Ok(has_left)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Client").field("taken", &self.taken).finish_non_exhaustive()
    }
}

/// Wakes the thread that steps a client.
struct ClientBell(AnyBell);

impl Wake for ClientBell {
    fn wake(self: Arc<Self>) {
        self.0.ring_if_asleep();
    }
}

/// Obtains a client number, and opens the fabric of a process with that number.
fn take_place(
    place: &StartingProcess,
    description: &Description,
    mut device: Option<Site>,
    asker: &Asker,
    until: Instant,
    options: &StartOptions<'_>,
) -> Result<(Taken, AnyEngine), StartError> {
    let seats = Seats { asker, places: &place.places, until, cancel: options.cancel };
    let life = tramontane_control::incarnation()?;
    let mut others = BTreeSet::new();
    loop {
        let taken = seats.take(life, &others)?;
        match open(place, description, device.take(), &taken, options) {
            Ok(engine) => return Ok((taken, engine)),
            // A process that the root has forgotten still has its directory in the folder.
            Err(StartError::SharedMemory(shared_memory::Error::DuplicateId { .. })) => {
                seats.give_back(&taken);
                others.insert(taken.number.0);
            }
            Err(error) => {
                seats.give_back(&taken);
                return Err(error);
            }
        }
    }
}

fn open(
    place: &StartingProcess,
    description: &Description,
    device: Option<Site>,
    taken: &Taken,
    options: &StartOptions<'_>,
) -> Result<AnyEngine, StartError> {
    let node = place.places.client_node(taken.number);
    let Life { life, .. } = taken.life;
    let identity = place.identity_of(node, life);
    let residence = place.residence(description.fabric, &identity, options)?;
    AnyEngine::open(place, identity, taken, choice::open(node, residence.as_ref(), device)?)
}

/// Returns these groups, together with the groups that order messages for them.
fn needed(places: &Places, groups: Destinations) -> Destinations {
    if groups == Destinations::default() {
        return places.overlay().all();
    }
    let above: Option<GroupId> = places.overlay().lowest_common_ancestor(groups);
    above.map_or(groups, |above| groups.with(above))
}

fn client_stopped(error: ClientError, places: &Places) -> StartError {
    match error {
        ClientError::Refused { replica, why } => StartError::Refused { replica, why },
        ClientError::NoMemory(why) => StartError::NoMemory(why),
        ClientError::Closed
        | ClientError::Outdated(_)
        | ClientError::Left
        | ClientError::Broken(_) => StartError::NoSeat(places.overlay().limits().clients),
    }
}
