//! Processes that die with writes in flight, and views that end.

use tramontane_core::fabric::{
    ErrorKind, Event, Fabric, FabricError, Kind, PermissionEvent, Permissions, Promises, Write,
};

use super::RegionBench;
use super::scene::{A, B, C, LOG, PairView, Scene, between};
use super::testbed::Process;
use crate::report::{Breach, ClauseResult, Finding, clauses, ensure};
use crate::scene::ensure_same;

clauses! { pub(super) RegionBench
    /// If a writer dies with writes in flight, a prefix of them lands without a gap. Its permission
    /// can be revoked, nothing lands after that, and other processes continue.
    "writer-dies", "Permissions::revoke; Event::PeerLost; TRM-4" => writer_dies;
    /// An owner that dies with writes in flight is lost: later posts to it report this, and posts
    /// to others land.
    "owner-dies", "Event::PeerLost; ErrorKind::PeerLost" => owner_dies;
    /// Permissions end with their view: nothing in flight lands after it, and the next view of the
    /// same two processes starts without permissions.
    "right-ends-with-view", "Fabric::retire; HostRegions" => ends_with_view;
    /// After a cut nothing from this peer lands in any region, and its permission is revoked.
    "right-ends-with-cut", "Fabric::cut" => ends_with_cut;
}

/// Has A post cells to B's log that are numbered from 1: cell `128 + n` holds `n`. Returns their
/// number.
fn post_numbers<T: RegionBench>(
    scene: &mut Scene<'_, T>,
    link: PairView,
    most: u64,
) -> Result<u64, Breach> {
    for number in 1..=most {
        let at = 1024 + 8 * usize::try_from(number).unwrap_or(0);
        scene.fill(A, LOG, at, &number.to_ne_bytes());
        match scene.post(A, link, &[between(LOG, at, 8, Kind::Guard)], Some(number)) {
            Ok(()) => {}
            Err(ErrorKind::QueueFull) => return Ok(number - 1),
            Err(kind) => return Err(Breach(format!("post {number} was refused: {kind}"))),
        }
    }
    Ok(most)
}

/// Returns the number of posted writes that have landed in B's log, which are a prefix if order is
/// promised.
fn landed<T: RegionBench>(scene: &mut Scene<'_, T>, posted: u64) -> Result<u64, Breach> {
    let number = |at: u64| {
        let bytes = scene.look(B, LOG, 1024 + 8 * usize::try_from(at).unwrap_or(0), 8);
        bytes.first_chunk().map_or(0, |cell| u64::from_ne_bytes(*cell))
    };
    let seen: Vec<u64> = (1..=posted).map(number).collect();
    let whole = (1..).zip(&seen).take_while(|(number, seen)| number == *seen).count();
    if scene.capabilities().promises.contains(Promises::WRITE_ORDER) {
        let behind = seen[whole..].iter().find(|number| **number != 0);
        ensure!(behind.is_none(), "of {posted} numbers {whole} landed, and after a gap {behind:?}");
    }
    Ok(whole as u64)
}

fn await_loss<T: RegionBench>(
    scene: &mut Scene<'_, T>,
    at: Process,
    link: PairView,
) -> Result<(), Breach> {
    let peer = link.peer_of(at);
    let mut told = Vec::new();
    let lost = scene.wait(|scene| {
        told.extend(scene.take_events(at));
        let is_it = |event: &Event| match event {
            Event::PeerLost { view, peer: of, .. } => (*view, *of) == (link.view, peer),
            _ => false,
        };
        // On some fabrics only a process that writes can notice.
        let _ = scene.post(at, link, &[Write::of_row(64, 8, Kind::Guard)], None);
        Ok(told.iter().any(is_it))
    })?;
    ensure!(lost, "{at} gets no event for the loss of the other process in {}", link.view);
    Ok(())
}

