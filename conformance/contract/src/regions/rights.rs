//! Write permissions for a region: none at first, then exactly those that the owner grants.

use tramontane_core::fabric::{ErrorKind, Kind, PermissionEvent, Region, Write};

use super::RegionBench;
use super::scene::{A, B, C, LOG, OTHER, PairView, Scene, between, from_row};
use super::testbed::Process;
use crate::report::{Breach, ClauseResult, Finding, clauses, ensure};
use crate::scene::ensure_same;

clauses! { pub(super) RegionBench
    /// At first no peer may write to any region: its posts are Revoked, or Denied later.
    "right-none-at-first", "Permissions: what every implementation keeps" => none_at_first;
    /// With permission a write lands exactly at its target, from the row and from the same region.
    "right-lets-land", "Permissions::grant; Fabric::post" => lets_land;
    /// A write may come from any local region.
    "right-any-source", "permissions: what a peer that has the right posts" => any_source;
    /// A permission covers a single peer, in a single view, for a single region.
    "right-of-one", "Permissions::grant; HostRegions" => of_one;
    /// After a refused post, the writer is notified when it can post again.
    "right-told", "Permissions::grant; PermissionEvent::Restored" => told;
    /// Granting or revoking a permission twice has the same effect as once.
    "right-twice", "Permissions::grant, revoke" => twice;
}

/// Posts without permission and checks that nothing lands, whether the post is refused at once or
/// denied later.
fn ensure_kept_out<T: RegionBench>(
    scene: &mut Scene<'_, T>,
    (from, to): (Process, Process),
    link: PairView,
    region: Region,
) -> Result<(), Breach> {
    let before = scene.snapshot(to, region);
    scene.fill(from, region, 512, &[0xee; 64]);
    let writes = [between(region, 512, 64, Kind::Content), between(region, 768, 8, Kind::Guard)];
    let posted = scene.post(from, link, &writes, Some(666));
    ensure!(
        matches!(posted, Ok(()) | Err(ErrorKind::Revoked | ErrorKind::QueueFull)),
        "a post without permission returns {posted:?}"
    );
    scene.settle()?;
    let what = format!("{region:?} of {to} after a post by {from}, which has no permission");
    ensure_same(&scene.snapshot(to, region), &before, &what)?;
    ensure!(!scene.completed(from).contains(&666), "a write without permission completes");
    if posted.is_ok() {
        let denied = PermissionEvent::Denied { view: link.view, peer: link.peer_of(from), region };
        let told = scene.take_told(from);
        ensure!(
            told.contains(&denied),
            "a post without permission is accepted, and {told:?} is reported"
        );
    }
    Ok(())
}

fn none_at_first<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let link = scene.link([A, B])?;
    for (owner, writer) in [(A, B), (B, A)] {
        for region in [LOG, OTHER] {
            ensure!(!scene.may_write(owner, link, region), "{writer} may write to {region:?}");
            ensure_kept_out(&mut scene, (writer, owner), link, region)?;
        }
        scene.ensure_row((writer, owner), link, 5)?;
    }
    Ok(Finding::Holds)
}

/// Offsets at and across the boundaries of cells and lines: source, target and length.
const PLACES: [(usize, usize, usize); 8] = [
    (0, 0, 8),
    (64, 64, 200),
    (8, 1024, 1600),
    (129, 3001, 61),
    (132, 5000, 3),
    (40, 4004, 24),
    (1023, 8191, 2),
    (2048, 12_288, 1000),
];

