//! The bytes that a write to a region carries, the meaning of its completion, and the report of a
//! full queue.

use std::collections::BTreeMap;
use std::time::Duration;

use tramontane_core::fabric::{ErrorKind, Fabric, HostFabric, Kind, Promises, Write};

use super::RegionBench;
use super::scene::{A, B, C, LOG, PairView, Scene, between, from_row};
use crate::report::{Breach, ClauseResult, Finding, clauses, ensure};
use crate::scene::ensure_same;

clauses! { pub(super) RegionBench
    /// A guard carries the bytes that it had at the call.
    "region-guard-as-posted", "Kind::Guard; DESIGN, The seam" => guard_as_posted;
    /// Changes made after a list has completed do not reach the peer with that list.
    "region-content-until-completed", "Kind::Content; Event::Completed" => until_completed;
    /// If visibility on completion is promised, a list's bytes are visible in the peer's region
    /// when it completes.
    "region-completion-visible",
        "Promises::COMPLETION_VISIBLE; TRM-3" => completion_visible;
    /// Each list with a token completes exactly once, in posting order, and no other list does.
    "region-completed-once", "Fabric::post; Event::Completed" => completed_once;
    /// A full queue refuses a whole list, delays no other peer, and has room again later.
    "region-queue-full", "ErrorKind::QueueFull; DESIGN, The seam" => queue_full;
    /// A post wakes a sleeping owner, and the bytes have landed by the time the owner reads.
    "region-post-rings", "Fabric::arm; IDL-1" => rings;
}

const ROUNDS: u8 = 40;

/// Opens a view of two processes in which A may write to B's log.
fn writing<T: RegionBench>(bench: &mut T) -> Result<(Scene<'_, T>, PairView), Breach> {
    let mut scene = Scene::new(bench)?;
    let link = scene.link([A, B])?;
    scene.grant(B, link, LOG)?;
    scene.ensure_lands((A, B), link, LOG, 1)?;
    scene.take_events(A);
    Ok((scene, link))
}

fn guard_as_posted<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let (mut scene, link) = writing(bench)?;
    let longest = scene.capabilities().guard_bytes_max.min(256);
    let guard = |write| Write { kind: Kind::Guard, ..write };
    let list = [
        between(LOG, 8192, 1024, Kind::Content),
        guard(from_row(64, LOG, 1024, 8)),
        guard(from_row(200, LOG, 2000, 24)),
        guard(between(LOG, 4096, longest, Kind::Guard)),
    ];
    for round in 1..=ROUNDS {
        let fill = |scene: &Scene<'_, T>, value| {
            scene.fill_row(A, link, 64, &[value; 8]);
            scene.fill_row(A, link, 200, &[value; 24]);
            scene.fill(A, LOG, 4096, &vec![value; longest]);
        };
        fill(&scene, round);
        scene.post_through(A, link, &list, None)?;
        fill(&scene, 100 + round);
        scene.settle()?;
        for (offset, length) in [(1024, 8), (2000, 24), (4096, longest)] {
            let what = format!(
                "a guard of {length} bytes whose source changed from {round} after the call"
            );
            ensure_same(&scene.look(B, LOG, offset, length), &vec![round; length], &what)?;
        }
    }
    Ok(Finding::Holds)
}

/// Waits until a token completes at A, and returns the tokens that had completed before.
fn await_completion<T: RegionBench>(scene: &mut Scene<'_, T>, token: u64) -> Result<(), Breach> {
    // A checks first, so that it does not wait for B's actions after the completion.
    let completed = scene.wait(|scene| {
        scene.step(A)?;
        Ok(scene.completed(A).contains(&token))
    })?;
    ensure!(completed, "token {token} never completes");
    Ok(())
}

fn until_completed<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let (mut scene, link) = writing(bench)?;
    let list = [between(LOG, 100, 1000, Kind::Content), from_row(512, LOG, 2048, 64)];
    for round in 1..=ROUNDS {
        let fill = |scene: &Scene<'_, T>, value| {
            scene.fill(A, LOG, 100, &[value; 1000]);
            scene.fill_row(A, link, 512, &[value; 64]);
        };
        fill(&scene, round);
        scene.post_through(A, link, &list, Some(u64::from(round)))?;
        await_completion(&mut scene, u64::from(round))?;
        fill(&scene, 100 + round);
        scene.settle()?;
        for write in &list {
            let seen = scene.look(B, LOG, write.target.offset, write.length);
            let what =
                format!("content whose source changed from {round} after its list had completed");
            ensure_same(&seen, &vec![round; write.length], &what)?;
        }
    }
    Ok(Finding::Holds)
}

fn completion_visible<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let (mut scene, link) = writing(bench)?;
    if !scene.capabilities().promises.contains(Promises::COMPLETION_VISIBLE) {
        return Ok(Finding::NotApplicable("visibility upon completion is not promised"));
    }
    let list = [
        between(LOG, 0, 2048, Kind::Content),
        between(LOG, 2048, 8, Kind::Guard),
        between(LOG, 4096, 2048, Kind::Content),
    ];
    for round in 1..=ROUNDS {
        for write in &list {
            scene.fill(A, LOG, write.source.offset, &vec![round; write.length]);
        }
        scene.post_through(A, link, &list, Some(u64::from(round)))?;
        await_completion(&mut scene, u64::from(round))?;
        for write in &list {
            let seen = scene.look(B, LOG, write.target.offset, write.length);
            let what = format!("in completed list {round}, the write at {}", write.target.offset);
            ensure_same(&seen, &vec![round; write.length], &what)?;
        }
    }
    Ok(Finding::Holds)
}

