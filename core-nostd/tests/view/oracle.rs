//! Conditions that hold in every state of a view. The oracle reads rows bit by bit, and counts
//! independently of the core.

use tramontane_core::ids::NodeId;
use tramontane_core::layout::ViewColumn;
use tramontane_core::view::Status;

use crate::arena::{Arena, ArenaSetting};

/// The decision that one member has found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    pub members: Vec<NodeId>,
    /// The trim of each subgroup; `None` if no member of the subgroup remains.
    pub trims: Vec<Option<u64>>,
    /// Whether no member stays.
    pub ends: bool,
}

fn entry(setting: &ArenaSetting, row: &[u64], index: u16) -> u64 {
    row[setting.cell(ViewColumn::Entry(index)).expect("an entry of the list")]
}

/// Returns whether the list in a row ends with a seal.
pub fn is_sealed(setting: &ArenaSetting, row: &[u64], count: u16) -> bool {
    count > 0 && entry(setting, row, count - 1) >> 32 & 0xffff == 5
}

/// Returns the decision in a row, decoding the entries one by one from their bits.
fn decision(arena: &Arena, rank: usize) -> Decision {
    let setting = arena.setting;
    let row = &arena.members[rank].row;
    let count = arena.accepted(rank).accepted.count;
    let all = setting.layout.group().members;
    let (mut members, mut leavers) = (all.to_vec(), Vec::new());
    for index in 0..count {
        let cell = entry(setting, row, index);
        let what = cell as u32;
        match cell >> 32 & 0xffff {
            kind @ (1 | 2) => {
                let node = all[what as usize];
                members.retain(|member| *member != node);
                leavers.extend((kind == 2).then_some(node));
            }
            3 => members.push(NodeId(what)),
            4 => members.retain(|member| *member != NodeId(what)),
            _ => {}
        }
    }
    // DUR-12: if no member stays, the next view consists of those that leave.
    let ends = !members.iter().any(|member| all.contains(member));
    if ends {
        members = all.iter().copied().filter(|node| leavers.contains(node)).collect();
    }
    let trims = (0..setting.subgroups().len())
        .map(|id| {
            let cell = row[setting
                .cell(ViewColumn::Trim(tramontane_core::ids::SubgroupId(id as u16)))
                .unwrap()];
            if cell == u64::MAX { None } else { Some(cell - 1) }
        })
        .collect();
    Decision { members, trims, ends }
}

/// Checks a view after a step of member `rank`, and returns the error if there is one.
pub fn check(arena: &mut Arena, rank: usize) -> Result<(), String> {
    let setting = arena.setting;
    let status = arena.status(rank);
    if let Some(peer) = arena.members[rank].around.misbehaved.first() {
        return Err(format!("{rank} says that {peer} misbehaved, and nobody did"));
    }
    if matches!(status, Status::Decided | Status::Installed | Status::Left) {
        let found = decision(arena, rank);
        // VIE-9: a majority of the view has echoed.
        let echoes = arena.members.iter().filter(|member| member.echoed).count();
        if echoes * 2 <= setting.members() {
            return Err(format!("{rank} decides with {echoes} echoes of {}", setting.members()));
        }
        if found.members.is_empty() {
            return Err(format!("{rank} decides on nobody"));
        }
        // VIE-11: the member's memory was ready before the echo.
        let around = &arena.members[rank].around;
        let is_prepared = around.prepared.0 == found.members && around.is_prepared();
        if !found.ends && !is_prepared {
            return Err(format!(
                "{rank} decides on {:?} and has prepared {:?}",
                found.members, around.prepared
            ));
        }
        match &arena.decision {
            None => arena.decision = Some(found),
            // VIE-1, VIE-6: there is one next view, and one set of trims.
            Some(first) if *first != found => {
                return Err(format!("{rank} decides {found:?}, and somebody decided {first:?}"));
            }
            Some(_) => {}
        }
    }
    let Some(decided) = arena.decision.clone() else { return Ok(()) };
    for (other, member) in arena.members.iter().enumerate() {
        for (id, subgroup) in setting.subgroups().iter().enumerate() {
            if !subgroup.members.iter().any(|rank| rank.index() == other) {
                continue;
            }
            let delivered = member.around.parts[id].delivered;
            let Some(trim) = decided.trims[id] else { continue };
            // A message that any member delivered, even a crashed or halted one, is not lost to the
            // members that continue.
            if delivered > trim {
                return Err(format!(
                    "{other} delivered {delivered} in subgroup {id}, whose trim is {trim}"
                ));
            }
            // VIE-8: a member that continues has delivered all messages up to the trim.
            let done = matches!(member.state.status(), Status::Installed | Status::Left);
            if done && delivered != trim {
                return Err(format!("{other} goes on with {delivered} of {trim} in subgroup {id}"));
            }
        }
        if member.state.status() == Status::Installed {
            let node = setting.layout.group().members[other];
            if decided.ends || !decided.members.contains(&node) {
                return Err(format!("{other} installs a view that it is not in"));
            }
        }
    }
    // A leaver exits only after the members of the next view have installed it, or have exited or
    // are lost to the leaver.
    if status == Status::Left {
        for (other, member) in arena.members.iter().enumerate() {
            let stays = decided.members.contains(&setting.layout.group().members[other]);
            let installed = member.row[setting.cell(ViewColumn::Installed).unwrap()];
            let there = installed == setting.id.0 + 2;
            let lost = !member.alive || matches!(member.state.status(), Status::Halted(_));
            let known_lost = arena.members[rank].peers[other].is_lost();
            let cut = arena.members[rank].around.cut.contains(&(other as u16));
            if stays && !there && !lost && !known_lost && !cut {
                return Err(format!("{rank} left before {other} installed"));
            }
        }
    }
    Ok(())
}

/// Checks a view at rest, in which every crash is known to all and no live member was suspected:
/// each member that can continue has done so.
pub fn check_end(arena: &Arena) -> Result<(), String> {
    let alive = arena.members.iter().filter(|member| member.alive).count();
    let had_to_change = alive < arena.members.len()
        || arena
            .members
            .iter()
            .any(|member| member.row[arena.setting.cell(ViewColumn::Leaving).unwrap()] != 0);
    if !had_to_change {
        return Ok(());
    }
    for (rank, member) in arena.members.iter().enumerate().filter(|(_, member)| member.alive) {
        let status = member.state.status();
        let gone_on = matches!(status, Status::Installed | Status::Left);
        if gone_on {
            continue;
        }
        if alive * 2 > arena.members.len()
            || arena.decision.is_none() && !matches!(status, Status::Halted(_))
        {
            return Err(format!("{rank} is {status:?} at the end, and {alive} are alive"));
        }
    }
    Ok(())
}
