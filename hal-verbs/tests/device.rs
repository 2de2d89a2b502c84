//! The fabric on a device: a fake device, or in the lab a real one (`hal-verbs/lab/run`; see
//! `hal-verbs/README.md`).

#[path = "device/blocks.rs"]
mod blocks;
#[path = "device/counts.rs"]
mod counts;
#[path = "device/impostors.rs"]
mod impostors;
#[path = "device/losses.rs"]
mod losses;
#[path = "device/nodes.rs"]
mod nodes;
#[path = "device/permissions.rs"]
mod permissions;
#[path = "device/relays.rs"]
mod relays;
#[path = "device/starting.rs"]
mod starting;
#[path = "device/views.rs"]
mod views;

mod group;

use std::time::{Duration, Instant};

use group::GroupShape;
use tramontane_core::fabric::{Event, Fabric, Kind, ViewRows as _, Write};
use tramontane_core::ids::Rank;
use tramontane_verbs::{Rows, Verbs};

const A: Rank = Rank(0);
const B: Rank = Rank(1);

/// A member whose view is open.
struct OpenMember {
    fabric: Verbs,
    rows: Rows,
}

/// Returns members whose events so far have been taken.
fn members(shape: &GroupShape) -> Vec<OpenMember> {
    let member = |mut joined: group::Joined| {
        while joined.fabric.poll().is_some() {}
        OpenMember { rows: joined.fabric.rows().clone(), fabric: joined.fabric }
    };
    group::join_all(shape).into_iter().map(member).collect()
}

/// Returns two members of a group.
fn pair(shape: &GroupShape) -> (OpenMember, OpenMember) {
    let mut members = members(&GroupShape { members: 2, ..shape.clone() }).into_iter();
    (members.next().expect("two"), members.next().expect("two"))
}

fn guard(offset: usize, length: usize) -> Write {
    Write::of_row(offset, length, Kind::Guard)
}

fn content(offset: usize, length: usize) -> Write {
    Write::of_row(offset, length, Kind::Content)
}

/// Takes all events of a fabric.
fn drain(fabric: &mut Verbs) -> Vec<Event> {
    std::iter::from_fn(|| fabric.poll()).collect()
}

/// Waits until a condition holds, yielding the processor to the device. Returns the time that this
/// took.
#[track_caller]
fn wait_for(what: &str, most: Duration, mut done: impl FnMut() -> bool) -> Duration {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < most, "{what} did not come within {most:?}");
        std::thread::sleep(Duration::from_micros(100));
    }
    started.elapsed()
}

/// Waits until nothing is in flight.
#[track_caller]
fn settle(member: &mut OpenMember) {
    let fabric = &mut member.fabric;
    wait_for("the end of all that is under way", Duration::from_secs(20), || {
        fabric.flush();
        fabric.collect();
        fabric.in_flight() == 0
    });
}

/// Returns a range of a member's copy of another's row.
fn seen(holder: &OpenMember, owner: Rank, offset: usize, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    holder.rows.rows()[owner.index()].read(offset, &mut bytes).expect("in the row");
    bytes
}

fn store(member: &OpenMember, offset: usize, bytes: &[u8]) {
    member.rows.row().apply(offset, bytes).expect("in the row");
}

#[test]
fn devices_are_listed() {
    let devices = group::device::devices();
    println!("{devices}");
    println!("{}", serde_json::to_string_pretty(&devices).expect("data"));
    let device = devices.devices.first().expect("a device");
    assert!(device.limits.inline_bytes_max >= 64, "{device:?}");
    let choice = devices.choose(&group::device::wanted()).expect("a choice");
    assert!(choice.gid.index > 0, "GID 0 leads nowhere: {choice:?}");
}

#[test]
fn join_report_names_the_chosen_settings() {
    let joined = group::join_all(&GroupShape { members: 2, ..GroupShape::default() });
    println!("{:?}", joined[0].report);
    let report = &joined[0].report;
    assert!(report.loss_times.least() >= Duration::from_secs(1));
    assert!(report.order.writes && !report.order.addresses);
    assert!(report.depth >= 64 && report.inline_bytes_max >= 64);
}