fn completed_once<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let (mut scene, link) = writing(bench)?;
    let third = scene.link([A, C])?;
    scene.grant(C, third, LOG)?;
    scene.ensure_lands((A, C), third, LOG, 1)?;
    scene.take_events(A);
    let tokens = [0, u64::MAX, 1, 2, 3, 4, 1 << 40, 5, 6, 7, 8, 9];
    for (index, token) in tokens.into_iter().enumerate() {
        let list: Vec<Write> = (0..[1, 4, 16][index % 3])
            .map(|at| between(LOG, at * 256, if at % 2 == 0 { 200 } else { 8 }, Kind::Content))
            .collect();
        let way = if index % 4 == 0 { third } else { link };
        scene.post_through(A, way, &list, Some(token))?;
        scene.post_through(A, way, &list[..1], None)?;
        if index % 2 == 0 {
            scene.pass(&[A])?;
        }
    }
    scene.settle()?;
    scene.settle()?;
    let mut counts = BTreeMap::<u64, u32>::new();
    scene.completed(A).into_iter().for_each(|token| *counts.entry(token).or_default() += 1);
    let expected: BTreeMap<u64, u32> = tokens.map(|token| (token, 1)).into();
    ensure!(counts == expected, "of {tokens:?}, these counts of completions were seen: {counts:?}");
    let strange = [B, C].map(|process| scene.completed(process));
    ensure!(strange == [vec![], vec![]], "processes that posted nothing get {strange:?}");
    if scene.capabilities().promises.contains(Promises::WRITE_ORDER) {
        for token in 100..140 {
            scene.post_through(A, link, &[between(LOG, 0, 64, Kind::Content)], Some(token))?;
        }
        scene.settle()?;
        let order: Vec<u64> =
            scene.completed(A).into_iter().filter(|token| (100..140).contains(token)).collect();
        ensure!(order.is_sorted(), "lists to one region complete in the wrong order: {order:?}");
    }
    Ok(Finding::Holds)
}

/// More lists than any queue can hold.
const LISTS_MAX: u64 = 60_000;

fn queue_full<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let (mut scene, link) = writing(bench)?;
    let third = scene.link([A, C])?;
    scene.grant(C, third, LOG)?;
    scene.ensure_lands((A, C), third, LOG, 1)?;
    // No time passes between the posts, and no process takes lists off the queue.
    let cells = [512, 1024, 4096];
    let list = cells.map(|offset| between(LOG, offset, 8, Kind::Guard));
    let set = |scene: &Scene<'_, T>, value: u64| {
        cells.iter().for_each(|offset| scene.fill(A, LOG, *offset, &value.to_ne_bytes()));
    };
    for round in 1..=3 {
        let mut refused = None;
        for value in 1..=LISTS_MAX {
            set(&scene, value);
            match scene.post(A, link, &list, None) {
                Ok(()) => {}
                Err(ErrorKind::QueueFull) => {
                    refused = Some(value);
                    break;
                }
                Err(kind) => return Err(Breach(format!("list {value} was refused: {kind}"))),
            }
        }
        let Some(refused) = refused else {
            scene.settle()?;
            let seen = cells.map(|offset| scene.look(B, LOG, offset, 8));
            ensure!(
                seen.iter().all(|cell| *cell == LISTS_MAX.to_ne_bytes()),
                "no list was refused, but the last of {LISTS_MAX} lists did not land: {seen:?}"
            );
            return Ok(Finding::NotApplicable(
                "60000 lists were accepted while no process received any",
            ));
        };
        ensure!(refused > 1, "the queue is full before the first post");
        // The owner of another region, and rows, are not delayed.
        scene.fill_row(A, link, 64, &[round; 8]);
        let row = scene.post(A, link, &[Write::of_row(64, 8, Kind::Guard)], None);
        ensure!(
            row.is_ok(),
            "while the queue to a region is full, a post of the row returns {row:?}"
        );
        let beside = scene.post(A, third, &list, None);
        ensure!(beside.is_ok(), "while the queue to {B} is full, a post to {C} returns {beside:?}");
        scene.settle()?;
        let seen = cells.map(|offset| scene.look(B, LOG, offset, 8));
        let last = (refused - 1).to_ne_bytes();
        ensure!(
            seen.iter().all(|cell| *cell == last),
            "list {} was the last accepted one, but {seen:?} landed",
            refused - 1
        );
        scene.post_through(A, link, &list, None)?;
        scene.settle()?;
        let seen = cells.map(|offset| scene.look(B, LOG, offset, 8));
        ensure!(
            seen.iter().all(|cell| *cell == refused.to_ne_bytes()),
            "list {refused} was posted again, but {seen:?} landed"
        );
        ensure!(scene.look_row(B, link, 64, 8) == [round; 8], "the row's write is lost");
    }
    Ok(Finding::Holds)
}

fn rings<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let (mut scene, link) = writing(bench)?;
    for value in 2..=10 {
        scene.settle()?;
        ensure!(scene.fabric(B).arm(), "everything is polled, but a process cannot arm");
        scene.step(B)?;
        scene.fill(A, LOG, 256, &[value; 64]);
        scene.post_through_alone(A, link, &[between(LOG, 256, 64, Kind::Guard)])?;
        scene.settle_with(&[A])?;
        let is_rung = scene.fabric(B).sleep(Duration::from_secs(5));
        scene.fabric(B).disarm();
        ensure!(is_rung, "{B} armed and a write to its region was posted, but {B} is not woken");
        scene.settle()?;
        let seen = scene.look(B, LOG, 256, 64);
        ensure_same(&seen, &[value; 64], "a region whose owner was woken")?;
    }
    Ok(Finding::Holds)
}
