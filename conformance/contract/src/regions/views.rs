//! Many views open at once, which share the memory of regions.

use tramontane_core::fabric::HostRegions;

use super::RegionBench;
use super::scene::{A, ALL, B, C, LOG, OTHER, PairView, Scene};
use super::testbed::Process;
use crate::report::{Breach, ClauseResult, Finding, clauses, ensure};

clauses! { pub(super) RegionBench
    /// Many two-member views are open at once, with ids in any order, and all of them carry rows.
    "views-at-once", "HostRegions: what every implementation keeps" => at_once;
    /// Views are opened and retired one by one, in any order, while others are in use; a retired
    /// view makes room for another.
    "views-come-and-go", "HostRegions: what every implementation keeps" => come_and_go;
    /// A region is a single memory area shared by all views, even by two views of the same pair of
    /// processes.
    "region-shown-by-all", "HostRegions: what every implementation keeps" => shown_by_all;
}

/// Each pair of processes, used in turn.
const PAIRS: [[Process; 2]; 3] = [[A, B], [C, A], [B, C]];

/// Opens as many views on each process as the bench tries and the fabric allows.
fn open_many<T: RegionBench>(scene: &mut Scene<'_, T>) -> Result<Vec<PairView>, Breach> {
    let tried = scene.bench.views_tried();
    let each = ALL.map(|process| scene.fabric(process).views_max().min(tried));
    let views = each.into_iter().min().unwrap_or(0) / 2 * PAIRS.len();
    ensure!(views >= PAIRS.len(), "the processes have {each:?} views open");
    let links: Vec<PairView> =
        PAIRS.into_iter().cycle().take(views).map(|pair| scene.fresh_link(pair)).collect();
    for link in &links {
        // The second member opens the view later, after other views have been opened.
        scene.open(link.members[0], *link)?;
    }
    for link in links.iter().rev() {
        scene.open(link.members[1], *link)?;
    }
    links.iter().try_for_each(|link| scene.await_ready(*link))?;
    Ok(links)
}

/// Checks that rows are carried in both directions of a view.
fn ensure_rows<T: RegionBench>(
    scene: &mut Scene<'_, T>,
    link: PairView,
    value: u8,
) -> Result<(), Breach> {
    let [one, other] = link.members;
    scene.ensure_row((one, other), link, value)?;
    scene.ensure_row((other, one), link, value)
}

fn at_once<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let links = open_many(&mut scene)?;
    for (link, value) in links.iter().zip((1..=200).cycle()) {
        ensure_rows(&mut scene, *link, value)?;
    }
    // A write in one view is visible in no other.
    for (link, value) in links.iter().zip((1..=200_u8).cycle()) {
        let [one, other] = link.members;
        let seen = [scene.look_row(one, *link, 64, 8), scene.look_row(other, *link, 64, 8)];
        ensure!(
            seen == [[value; 8], [value; 8]],
            "rows of {} hold {seen:?} instead of {value}",
            link.view
        );
    }
    Ok(Finding::Holds)
}

fn come_and_go<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let mut links = open_many(&mut scene)?;
    for round in 0..3_u8 {
        // Every second view is retired, on one member after the other, and replaced with a new one.
        for place in (0..links.len()).skip(usize::from(round % 2)).step_by(2).rev() {
            let link = links[place];
            scene.retire(link.members[usize::from(round % 2)], link)?;
            let beside = links[(place + 1) % links.len()];
            ensure_rows(&mut scene, beside, 50 + round)?;
            scene.retire(link.members[usize::from(round % 2 == 0)], link)?;
            links[place] = scene.link(link.members)?;
        }
        for link in links.clone() {
            ensure_rows(&mut scene, link, 100 + round)?;
        }
    }
    Ok(Finding::Holds)
}

fn shown_by_all<T: RegionBench>(bench: &mut T) -> ClauseResult {
    let mut scene = Scene::new(bench)?;
    let links = [scene.link([A, B])?, scene.link([B, C])?, scene.link([A, B])?];
    let writers = [A, C, A];
    for (link, region) in [(0, LOG), (1, LOG), (2, LOG), (1, OTHER)] {
        scene.grant(B, links[link], region)?;
    }
    for (value, turn) in (1..).zip([0, 1, 2, 1, 0, 2]) {
        scene.ensure_lands((writers[turn], B), links[turn], LOG, value)?;
    }
    scene.ensure_lands((C, B), links[1], OTHER, 77)?;
    ensure!(scene.look(B, LOG, 256, 64) == [6; 64], "a write to {OTHER:?} changes {LOG:?}");
    // A view that is opened later also provides access to the region, and the end of one view does
    // not remove the region from another.
    scene.retire(B, links[0])?;
    scene.retire(A, links[0])?;
    scene.ensure_lands((A, B), links[2], LOG, 78)?;
    let late = scene.link([C, B])?;
    scene.grant(B, late, LOG)?;
    scene.ensure_lands((C, B), late, LOG, 79)?;
    Ok(Finding::Holds)
}
