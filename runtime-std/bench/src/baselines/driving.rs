//! The threads: each steps its process until the run is over, and sleeps where it finds no work.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tramontane_core::fabric::{Fabric as _, HostFabric as _};
use tramontane_core::ids::{ClientNumber, GroupId, Time};
use tramontane_core::tram::{Answers, Delivered, Destinations, Halt, MessageId, Progress};
use tramontane_fixtures::random::Random;
use tramontane_runtime::member::Idle;

use super::Settings;
use super::carrying::Carrying;
use super::meeting::{Machine, Seat};
use crate::BenchError;

/// When a run ends.
pub(super) struct Over {
    /// Clients that have not done their part yet.
    pub(super) clients_left: AtomicUsize,
    /// It is given up then.
    pub(super) at: Instant,
}

impl Over {
    /// # Errors
    /// It took too long.
    fn check(&self) -> Result<bool, BenchError> {
        if Instant::now() > self.at {
            return Err(BenchError::Broken("the run takes longer than its time limit".into()));
        }
        Ok(self.clients_left.load(Ordering::Relaxed) == 0)
    }
}

/// A client's part of a run: done when this goes, also where the client fails.
struct Part<'v>(&'v Over);

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.0.clients_left.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a client has to do.
pub(super) struct Load {
    random: Random,
    groups: u16,
    destinations: u32,
    messages: u32,
    /// How many may be under way.
    under_way: usize,
    payload: Vec<u8>,
}

/// What a client has done.
pub(super) struct Done {
    pub(super) waited_us: Vec<f64>,
    pub(super) sent: BTreeMap<MessageId, Destinations>,
    pub(super) begun: Instant,
    pub(super) ended: Instant,
}

impl Load {
    pub(super) fn of(settings: &Settings, client: ClientNumber) -> Self {
        Self {
            random: Random::stream(settings.seed, &format!("client {client}")),
            groups: settings.parents.len() as u16,
            destinations: settings.destinations,
            messages: settings.messages,
            under_way: settings.window as usize,
            payload: vec![7; settings.payload_bytes as usize],
        }
    }

    fn choose(&mut self) -> Destinations {
        let mut groups: Vec<u16> = (0..self.groups).collect();
        self.random.shuffle(&mut groups);
        let chosen = groups.into_iter().take(self.destinations as usize).map(GroupId);
        chosen.fold(Destinations::default(), Destinations::with)
    }
}

/// How long a thread without work sleeps at most.
const NAP: Duration = Duration::from_millis(1);

/// After how long without work it sleeps: as long as a process of TRAM.
const PATIENCE: Duration = Duration::from_micros(20);

/// A process in its loop.
struct Looping<C: Carrying> {
    fabric: C::Fabric,
    idle: Idle,
}

impl<C: Carrying> Looping<C> {
    fn new(fabric: C::Fabric) -> Self {
        Self { fabric, idle: Idle::new(PATIENCE) }
    }

    /// One step, and a sleep if nothing came for a while.
    fn work(
        &mut self,
        mut step: impl FnMut(&mut C::Fabric) -> Result<Progress, Halt>,
    ) -> Result<(), BenchError> {
        let mut step = |fabric: &mut C::Fabric| {
            let progress = step(fabric).map_err(|halt| BenchError::Broken(halt.to_string()))?;
            C::carry(fabric);
            Ok::<bool, BenchError>(progress.is_idle())
        };
        let Self { fabric, idle } = self;
        if !step(fabric)? {
            idle.reset();
        } else if idle.pause() {
            if fabric.arm() && step(fabric)? {
                fabric.sleep(NAP);
            }
            fabric.disarm();
            idle.reset();
        }
        Ok(())
    }
}

/// Drives a replica until the run is over. Gives what it delivered.
pub(super) fn run_replica<C: Carrying>(
    seat: Seat<'_, C::Fabric>,
    over: &Over,
) -> Result<Vec<MessageId>, BenchError> {
    let Seat { fabric, rows, machine, .. } = seat;
    let mut looping = Looping::<C>::new(fabric);
    let mut order = Vec::new();
    if let Machine::Replica(mut replica) = machine {
        while !over.check()? {
            looping.work(|fabric| {
                let mut take = |message: &Delivered<'_>| {
                    order.push(message.id);
                    1
                };
                replica.step(Time(0), fabric, &rows, &mut take)
            })?;
        }
    }
    Ok(order)
}

/// Drives a client until its messages are answered by all.
pub(super) fn run_client<C: Carrying>(
    seat: Seat<'_, C::Fabric>,
    mut load: Load,
    over: &Over,
) -> Result<Done, BenchError> {
    let part = Part(over);
    let Seat { fabric, rows, machine, .. } = seat;
    let mut looping = Looping::<C>::new(fabric);
    let begun = Instant::now();
    let mut done = Done { waited_us: Vec::new(), sent: BTreeMap::new(), begun, ended: begun };
    let Machine::Client(mut client) = machine else { return Ok(done) };
    let mut sent_at = HashMap::new();
    while load.messages > 0 || !client.is_quiet() {
        over.check()?;
        while sent_at.len() < load.under_way && load.messages > 0 {
            let to = load.choose();
            // A full window is tried again: a slow replica has not answered yet.
            let Ok(id) = client.multicast(to, &load.payload, Answers::OneOfEach) else { break };
            load.messages -= 1;
            done.sent.insert(id, to);
            sent_at.insert(id.number, Instant::now());
        }
        looping.work(|fabric| client.step(Time(0), fabric, &rows))?;
        while let Some(answered) = client.poll() {
            let Some(at) = sent_at.remove(&answered.id.number) else { continue };
            done.ended = Instant::now();
            done.waited_us.push(done.ended.duration_since(at).as_secs_f64() * 1e6);
        }
    }
    drop(part);
    // Its peers lose it only when all have done their part.
    while !over.check()? {
        looping.work(|fabric| client.step(Time(0), fabric, &rows))?;
    }
    Ok(done)
}
