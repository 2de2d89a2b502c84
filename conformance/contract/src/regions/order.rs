//! Order in a region: of content and guard in one list, and of consecutive lists. Each clause is a
//! search: A writes round after round, and B reads all the time.

use std::sync::atomic::{AtomicU64, Ordering};

use tramontane_core::fabric::{
    ErrorKind, Event, Fabric, FabricError, Kind, Promises, RegionMemory, Token, Write,
};

use super::RegionBench;
use super::scene::{A, B, LOG, Scene, between};
use crate::report::{Breach, ClauseResult, Finding, clauses, ensure};
use crate::testbed::Next;

clauses! { pub(super) RegionBench
    /// A reader that sees a guard in its region also sees the content before it in the guard's
    /// list.
    "region-guard-after-content", "Capabilities::can_guard; TRM-3" => |bench| hunt(bench, Lists::One);
    /// A reader that sees a guard also sees the content before it, even if both are in consecutive
    /// lists.
    "region-order-between-lists", "Promises::WRITE_ORDER; TRM-3" => |bench| hunt(bench, Lists::Each);
    /// If address order is promised, a reader that sees a write's last cell sees the whole write.
    "region-address-order", "Promises::ADDRESS_ORDER" => |bench| hunt(bench, Lists::OneWrite);
}

/// A payload followed by its counter, as in an entry of a log.
const PAYLOAD: (usize, usize) = (2048, 2040);
const COUNTER: usize = PAYLOAD.0 + PAYLOAD.1;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lists {
    OneWrite,
    One,
    Each,
}

/// Returns the byte that fills a round's payload.
fn fill_of(round: u64) -> u8 {
    u8::try_from(round % 255).map_or(0, |byte| byte + 1)
}

fn hunt<T: RegionBench>(bench: &mut T, lists: Lists) -> ClauseResult {
    let rounds = bench.rounds();
    let mut scene = Scene::new(bench)?;
    let promises = scene.capabilities().promises;
    let needed = match lists {
        Lists::OneWrite => Promises::ADDRESS_ORDER,
        Lists::One | Lists::Each => Promises::WRITE_ORDER,
    };
    let by_completion = !promises.contains(needed);
    if by_completion && (lists != Lists::One || !promises.contains(Promises::COMPLETION_VISIBLE)) {
        return Ok(Finding::NotApplicable("this order is not promised"));
    }
    let link = scene.link([A, B])?;
    scene.grant(B, link, LOG)?;
    scene.ensure_lands((A, B), link, LOG, 1)?;
    let (theirs, own) = (scene.memory(A, LOG).clone(), scene.memory(B, LOG).clone());
    let content = between(LOG, PAYLOAD.0, PAYLOAD.1, Kind::Content);
    let guard = between(LOG, COUNTER, 8, Kind::Guard);
    let mut plan: Vec<Vec<Write>> = match lists {
        Lists::OneWrite => vec![vec![between(LOG, PAYLOAD.0, PAYLOAD.1 + 8, Kind::Content)]],
        Lists::One => vec![vec![content, guard]],
        Lists::Each => vec![vec![content], vec![guard]],
    };
    if by_completion {
        plan = vec![vec![content], vec![guard]];
    }
    let (seen, to) = (AtomicU64::new(0), link.peer_of(A));
    let (mut round, mut posted, mut completed) = (0_u64, plan.len(), 0_u64);
    let mut write = |fabric: &mut T::Fabric| -> Result<Next, Breach> {
        while let Some(event) = fabric.poll() {
            if let Event::Completed(Token(token)) = event {
                completed = completed.max(token);
            }
        }
        if posted == plan.len() {
            // The memory may change after its list has completed and B has read it.
            let is_done = completed == round * 2 + 2 - u64::from(round == 0) * 2;
            if !is_done || seen.load(Ordering::Acquire) < round {
                return Ok(Next::Turn);
            }
            if round == rounds {
                return Ok(Next::Done);
            }
            (round, posted) = (round + 1, 0);
            store(&theirs, PAYLOAD.0, &[fill_of(round); PAYLOAD.1])?;
            store(&theirs, COUNTER, &round.to_ne_bytes())?;
        }
        while let Some(list) = plan.get(posted) {
            let is_last = posted + 1 == plan.len();
            if by_completion && is_last && completed < round * 2 + 1 {
                break;
            }
            let token = Token(round * 2 + 1 + u64::from(is_last));
            match fabric.post(link.view, to, list, Some(token)).map_err(|error| error.kind()) {
                Ok(()) => posted += 1,
                Err(ErrorKind::QueueFull) => break,
                Err(kind) => {
                    return Err(Breach(format!("a post with permission was refused: {kind}")));
                }
            }
        }
        Ok(Next::Turn)
    };
    let mut look = |fabric: &mut T::Fabric| -> Result<Next, Breach> {
        while fabric.poll().is_some() {}
        let reader = own.writer().reader();
        let counter = reader.cell(COUNTER).map_or(0, |cell| cell.load());
        let before = seen.load(Ordering::Relaxed);
        if counter == before {
            return Ok(if before == rounds { Next::Done } else { Next::Turn });
        }
        ensure!(counter == before + 1, "after entry {before} the counter is {counter}");
        fabric.observe_barrier();
        let mut payload = [0; PAYLOAD.1];
        let read = reader.read(PAYLOAD.0, &mut payload);
        debug_assert!(read.is_ok(), "the entry lies in the region");
        let torn = payload.iter().position(|byte| *byte != fill_of(counter));
        ensure!(
            torn.is_none(),
            "the counter is {counter}, but byte {torn:?} of its entry is not {}",
            fill_of(counter)
        );
        seen.store(counter, Ordering::Release);
        Ok(Next::Turn)
    };
    scene.bench.race([(A, &mut write), (B, &mut look)])?;
    Ok(Finding::Holds)
}

fn store(memory: &impl RegionMemory, offset: usize, bytes: &[u8]) -> Result<(), Breach> {
    memory.writer().apply(offset, bytes).map_err(|_| Breach("outside the region".to_owned()))
}