fn writer_dies<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let [link, third] = [scene.link([A, B])?, scene.link([B, C])?];
    for link in [link, third] {
        scene.grant(B, link, LOG)?;
    }
    scene.ensure_lands((A, B), link, LOG, 1)?;
    let posted = post_numbers(&mut scene, link, 200)?;
    scene.pass(&[A])?;
    if let Some(reason) = scene.lose(A) {
        return Ok(Finding::NotApplicable(reason));
    }
    scene.pass(&[B])?;
    landed(&mut scene, posted)?;
    scene.ensure_lands((C, B), third, LOG, 2)?;
    let revoked = scene.fabric(B).revoke(link.view, link.peer_of(B), LOG);
    let revoked = revoked.map_err(|error| error.kind());
    ensure!(
        matches!(revoked, Ok(()) | Err(ErrorKind::PeerLost)),
        "revoking the permission of a dead process returns {revoked:?}"
    );
    ensure!(!scene.may_write(B, link, LOG), "a dead process may write");
    let before = scene.snapshot(B, LOG);
    scene.settle_with(&[B, C])?;
    ensure_same(
        &scene.snapshot(B, LOG),
        &before,
        "the region after a dead writer's permission was revoked",
    )?;
    await_loss(&mut scene, B, link)?;
    let granted = scene.fabric(B).grant(link.view, link.peer_of(B), LOG);
    let granted = granted.map_err(|error| error.kind());
    ensure!(
        granted == Err(ErrorKind::PeerLost),
        "granting a lost process permission returns {granted:?}"
    );
    scene.ensure_lands((C, B), third, LOG, 3)?;
    scene.retire(B, link)?;
    scene.ensure_lands((C, B), third, LOG, 4)?;
    Ok(Finding::Holds)
}

fn owner_dies<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let [link, third] = [scene.link([A, B])?, scene.link([A, C])?];
    scene.grant(B, link, LOG)?;
    scene.grant(C, third, LOG)?;
    scene.ensure_lands((A, B), link, LOG, 1)?;
    scene.ensure_lands((A, C), third, LOG, 1)?;
    post_numbers(&mut scene, link, 200)?;
    if let Some(reason) = scene.lose(B) {
        return Ok(Finding::NotApplicable(reason));
    }
    scene.ensure_lands((A, C), third, LOG, 2)?;
    await_loss(&mut scene, A, link)?;
    scene.settle_with(&[A, C])?;
    let said = scene.post(A, link, &[between(LOG, 0, 8, Kind::Guard)], Some(999));
    ensure!(said == Err(ErrorKind::PeerLost), "a post to a lost process's region returns {said:?}");
    scene.ensure_lands((A, C), third, LOG, 3)?;
    scene.retire(A, link)?;
    scene.ensure_lands((A, C), third, LOG, 4)?;
    ensure!(!scene.completed(A).contains(&999), "a refused list completes");
    Ok(Finding::Holds)
}

fn ends_with_view<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    for round in 1..=6 {
        let link = scene.link([A, B])?;
        ensure!(!scene.may_write(B, link, LOG), "a fresh view starts with permission");
        let said = scene.post(A, link, &[between(LOG, 0, 8, Kind::Guard)], None);
        ensure!(said != Err(ErrorKind::PeerLost), "a post in a fresh view returns {said:?}");
        scene.settle()?;
        scene.grant(B, link, LOG)?;
        scene.ensure_lands((A, B), link, LOG, round)?;
        post_numbers(&mut scene, link, 100)?;
        if round % 2 == 0 {
            scene.pass(&[A])?;
        }
        // No other process polls until the owner has ended.
        let mut ended = false;
        for _ in 0..10_000 {
            ended = scene.fabric(B).retire(link.view);
            if ended {
                break;
            }
            scene.pass(&[])?;
        }
        ensure!(ended, "retiring {} never completes", link.view);
        ensure!(!scene.may_write(B, link, LOG), "a permission outlives its view");
        let before = scene.snapshot(B, LOG);
        scene.settle()?;
        let what = "the region after the end of a view in which its writer had permission";
        ensure_same(&scene.snapshot(B, LOG), &before, what)?;
        scene.retire(A, link)?;
        let told = scene.take_told(A);
        let strange = told.iter().find(|event| match event {
            PermissionEvent::Denied { view, .. } | PermissionEvent::Restored { view, .. } => {
                *view != link.view
            }
        });
        ensure!(strange.is_none(), "{strange:?} is reported about another view");
    }
    Ok(Finding::Holds)
}

fn ends_with_cut<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let [link, third] = [scene.link([A, B])?, scene.link([B, C])?];
    for link in [link, third] {
        scene.grant(B, link, LOG)?;
    }
    scene.ensure_lands((A, B), link, LOG, 1)?;
    post_numbers(&mut scene, link, 100)?;
    let peer = link.peer_of(B);
    scene.fabric(B).cut(link.view, peer);
    ensure!(!scene.may_write(B, link, LOG), "a cut peer may write");
    let before = scene.snapshot(B, LOG);
    scene.settle()?;
    ensure_same(&scene.snapshot(B, LOG), &before, "the region after its writer was cut")?;
    scene.ensure_lands((C, B), third, LOG, 2)?;
    Ok(Finding::Holds)
}
