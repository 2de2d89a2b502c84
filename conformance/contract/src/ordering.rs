//! Order: within a write, between writes to one peer, and between content and its guard. Each
//! clause is a search: one member writes round after round, another reads all the time, and must
//! never see the later value before the earlier one.

use std::sync::atomic::{AtomicU64, Ordering};

use tramontane_core::fabric::{ErrorKind, Event, Fabric, FabricError, Promises, Token, Write};
use tramontane_core::memory::Row;

use crate::report::{Breach, ClauseResult, Finding, clauses, ensure};
use crate::scene::{A, B, content, guard, open_all, promises};
use crate::testbed::{Actor, Bench, Next, Seat, VIEW, Wake};

clauses! { pub(super) Bench
    /// If order between writes is promised, a list's writes become visible in the list's order.
    "write-order-in-list",
        "Promises::WRITE_ORDER; Fabric::post" => |bench| order(bench, ListsPerRound::One);
    /// If order between writes is promised, lists to one peer become visible in the order of
    /// posting.
    "write-order-between-lists",
        "Promises::WRITE_ORDER; Fabric::post" => |bench| order(bench, ListsPerRound::Each);
    /// If address order is promised, a reader that sees a write's last cell sees the whole write.
    "address-order", "Promises::ADDRESS_ORDER; SMC-6" => address_order;
    /// A reader that sees a guard also sees the content before it, posted as the promises require.
    "guard-after-content", "Capabilities::can_guard; SMC-6, HAL-1" => guard_after_content;
}

/// The early cell, the late cell, and filler between and after them. Without filler, two swapped
/// cells would be visible for only a nanosecond.
const EARLY: usize = 64;
const LATE: usize = 4096;
const FILLERS: [(usize, usize); 2] = [(1024, 2048), (4352, 2048)];

/// A message followed by its counter, as in a slot.
const PAYLOAD: (usize, usize) = (2048, 2040);
const COUNTER: usize = PAYLOAD.0 + PAYLOAD.1;

#[derive(Clone, Copy, PartialEq, Eq)]
enum ListsPerRound {
    One,
    Each,
}

fn cell(row: &Row<'_>, offset: usize) -> u64 {
    row.cell(offset).map_or(0, |cell| cell.load())
}

fn publish<F>(seat: &Seat<'_, F>, offset: usize, value: u64) {
    if let Ok(cell) = seat.row.cell(offset) {
        cell.publish(value);
    }
}

/// Posts to B; returns false if there is no room now.
fn offer<F: Fabric>(
    seat: &mut Seat<'_, F>,
    writes: &[Write],
    token: Option<Token>,
) -> Result<bool, Breach> {
    match seat.fabric.post(VIEW, B, writes, token).map_err(|error| error.kind()) {
        Ok(()) => Ok(true),
        Err(ErrorKind::QueueFull) => Ok(false),
        Err(kind) => Err(Breach(format!("a post of {} writes was refused: {kind}", writes.len()))),
    }
}

/// Writes the early cell, filler, the late cell and filler, round after round, without waiting.
struct RoundWriter {
    lists: Vec<Vec<Write>>,
    rounds: u64,
    round: u64,
    posted: usize,
}

impl<F: Fabric> Actor<F> for RoundWriter {
    fn turn(&mut self, seat: &mut Seat<'_, F>, _: Option<Wake>) -> Result<Next, Breach> {
        while seat.fabric.poll().is_some() {}
        if self.posted == self.lists.len() {
            if self.round == self.rounds {
                return Ok(Next::Done);
            }
            (self.round, self.posted) = (self.round + 1, 0);
            publish(seat, EARLY, self.round);
            publish(seat, LATE, self.round);
        }
        while let Some(list) = self.lists.get(self.posted) {
            if !offer(seat, list, None)? {
                break;
            }
            self.posted += 1;
        }
        Ok(Next::Turn)
    }
}

/// Reads the late cell and then the early one, which must have arrived.
struct Comparing {
    rounds: u64,
}

impl<F: Fabric> Actor<F> for Comparing {
    fn turn(&mut self, seat: &mut Seat<'_, F>, _: Option<Wake>) -> Result<Next, Breach> {
        let late = cell(&seat.rows[A.index()], LATE);
        seat.fabric.observe_barrier();
        let early = cell(&seat.rows[A.index()], EARLY);
        ensure!(
            early >= late,
            "the late write is of round {late}, but the early one is only of round {early}"
        );
        Ok(if late == self.rounds { Next::Done } else { Next::Turn })
    }
}

fn order<T: Bench>(bench: &mut T, lists: ListsPerRound) -> ClauseResult {
    if !promises(bench, Promises::WRITE_ORDER) {
        return Ok(Finding::NotApplicable("order between writes is not promised"));
    }
    open_all(bench)?;
    let writes = [
        guard(EARLY, 8),
        content(FILLERS[0].0, FILLERS[0].1),
        guard(LATE, 8),
        content(FILLERS[1].0, FILLERS[1].1),
    ];
    let lists = match lists {
        ListsPerRound::One => vec![writes.to_vec()],
        ListsPerRound::Each => writes.into_iter().map(|write| vec![write]).collect(),
    };
    let rounds = bench.rounds();
    let posted = lists.len();
    let mut writer = RoundWriter { lists, rounds, round: 0, posted };
    bench.race([(A, &mut writer), (B, &mut Comparing { rounds })])?;
    Ok(Finding::Holds)
}