fn lets_land<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let link = scene.link([A, B])?;
    scene.grant(B, link, LOG)?;
    let mut expected = scene.snapshot(B, LOG);
    let pattern = |salt: usize| -> Vec<u8> {
        (0..4096).map(|at| u8::try_from((at * 7 + salt) % 251).map_or(1, |byte| byte + 1)).collect()
    };
    scene.fill(A, LOG, 0, &pattern(3));
    scene.fill_row(A, link, 0, &pattern(5));
    for (source, target, length) in PLACES {
        let of_row = from_row(source, LOG, target, length);
        let mut of_region =
            Write { target: of_row.target, ..between(LOG, source, length, Kind::Content) };
        of_region.target.offset += 16_384;
        for (write, bytes) in [(of_row, pattern(5)), (of_region, pattern(3))] {
            scene.post_through(A, link, &[write], None)?;
            let at = write.target.offset;
            expected[at..at + length].copy_from_slice(&bytes[source..source + length]);
        }
    }
    // The very last bytes of the region, and a list whose last write is a guard.
    let end = expected.len();
    let list = [
        from_row(0, LOG, end - 64, 64),
        from_row(64, LOG, 30_000, 16),
        Write { kind: Kind::Guard, ..from_row(80, LOG, 30_016, 8) },
    ];
    scene.post_through(A, link, &list, None)?;
    for write in list {
        let (from, to) = (write.source.offset, write.target.offset);
        expected[to..to + write.length].copy_from_slice(&pattern(5)[from..from + write.length]);
    }
    scene.wait(|scene| Ok(scene.snapshot(B, LOG) == expected))?;
    scene.settle()?;
    ensure_same(&scene.snapshot(B, LOG), &expected, "the region after all writes")?;
    let others = [scene.snapshot(B, OTHER), scene.snapshot(C, LOG)];
    ensure!(others.iter().flatten().all(|byte| *byte == 0), "other regions changed");
    Ok(Finding::Holds)
}

fn any_source<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let link = scene.link([A, B])?;
    scene.grant(B, link, LOG)?;
    scene.fill(A, OTHER, 128, &[9; 128]);
    let write = Write {
        source: between(OTHER, 128, 128, Kind::Content).source,
        ..from_row(0, LOG, 640, 128)
    };
    scene.post_through(A, link, &[write], None)?;
    let landed = scene.wait(|scene| Ok(scene.look(B, LOG, 640, 128) == [9; 128]))?;
    ensure!(landed, "a write from {OTHER:?} to {LOG:?} does not land");
    Ok(Finding::Holds)
}

fn of_one<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let [link, again, third] = [scene.link([A, B])?, scene.link([A, B])?, scene.link([B, C])?];
    scene.grant(B, link, LOG)?;
    scene.ensure_lands((A, B), link, LOG, 1)?;
    for (writer, link, region) in [(A, link, OTHER), (A, again, LOG), (C, third, LOG)] {
        ensure!(!scene.may_write(B, link, region), "{writer} may write in {}", link.view);
        ensure_kept_out(&mut scene, (writer, B), link, region)?;
    }
    ensure!(!scene.may_write(A, link, LOG), "the grant applies to its owner instead of its peer");
    ensure_kept_out(&mut scene, (B, A), link, LOG)?;
    scene.ensure_lands((A, B), link, LOG, 2)?;
    // Two peers write at once, each with its own permission, and one of the permissions is revoked.
    scene.grant(B, third, LOG)?;
    scene.ensure_lands((C, B), third, LOG, 3)?;
    scene.revoke(B, link, LOG)?;
    ensure_kept_out(&mut scene, (A, B), link, LOG)?;
    scene.ensure_lands((C, B), third, LOG, 4)?;
    Ok(Finding::Holds)
}

fn told<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let link = scene.link([A, B])?;
    let restored =
        PermissionEvent::Restored { view: link.view, peer: link.peer_of(A), region: LOG };
    for value in 1..=10 {
        let refused = scene.wait(|scene| {
            let posted = scene.post(A, link, &[between(LOG, 512, 8, Kind::Guard)], None);
            Ok(posted == Err(ErrorKind::Revoked))
        })?;
        ensure!(refused, "without permission, posts are never Revoked");
        scene.take_told(A);
        scene.grant(B, link, LOG)?;
        let mut is_told = false;
        scene.wait(|scene| {
            is_told |= scene.take_told(A).contains(&restored);
            Ok(is_told)
        })?;
        ensure!(
            is_told,
            "a post was refused, then permission was granted, but nothing is reported"
        );
        scene.ensure_lands((A, B), link, LOG, value)?;
        scene.revoke(B, link, LOG)?;
        scene.settle()?;
    }
    Ok(Finding::Holds)
}

fn twice<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let link = scene.link([A, B])?;
    scene.revoke(B, link, LOG)?;
    for value in 1..=3 {
        scene.grant(B, link, LOG)?;
        scene.ensure_lands((A, B), link, LOG, value)?;
        scene.grant(B, link, LOG)?;
        scene.ensure_lands((A, B), link, LOG, value + 10)?;
        scene.revoke(B, link, LOG)?;
        scene.revoke(B, link, LOG)?;
        ensure_kept_out(&mut scene, (A, B), link, LOG)?;
    }
    Ok(Finding::Holds)
}
