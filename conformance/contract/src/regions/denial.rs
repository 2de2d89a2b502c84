//! Revoked permissions: nothing more lands, and everything else continues.

use std::sync::atomic::{AtomicU64, Ordering};

use tramontane_core::fabric::{
    ErrorKind, Event, Fabric, FabricError, Kind, PermissionEvent, Permissions, RegionMemory,
};

use super::RegionBench;
use super::scene::{A, B, C, LOG, OTHER, PairView, Scene, between};
use crate::report::{Breach, ClauseResult, Finding, clauses, ensure};
use crate::scene::ensure_same;
use crate::testbed::Next;

clauses! { pub(super) RegionBench
    /// After revoke has returned, nothing more from this peer lands, regardless of what was in
    /// flight.
    "revoke-is-final", "Permissions::revoke; TRM-4" => is_final;
    /// A revoke is also final while the writer posts concurrently, with repeated grants.
    "revoke-is-final-in-a-race", "Permissions::revoke; TRM-4" => is_final_in_a_race;
    /// If a permission is revoked with writes in flight, a prefix of them lands and nothing after
    /// it, even if the permission is granted again.
    "denied-leave-no-gap", "PermissionEvent::Denied; TRM-3" => leave_no_gap;
    /// A denied write is reported once, with view, peer and region; its token does not complete,
    /// and posts are Revoked until Restored is reported.
    "denied-is-told", "PermissionEvent::Denied, Restored" => is_told;
    /// A write without permission harms one region of one link: rows, other regions, other views
    /// and other peers continue.
    "denied-harms-one-region", "Permissions: what every implementation keeps" => harms_one;
}

/// Posts numbered cells to B's log until one is refused or the limit is reached: cell `n` holds
/// `n`. Returns their number.
fn post_cells<T: RegionBench>(
    scene: &mut Scene<'_, T>,
    link: PairView,
    first: usize,
    most: usize,
) -> Result<usize, Breach> {
    for cell in first..first + most {
        scene.fill(A, LOG, cell * 8, &(cell as u64).to_ne_bytes());
        let write = between(LOG, cell * 8, 8, Kind::Guard);
        match scene.post(A, link, &[write], Some(cell as u64)) {
            Ok(()) => {}
            Err(ErrorKind::QueueFull | ErrorKind::Revoked) => return Ok(cell - first),
            Err(kind) => return Err(Breach(format!("post {cell} was refused: {kind}"))),
        }
    }
    Ok(most)
}

/// Returns the cells of B's log.
fn cells<T: RegionBench>(scene: &Scene<'_, T>) -> Vec<u64> {
    let bytes = scene.snapshot(B, LOG);
    bytes.as_chunks::<8>().0.iter().map(|cell| u64::from_ne_bytes(*cell)).collect()
}

fn is_final<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let link = scene.link([A, B])?;
    for round in 0..24_usize {
        scene.grant(B, link, LOG)?;
        scene.ensure_lands((A, B), link, LOG, 1)?;
        post_cells(&mut scene, link, 128, 64)?;
        // A varying part of the writes has landed when the permission is revoked.
        for _ in 0..round / 3 {
            scene.pass(&[A])?;
        }
        if round % 3 > 0 {
            scene.step(B)?;
        }
        scene.revoke(B, link, LOG)?;
        let before = scene.snapshot(B, LOG);
        for steppers in [&[A][..], &[B], &[A, B]] {
            scene.settle_with(steppers)?;
            let what =
                format!("round {round}: the region after its writer's permission was revoked");
            ensure_same(&scene.snapshot(B, LOG), &before, &what)?;
        }
        scene.fill(B, LOG, 0, &vec![0; before.len()]);
    }
    Ok(Finding::Holds)
}

