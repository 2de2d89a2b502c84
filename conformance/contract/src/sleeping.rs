//! Wakeups: a sleeping member is woken by writes to it, and misses none of them (IDL-1).

use std::sync::atomic::{AtomicU64, Ordering};

use tramontane_core::fabric::{ErrorKind, Event, Fabric, FabricError, Token};
use tramontane_core::ids::Rank;

use crate::report::{Breach, ClauseResult, Finding, clauses, ensure};
use crate::scene::{A, B, C, drain, guard, open_all, post, store};
use crate::testbed::{Actor, Bench, Next, Seat, VIEW, Wake};

clauses! { pub(super) Bench
    /// A wake wakes only its peer, whether the peer is asleep or awake.
    "wake-rings-awake", "Fabric::wake; Event::Woken" => wake_rings_awake;
    /// Arming fails while an event or write that has arrived has not been polled, and succeeds
    /// after that.
    "ring-forbids-sleep", "Fabric::arm; IDL-1" => ring_forbids_sleep;
    /// A member that arms at any moment of a write's transfer either sees the write or is woken.
    "post-rings-armed", "Fabric::arm; IDL-1" => post_rings_armed;
    /// A post does not wake a peer that is awake, whether the peer never armed or has disarmed.
    "post-leaves-awake-alone",
        "Fabric::disarm; DESIGN, The way of a message (rings only those who say that they sleep)" => post_leaves_awake_alone;
    /// Two members that sleep whenever they can, and wake each other by posts, never both sleep.
    "no-lost-wake-up", "IDL-1" => no_lost_wake_up;
    /// Each wake without data ends a sleep, prevents it, or is polled.
    "no-lost-ring", "Fabric::wake; IDL-1" => no_lost_ring;
}

const CELL: usize = 64;

fn woken(events: &[Event]) -> bool {
    events.contains(&Event::Woken)
}

fn wake_rings_awake<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    for (from, to, other) in [(A, B, C), (C, B, A), (B, A, C)] {
        bench.fabric(from).wake(VIEW, to);
        bench.settle();
        ensure!(woken(&drain(bench, to)?), "{from} woke {to}, which was awake but gets no event");
        ensure!(!woken(&drain(bench, other)?), "{from} woke {to}, but {other} gets an event");
    }
    Ok(Finding::Holds)
}

fn ring_forbids_sleep<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    let ensure_arms = |bench: &mut T, after: &str| -> Result<(), Breach> {
        drain(bench, B)?;
        let armed = bench.fabric(B).arm();
        bench.fabric(B).disarm();
        ensure!(armed, "{after} and everything was polled, but {B} cannot arm");
        Ok(())
    };
    ensure_arms(bench, "nothing arrived")?;
    bench.fabric(A).wake(VIEW, B);
    bench.settle();
    ensure!(!bench.fabric(B).arm(), "{B} was woken and did not poll, but may sleep");
    bench.fabric(B).disarm();
    ensure_arms(bench, "a wake arrived")?;
    post(bench, (B, A), &[guard(CELL, 8)], Some(Token(4)))?;
    bench.settle();
    ensure!(
        !bench.fabric(B).arm(),
        "a list of {B} has completed and was not polled, but {B} may sleep"
    );
    bench.fabric(B).disarm();
    ensure_arms(bench, "a completion arrived")?;
    Ok(Finding::Holds)
}

/// Returns B's view of A's cell.
fn seen(bench: &impl Bench) -> u64 {
    bench.copy(B, A).cell(CELL).map_or(0, |cell| cell.load())
}

/// Has B wait for a value as a poller does: arm, check once more, sleep.
fn sleep_until<T: Bench>(bench: &mut T, value: u64, when: &str) -> Result<(), Breach> {
    for _ in 0..100 {
        if seen(bench) == value {
            return Ok(());
        }
        if !bench.fabric(B).arm() {
            bench.fabric(B).disarm();
            drain(bench, B)?;
            bench.pass();
            continue;
        }
        if seen(bench) != value {
            let wake = bench.sleep(B);
            let there = seen(bench) == value;
            ensure!(
                wake == Wake::Rung,
                "{B} armed {when}, and is never woken (the write landed: {there})"
            );
        }
        bench.fabric(B).disarm();
        drain(bench, B)?;
    }
    Err(Breach(format!("{B} armed {when}, but is woken repeatedly without cause")))
}

