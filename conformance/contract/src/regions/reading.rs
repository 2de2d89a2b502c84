//! Reads of a peer's region, which need no permission.

use std::sync::atomic::{AtomicU64, Ordering};

use tramontane_core::fabric::{
    Area, ErrorKind, Event, Fabric, FabricError, Permissions, Region, RegionMemory, Token,
};

use super::RegionBench;
use super::scene::{A, B, LOG, LOG_BYTES, OTHER, PairView, ROW_BYTES, Scene};
use crate::report::{Breach, ClauseResult, Finding, clauses, ensure};
use crate::scene::ensure_same;
use crate::testbed::Next;

clauses! { pub(super) RegionBench
    /// A read returns exactly the contents of the peer's region, and changes nothing else; it needs
    /// no permission.
    "read-brings-all", "Permissions::read" => brings_all;
    /// A concurrent read and write of a region never return bytes that were never written.
    "read-while-written", "Permissions::read; TRM-4" => while_written;
    /// A read with an unknown or invalid source or target is refused, and changes nothing.
    "read-refused", "Permissions::read; ErrorKind::OutOfRange" => refused;
}

/// Reads from B's region into A's own, and returns the result.
fn try_read<T: RegionBench>(
    scene: &mut Scene<'_, T>,
    link: PairView,
    (source, into): (Area, Area),
    length: usize,
    token: u64,
) -> Result<(), ErrorKind> {
    let read = scene.fabric(A).read(link.view, link.peer_of(A), source, into, length, Token(token));
    read.map_err(|error| error.kind())
}

const fn area(region: Region, offset: usize) -> Area {
    Area { region, offset }
}

fn brings_all<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let link = scene.link([A, B])?;
    let pattern: Vec<u8> =
        (0..LOG_BYTES[B.0]).map(|at| u8::try_from(at * 13 % 251).unwrap_or(0)).collect();
    scene.fill(B, LOG, 0, &pattern);
    let end = pattern.len();
    let mut expected = scene.snapshot(A, LOG);
    let limit = scene.capabilities().write_bytes_max;
    for (token, (from, to, length)) in (1..).zip([
        (0, 0, 8),
        (64, 4096, 2048),
        (1000, 8192, 24),
        (end - 64, 16_384, 64),
        (4096, LOG_BYTES[A.0] - 4096, 4096),
        (512, 20_000, limit.min(8192)),
    ]) {
        let mut last = Ok(());
        let taken = scene.wait(|scene| {
            last = try_read(scene, link, (area(LOG, from), area(LOG, to)), length, token);
            Ok(last != Err(ErrorKind::QueueFull))
        })?;
        ensure!(taken && last.is_ok(), "a read of {length} bytes from {from} returns {last:?}");
        let came = scene.wait(|scene| Ok(scene.completed(A).contains(&token)))?;
        ensure!(came, "a read never completes");
        expected[to..to + length].copy_from_slice(&pattern[from..from + length]);
        ensure_same(
            &scene.snapshot(A, LOG),
            &expected,
            "the bytes that were read, and all others",
        )?;
    }
    ensure_same(&scene.snapshot(B, LOG), &pattern, "a region that was read")?;
    ensure!(scene.snapshot(A, OTHER).iter().all(|byte| *byte == 0), "another region changed");
    Ok(Finding::Holds)
}

