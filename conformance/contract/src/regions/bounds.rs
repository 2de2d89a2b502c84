//! Calls that must be refused, without any effect.

use tramontane_core::fabric::{
    Area, ErrorKind, FabricError, HostRegions, Kind, Permissions, Region, Write,
};
use tramontane_core::ids::{Rank, ViewId};

use super::RegionBench;
use super::scene::{A, B, LOG, LOG_BYTES, OTHER, ROW_BYTES, Scene, between, from_row};
use crate::report::{ClauseResult, Finding, clauses, ensure};
use crate::scene::ensure_same;

clauses! { pub(super) RegionBench
    /// A target outside the peer's region, or a source outside the local memory, is OutOfRange,
    /// with its whole list. The length of the local region does not matter.
    "region-range-outside", "Fabric::post; ErrorKind::OutOfRange" => range_outside;
    /// A list with more writes than the fabric's limit is OutOfRange.
    "region-list-too-long", "Fabric::post; Capabilities::writes_max" => list_too_long;
    /// A permission for an unknown peer, region or view is refused for good.
    "right-of-nothing", "Permissions::grant, revoke" => of_nothing;
    /// A region is created once, before the first view, and is not the region of rows.
    "region-made-once", "HostRegions::region" => made_once;
}

fn range_outside<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let link = scene.link([A, B])?;
    scene.grant(B, link, LOG)?;
    scene.ensure_lands((A, B), link, LOG, 1)?;
    let before = scene.snapshot(B, LOG);
    scene.fill(A, LOG, 0, &[9; 1024]);
    let (own, theirs) = (LOG_BYTES[A.0], LOG_BYTES[B.0]);
    let good = between(LOG, 0, 64, Kind::Content);
    let to = |region, offset, length| {
        let target = Area { region, offset };
        Write { target, length, ..good }
    };
    let from = |region, offset, length| {
        let source = Area { region, offset };
        Write { source, length, ..good }
    };
    for bad in [
        to(LOG, theirs - 7, 8),
        to(LOG, theirs, 1),
        to(LOG, theirs + 64, 8),
        to(LOG, usize::MAX - 3, 8),
        to(LOG, 0, theirs + 1),
        to(Region(99), 0, 8),
        to(Region(u16::MAX), 0, 8),
        from(LOG, own - 7, 8),
        from(LOG, usize::MAX, 1),
        from(LOG, 8, usize::MAX),
        from(Region(99), 0, 8),
        from_row(ROW_BYTES - 7, LOG, 0, 8),
    ] {
        for list in [&[bad][..], &[good, bad], &[bad, good]] {
            let said = scene.post(A, link, list, Some(5));
            ensure!(said == Err(ErrorKind::OutOfRange), "{list:?} returns {said:?}");
        }
    }
    scene.settle()?;
    ensure_same(&scene.snapshot(B, LOG), &before, "the region after posts out of range")?;
    ensure!(!scene.completed(A).contains(&5), "a refused list completes");
    scene.ensure_lands((A, B), link, LOG, 2)?;
    Ok(Finding::Holds)
}

fn list_too_long<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let link = scene.link([A, B])?;
    let most = scene.capabilities().writes_max;
    if most > 100_000 {
        return Ok(Finding::NotApplicable("lists may be as long as memory allows"));
    }
    scene.grant(B, link, LOG)?;
    scene.ensure_lands((A, B), link, LOG, 1)?;
    let list = |length| -> Vec<Write> {
        (0..length).map(|at| between(LOG, at % 512 * 8, 8, Kind::Guard)).collect()
    };
    for length in [most + 1, 2 * most] {
        let said = scene.post(A, link, &list(length), None);
        ensure!(said == Err(ErrorKind::OutOfRange), "a list of {length} writes returns {said:?}");
    }
    scene.fill(A, LOG, 0, &[3; 4096]);
    scene.post_through(A, link, &list(most), None)?;
    let landed = scene
        .wait(|scene| Ok(scene.look(B, LOG, 0, 8 * most.min(512)).iter().all(|byte| *byte == 3)))?;
    ensure!(landed, "a list with the maximum number of writes does not land");
    Ok(Finding::Holds)
}

fn of_nothing<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let link = scene.link([A, B])?;
    let peer = link.peer_of(B);
    for (view, peer, region) in [
        (ViewId(3), peer, LOG),
        (link.view, Rank(2), LOG),
        (link.view, link.peer_of(A), LOG),
        (link.view, Rank(u16::MAX), LOG),
        (link.view, peer, Region(99)),
        (link.view, peer, Region::ROW),
    ] {
        let granted = scene.fabric(B).grant(view, peer, region).map_err(|error| error.kind());
        let revoked = scene.fabric(B).revoke(view, peer, region).map_err(|error| error.kind());
        for (what, said) in [("grant", granted), ("revoke", revoked)] {
            ensure!(
                said.is_err() && said != Err(ErrorKind::QueueFull),
                "a {what} in {view} to rank {peer} of {region:?} returns {said:?}"
            );
        }
        ensure!(
            !scene.fabric(B).may_write(view, peer, region),
            "an unknown peer may write to {region:?}"
        );
    }
    scene.grant(B, link, LOG)?;
    scene.ensure_lands((A, B), link, LOG, 1)?;
    Ok(Finding::Holds)
}

fn made_once<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    for region in [Region::ROW, LOG, OTHER] {
        ensure!(scene.fabric(A).region(region, 4096).is_err(), "{region:?} is made a second time");
    }
    let link = scene.link([A, B])?;
    ensure!(scene.fabric(A).region(Region(3), 4096).is_err(), "a region is made after a view");
    scene.grant(B, link, LOG)?;
    scene.ensure_lands((A, B), link, LOG, 1)?;
    Ok(Finding::Holds)
}