fn post_rings_armed<T: Bench>(bench: &mut T) -> ClauseResult {
    const MOMENTS: u64 = 80;
    open_all(bench)?;
    for moment in 0..MOMENTS {
        store(bench, A, CELL, &(2 * moment + 1).to_ne_bytes());
        post(bench, (A, B), &[guard(CELL, 8)], None)?;
        for _ in 0..moment {
            bench.pass();
        }
        sleep_until(bench, 2 * moment + 1, &format!("{moment} moments after the post"))?;
        bench.settle();
        drain(bench, B)?;
        // The opposite case: the member already sleeps.
        let armed = bench.fabric(B).arm();
        ensure!(armed, "nothing is in flight and everything is polled, but {B} cannot arm");
        for _ in 0..moment {
            bench.pass();
        }
        store(bench, A, CELL, &(2 * moment + 2).to_ne_bytes());
        post(bench, (A, B), &[guard(CELL, 8)], None)?;
        if bench.sleep(B) == Wake::Overslept {
            return Err(Breach(format!(
                "{B} was asleep when {A} posted to it, but was never woken"
            )));
        }
        bench.fabric(B).disarm();
        drain(bench, B)?;
        sleep_until(bench, 2 * moment + 2, "after a ring")?;
        bench.settle();
        drain(bench, B)?;
    }
    Ok(Finding::Holds)
}

fn post_leaves_awake_alone<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    for round in 1..=10 {
        let post_some = |bench: &mut T| -> Result<Vec<Event>, Breach> {
            store(bench, A, CELL, &[round; 8]);
            post(bench, (A, B), &[guard(CELL, 8)], None)?;
            bench.settle();
            drain(bench, B)
        };
        ensure!(!woken(&post_some(bench)?), "{B} is awake, but a post wakes it");
        let armed = bench.fabric(B).arm();
        ensure!(armed, "everything that arrived is polled, but {B} cannot arm");
        bench.fabric(B).disarm();
        ensure!(!woken(&post_some(bench)?), "{B} disarmed, but a post wakes it");
    }
    Ok(Finding::Holds)
}

/// Does a little work whose length changes from round to round, so that rounds meet at different
/// moments.
fn dawdle(round: u64) {
    for _ in 0..round.wrapping_mul(2_654_435_761) % 97 {
        std::hint::spin_loop();
    }
}

/// Returns the number of rounds in which two members sleep and wake. Each round takes a system
/// call, unlike a plain read.
fn rings(bench: &impl Bench) -> u64 {
    (bench.rounds() / 10).max(200)
}

/// One of two members that take turns: each answers the other's number with the next one, and
/// sleeps in between.
struct Answering {
    peer: Rank,
    own: u64,
    /// Whether this member's number has been stored but not yet posted.
    unposted: bool,
    rounds: u64,
}

impl Answering {
    fn theirs<F>(&self, seat: &Seat<'_, F>) -> u64 {
        seat.rows[self.peer.index()].cell(CELL).map_or(0, |cell| cell.load())
    }

    fn answer<F: Fabric>(&mut self, seat: &mut Seat<'_, F>) -> Result<Next, Breach> {
        match seat
            .fabric
            .post(VIEW, self.peer, &[guard(CELL, 8)], None)
            .map_err(|error| error.kind())
        {
            Ok(()) => self.unposted = false,
            Err(ErrorKind::QueueFull) => {}
            Err(kind) => return Err(Breach(format!("a post was refused: {kind}"))),
        }
        Ok(if !self.unposted && self.own >= self.rounds { Next::Done } else { Next::Turn })
    }
}