fn while_written<T: RegionBench>(bench: &mut T) -> ClauseResult {
    const BYTES: usize = 2048;
    const AT: usize = 1024;
    let rounds = bench.rounds().min(20_000);
    let mut scene = Scene::new(bench)?;
    let link = scene.link([A, B])?;
    let (theirs, own) = (scene.memory(B, LOG).clone(), scene.memory(A, LOG).clone());
    // A cell that has been read must belong to a round that had begun, and must not be older than
    // the last round that was complete when the read was posted. A cell may be torn, so its bytes
    // are compared one by one.
    let (begun, whole, reads) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let byte_of = |round: u64| u8::try_from(round % 256).unwrap_or(0);
    let mut write = |fabric: &mut T::Fabric| -> Result<Next, Breach> {
        while fabric.poll().is_some() {}
        let round = begun.load(Ordering::Relaxed);
        // The writer stays close to the reader, so that no byte value is reused.
        if round < reads.load(Ordering::Acquire) * 8 + 8 {
            begun.store(round + 1, Ordering::Release);
            let stored = theirs.writer().apply(AT, &[byte_of(round + 1); BYTES]);
            debug_assert!(stored.is_ok(), "inside the region");
            whole.store(round + 1, Ordering::Release);
        }
        Ok(if reads.load(Ordering::Relaxed) == rounds { Next::Done } else { Next::Turn })
    };
    let (mut under_way, mut count) = (None, 0_u64);
    let mut read = |fabric: &mut T::Fabric| -> Result<Next, Breach> {
        if count == rounds {
            return Ok(Next::Done);
        }
        if under_way.is_none() {
            let since = whole.load(Ordering::Acquire);
            let (peer, token) = (link.peer_of(A), Token(count));
            let posted = fabric.read(link.view, peer, area(LOG, AT), area(LOG, 0), BYTES, token);
            match posted.map_err(|error| error.kind()) {
                Ok(()) => under_way = Some(since),
                Err(ErrorKind::QueueFull) => {}
                Err(kind) => return Err(Breach(format!("a read was refused: {kind}"))),
            }
        }
        while let Some(event) = fabric.poll() {
            let (Event::Completed(_), Some(since)) = (event, under_way) else { continue };
            let newest = begun.load(Ordering::Acquire);
            let mut bytes = [0; BYTES];
            let looked = own.writer().reader().read(0, &mut bytes);
            debug_assert!(looked.is_ok(), "inside the region");
            let may_be: Vec<u8> = (since..=newest).map(byte_of).collect();
            let wrong = bytes.iter().position(|byte| !may_be.contains(byte));
            ensure!(
                wrong.is_none(),
                "byte {wrong:?} of a read is not of any round from {since} to {newest}"
            );
            (under_way, count) = (None, count + 1);
            reads.store(count, Ordering::Release);
        }
        Ok(Next::Turn)
    };
    scene.bench.race([(A, &mut read), (B, &mut write)])?;
    Ok(Finding::Holds)
}

fn refused<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let link = scene.link([A, B])?;
    scene.fill(B, LOG, 0, &[7; 4096]);
    let (own, theirs) = (LOG_BYTES[A.0], LOG_BYTES[B.0]);
    let strange = Region(99);
    for (source, into, length) in [
        (area(LOG, theirs - 7), area(LOG, 0), 8),
        (area(LOG, theirs), area(LOG, 0), 1),
        (area(LOG, usize::MAX), area(LOG, 0), 8),
        (area(LOG, 0), area(LOG, own - 7), 8),
        (area(LOG, 0), area(LOG, usize::MAX - 3), 8),
        (area(LOG, 0), area(LOG, 0), theirs + 1),
        (area(LOG, 8), area(LOG, 0), usize::MAX),
        (area(strange, 0), area(LOG, 0), 8),
        (area(LOG, 0), area(strange, 0), 8),
    ] {
        let said = try_read(&mut scene, link, (source, into), length, 5);
        ensure!(
            said == Err(ErrorKind::OutOfRange),
            "a read of {length} bytes from {source:?} into {into:?} returns {said:?}"
        );
    }
    let unknown = PairView { view: tramontane_core::ids::ViewId(3), ..link };
    let said = try_read(&mut scene, unknown, (area(LOG, 0), area(LOG, 0)), 8, 5);
    ensure!(
        said.is_err() && said != Err(ErrorKind::QueueFull),
        "a read in an unknown view returns {said:?}"
    );
    scene.settle()?;
    ensure!(scene.completed(A).is_empty(), "a refused read completes");
    ensure!(scene.snapshot(A, LOG).iter().all(|byte| *byte == 0), "a refused read changes memory");
    scene.fill_row(A, link, 0, &[1; ROW_BYTES]);
    Ok(Finding::Holds)
}