fn is_final_in_a_race<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let link = scene.link([A, B])?;
    scene.grant(B, link, LOG)?;
    scene.ensure_lands((A, B), link, LOG, 1)?;
    let (rounds, landed) = (scene.bench.rounds() / 64 + 8, AtomicU64::new(0));
    let is_over = AtomicU64::new(0);
    let (to_b, to_a) = (link.peer_of(A), link.peer_of(B));
    let (theirs, own) = (scene.memory(A, LOG).clone(), scene.memory(B, LOG).clone());
    let mut posted = 0_u64;
    let mut write = |fabric: &mut T::Fabric| -> Result<Next, Breach> {
        while fabric.poll().is_some() {}
        while fabric.poll_permission().is_some() {}
        let list = [between(LOG, 1024, 2048, Kind::Content), between(LOG, 4096, 8, Kind::Guard)];
        publish(&theirs, 4096, posted + 1)?;
        match fabric.post(link.view, to_b, &list, None).map_err(|error| error.kind()) {
            Ok(()) => posted += 1,
            Err(ErrorKind::QueueFull | ErrorKind::Revoked) => {}
            Err(kind) => return Err(Breach(format!("a post was refused: {kind}"))),
        }
        Ok(if is_over.load(Ordering::Relaxed) == 1 { Next::Done } else { Next::Turn })
    };
    let (mut round, mut looks, mut frozen) = (0, 0_u64, None);
    let mut own_turn = |fabric: &mut T::Fabric| -> Result<Next, Breach> {
        while fabric.poll().is_some() {}
        let now = cell(&own, 4096)?;
        looks += 1;
        match frozen {
            None if looks > 8 + round % 29 => {
                fabric
                    .revoke(link.view, to_a, LOG)
                    .map_err(|error| Breach(format!("a revoke is {}", error.kind())))?;
                let now = cell(&own, 4096)?;
                landed.fetch_max(now, Ordering::Relaxed);
                (frozen, looks) = (Some(now), 0);
            }
            Some(then) => {
                ensure!(now == then, "guard {then} was the last at the revoke, but {now} landed");
                if looks > 40 {
                    round += 1;
                    if round == rounds {
                        is_over.store(1, Ordering::Relaxed);
                        return Ok(Next::Done);
                    }
                    fabric
                        .grant(link.view, to_a, LOG)
                        .map_err(|error| Breach(format!("a grant is {}", error.kind())))?;
                    (frozen, looks) = (None, 0);
                }
            }
            None => {}
        }
        Ok(Next::Turn)
    };
    scene.bench.race([(A, &mut write), (B, &mut own_turn)])?;
    let landed = landed.into_inner();
    Ok(if landed > 0 {
        Finding::Holds
    } else {
        Finding::InPart("no write landed between a grant and the next revoke")
    })
}

fn publish(memory: &impl RegionMemory, offset: usize, value: u64) -> Result<(), Breach> {
    let cell = memory.writer().cell(offset).map_err(|_| Breach("no such cell".to_owned()))?;
    cell.publish(value);
    Ok(())
}

fn cell(memory: &impl RegionMemory, offset: usize) -> Result<u64, Breach> {
    let cell = memory.writer().reader().cell(offset);
    Ok(cell.map_err(|_| Breach("no such cell".to_owned()))?.load())
}

fn leave_no_gap<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let link = scene.link([A, B])?;
    scene.grant(B, link, LOG)?;
    scene.ensure_lands((A, B), link, LOG, 1)?;
    let (mut first, mut reached) = (128, 0);
    for round in 0..24_usize {
        let posted = post_cells(&mut scene, link, first, 40)?;
        for _ in 0..round % 5 {
            scene.pass(&[A])?;
        }
        if round % 2 == 0 {
            scene.step(B)?;
        }
        // The permission is revoked and granted again before the writer learns of either change.
        scene.revoke(B, link, LOG)?;
        scene.grant(B, link, LOG)?;
        scene.settle()?;
        let seen = cells(&scene);
        let landed = (first..first + posted).take_while(|cell| seen[*cell] == *cell as u64).count();
        let behind = (first + landed..first + posted).find(|cell| seen[*cell] != 0);
        ensure!(
            behind.is_none(),
            "round {round}: of {posted} posts the first {landed} landed, and after a gap {behind:?}"
        );
        reached += posted - landed;
        first += 40;
        // A post under the new permission lands.
        scene.ensure_lands((A, B), link, LOG, u8::try_from(round + 2).unwrap_or(1))?;
    }
    Ok(if reached > 0 {
        Finding::Holds
    } else {
        Finding::InPart("all posts land before a permission can be revoked")
    })
}