impl<F: Fabric> Actor<F> for Answering {
    fn turn(&mut self, seat: &mut Seat<'_, F>, slept: Option<Wake>) -> Result<Next, Breach> {
        if let Some(wake) = slept {
            let there = self.theirs(seat) > self.own;
            ensure!(
                wake == Wake::Rung,
                "the member that waits for {} is never woken (it landed: {there})",
                self.own + 1
            );
            seat.fabric.disarm();
        }
        while seat.fabric.poll().is_some() {}
        if self.unposted {
            return self.answer(seat);
        }
        if self.theirs(seat) > self.own {
            self.own = self.theirs(seat) + 1;
            dawdle(self.own);
            if let Ok(cell) = seat.row.cell(CELL) {
                cell.publish(self.own);
            }
            self.unposted = true;
            return self.answer(seat);
        }
        if !seat.fabric.arm() {
            seat.fabric.disarm();
            return Ok(Next::Turn);
        }
        if self.theirs(seat) > self.own {
            seat.fabric.disarm();
            return Ok(Next::Turn);
        }
        Ok(Next::Sleep)
    }
}

fn no_lost_wake_up<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    let rounds = rings(bench);
    store(bench, A, CELL, &1_u64.to_ne_bytes());
    let mut first = Answering { peer: B, own: 1, unposted: true, rounds };
    let mut second = Answering { peer: A, own: 0, unposted: false, rounds };
    bench.race([(A, &mut first), (B, &mut second)])?;
    Ok(Finding::Holds)
}

/// Wakes the other member, and waits until it has noticed.
struct Ringer<'s> {
    rung: &'s AtomicU64,
    noticed: &'s AtomicU64,
    rounds: u64,
}

impl<F: Fabric> Actor<F> for Ringer<'_> {
    fn turn(&mut self, seat: &mut Seat<'_, F>, _: Option<Wake>) -> Result<Next, Breach> {
        let rung = self.rung.load(Ordering::Relaxed);
        if self.noticed.load(Ordering::Acquire) < rung {
            return Ok(Next::Turn);
        }
        if rung == self.rounds {
            return Ok(Next::Done);
        }
        dawdle(rung);
        self.rung.store(rung + 1, Ordering::Release);
        seat.fabric.wake(VIEW, B);
        Ok(Next::Turn)
    }
}

/// Sleeps whenever possible, and notes each wake.
struct Sleeper<'s> {
    rung: &'s AtomicU64,
    noticed: &'s AtomicU64,
    rounds: u64,
}

impl<F: Fabric> Actor<F> for Sleeper<'_> {
    fn turn(&mut self, seat: &mut Seat<'_, F>, slept: Option<Wake>) -> Result<Next, Breach> {
        if let Some(wake) = slept {
            let rung = self.rung.load(Ordering::Acquire);
            let noticed = self.noticed.load(Ordering::Relaxed);
            ensure!(
                wake == Wake::Rung,
                "wake {rung} does not end the sleep; {noticed} were noticed"
            );
            seat.fabric.disarm();
        }
        let mut told = false;
        while let Some(event) = seat.fabric.poll() {
            told |= event == Event::Woken;
        }
        if told {
            self.noticed.store(self.rung.load(Ordering::Acquire), Ordering::Release);
        }
        if self.noticed.load(Ordering::Relaxed) == self.rounds {
            return Ok(Next::Done);
        }
        Ok(if seat.fabric.arm() { Next::Sleep } else { Next::Turn })
    }
}

fn no_lost_ring<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    let (rung, noticed) = (AtomicU64::new(0), AtomicU64::new(0));
    let rounds = rings(bench);
    let mut ringer = Ringer { rung: &rung, noticed: &noticed, rounds };
    let mut sleeper = Sleeper { rung: &rung, noticed: &noticed, rounds };
    bench.race([(A, &mut ringer), (B, &mut sleeper)])?;
    Ok(Finding::Holds)
}