/// The way in which a message is posted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Payload and counter in one write.
    OneWrite,
    /// Content and guard in one list.
    OneList,
    /// The guard after the content has completed.
    GuardUponCompletion,
}

/// The stage of a writer within its round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OrderingStage {
    Build,
    Post,
    AwaitContent,
    PostGuard,
    AwaitAll,
}

/// Writes messages one by one into one slot. Each is written only after the previous one has
/// completed and has been seen.
struct Filling<'s> {
    manner: Manner,
    rounds: u64,
    round: u64,
    stage: OrderingStage,
    completed: u64,
    seen: &'s AtomicU64,
}

impl Filling<'_> {
    /// Stores the payload and then the counter, as a member does.
    fn build<F>(&self, seat: &Seat<'_, F>) {
        let stored = seat.row.apply(PAYLOAD.0, &[fill_of(self.round); PAYLOAD.1]);
        debug_assert!(stored.is_ok(), "the slot lies in the row");
        if self.manner != Manner::GuardUponCompletion {
            publish(seat, COUNTER, self.round);
        }
    }
}

/// Returns the byte that fills a round's payload.
fn fill_of(round: u64) -> u8 {
    u8::try_from(round % 255).map_or(0, |byte| byte + 1)
}

impl<F: Fabric> Actor<F> for Filling<'_> {
    fn turn(&mut self, seat: &mut Seat<'_, F>, _: Option<Wake>) -> Result<Next, Breach> {
        while let Some(event) = seat.fabric.poll() {
            if let Event::Completed(Token(round)) = event {
                self.completed = round;
            }
        }
        let whole = [content(PAYLOAD.0, PAYLOAD.1 + 8)];
        let pair = [content(PAYLOAD.0, PAYLOAD.1), guard(COUNTER, 8)];
        let token = Some(Token(self.round));
        match self.stage {
            OrderingStage::Build if self.round == self.rounds => return Ok(Next::Done),
            OrderingStage::Build => {
                self.round += 1;
                self.build(seat);
                self.stage = OrderingStage::Post;
            }
            OrderingStage::Post => {
                let (writes, next) = match self.manner {
                    Manner::OneWrite => (&whole[..], OrderingStage::AwaitAll),
                    Manner::OneList => (&pair[..], OrderingStage::AwaitAll),
                    Manner::GuardUponCompletion => (&pair[..1], OrderingStage::AwaitContent),
                };
                if offer(seat, writes, token)? {
                    self.stage = next;
                }
            }
            OrderingStage::AwaitContent if self.completed == self.round => {
                publish(seat, COUNTER, self.round);
                self.stage = OrderingStage::PostGuard;
            }
            OrderingStage::PostGuard => {
                if offer(seat, &pair[1..], None)? {
                    self.stage = OrderingStage::AwaitAll;
                }
            }
            OrderingStage::AwaitAll if self.completed == self.round => {
                if self.seen.load(Ordering::Acquire) == self.round {
                    self.stage = OrderingStage::Build;
                }
            }
            OrderingStage::AwaitContent | OrderingStage::AwaitAll => {}
        }
        Ok(Next::Turn)
    }
}

/// Reads the counter, and if it moved, every byte of the payload.
struct Reading<'s> {
    rounds: u64,
    seen: &'s AtomicU64,
}

impl<F: Fabric> Actor<F> for Reading<'_> {
    fn turn(&mut self, seat: &mut Seat<'_, F>, _: Option<Wake>) -> Result<Next, Breach> {
        let row = &seat.rows[A.index()];
        let seen = self.seen.load(Ordering::Relaxed);
        let counter = cell(row, COUNTER);
        if counter == seen {
            return Ok(if seen == self.rounds { Next::Done } else { Next::Turn });
        }
        ensure!(counter == seen + 1, "after message {seen} the counter is {counter}");
        seat.fabric.observe_barrier();
        let mut payload = [0; PAYLOAD.1];
        let read = row.read(PAYLOAD.0, &mut payload);
        debug_assert!(read.is_ok(), "the slot lies in the row");
        let torn = payload.iter().position(|byte| *byte != fill_of(counter));
        if let Some(at) = torn {
            let byte = payload[at];
            return Err(Breach(format!(
                "the counter is {counter}, but byte {at} of its message is {byte} instead of {}",
                fill_of(counter)
            )));
        }
        self.seen.store(counter, Ordering::Release);
        Ok(Next::Turn)
    }
}

fn hunt<T: Bench>(bench: &mut T, manner: Manner) -> ClauseResult {
    open_all(bench)?;
    let seen = AtomicU64::new(0);
    let rounds = bench.rounds();
    let mut writer = Filling {
        manner,
        rounds,
        round: 0,
        stage: OrderingStage::Build,
        completed: 0,
        seen: &seen,
    };
    bench.race([(A, &mut writer), (B, &mut Reading { rounds, seen: &seen })])?;
    Ok(Finding::Holds)
}

fn address_order<T: Bench>(bench: &mut T) -> ClauseResult {
    if !promises(bench, Promises::ADDRESS_ORDER) {
        return Ok(Finding::NotApplicable("address order is not promised"));
    }
    hunt(bench, Manner::OneWrite)
}

fn guard_after_content<T: Bench>(bench: &mut T) -> ClauseResult {
    if promises(bench, Promises::WRITE_ORDER) {
        hunt(bench, Manner::OneList)
    } else if promises(bench, Promises::COMPLETION_VISIBLE) {
        hunt(bench, Manner::GuardUponCompletion)
    } else {
        Ok(Finding::NotApplicable("no promise lets a guard follow its content"))
    }
}