fn is_told<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let link = scene.link([A, B])?;
    let (view, peer, region) = (link.view, link.peer_of(A), LOG);
    let (denied, restored) = (
        PermissionEvent::Denied { view, peer, region },
        PermissionEvent::Restored { view, peer, region },
    );
    let mut denials = 0;
    for round in 0..12_u8 {
        scene.grant(B, link, LOG)?;
        scene.ensure_lands((A, B), link, LOG, round + 1)?;
        scene.settle()?;
        scene.take_told(A);
        scene.take_events(A);
        // Some writes are posted before the permission is revoked. Others follow, when the writer
        // may already know of the revocation.
        let first = 128 + usize::from(round) * 16;
        let mut posted = post_cells(&mut scene, link, first, 5)?;
        scene.revoke(B, link, LOG)?;
        posted += post_cells(&mut scene, link, first + posted, 5)?;
        let mut told = Vec::new();
        scene.settle()?;
        let seen = cells(&scene);
        let landed = (first..first + posted).take_while(|cell| seen[*cell] == *cell as u64).count();
        scene.wait(|scene| {
            told.extend(scene.take_told(A));
            Ok(posted == landed || told.contains(&denied))
        })?;
        scene.settle()?;
        told.extend(scene.take_told(A));
        let times = told.iter().filter(|event| **event == denied).count();
        ensure!(
            times == usize::from(posted > landed),
            "{posted} were accepted and {landed} landed, but {told:?} is reported"
        );
        denials += times;
        let stranger = told.iter().find(|event| **event != denied && **event != restored);
        ensure!(stranger.is_none(), "one region was denied, but {stranger:?} is reported");
        let completed = scene.completed(A);
        let is_denied = |token: &&u64| **token >= (first + landed) as u64;
        let wrong = completed.iter().find(is_denied);
        ensure!(wrong.is_none(), "{landed} of {posted} landed, but {completed:?} complete");
        let is_restored = told.last() == Some(&restored);
        let again = scene.post(A, link, &[between(LOG, 1024, 8, Kind::Guard)], None);
        ensure!(
            again == Err(ErrorKind::Revoked) || (is_restored && again.is_ok()),
            "denied with {told:?}, but a post returns {again:?}"
        );
        scene.settle()?;
    }
    Ok(if denials > 0 {
        Finding::Holds
    } else {
        Finding::InPart("the writer learns of the revoke before it can post")
    })
}

fn harms_one<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let [link, again, third] = [scene.link([A, B])?, scene.link([A, B])?, scene.link([B, C])?];
    for (link, region) in [(link, LOG), (link, OTHER), (again, LOG), (third, LOG)] {
        scene.grant(B, link, region)?;
    }
    for value in 1..=8 {
        scene.ensure_lands((A, B), link, LOG, value)?;
        post_cells(&mut scene, link, 128, 20)?;
        scene.revoke(B, link, LOG)?;
        post_cells(&mut scene, link, 256, 20)?;
        scene.ensure_lands((A, B), link, OTHER, value)?;
        scene.ensure_lands((A, B), again, LOG, 100 + value)?;
        scene.ensure_lands((C, B), third, LOG, 200 + value % 50)?;
        scene.ensure_row((A, B), link, value)?;
        scene.ensure_row((B, A), link, value)?;
        scene.grant(B, link, LOG)?;
    }
    let lost = [A, B, C].map(|process| {
        let events = scene.take_events(process);
        events.into_iter().find(|event| matches!(event, Event::PeerLost { .. }))
    });
    ensure!(lost == [None; 3], "a denied write causes the loss of a peer: {lost:?}");
    Ok(Finding::Holds)
}
