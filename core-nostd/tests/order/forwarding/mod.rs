//! A fabric that wraps another forwards each call and each answer unchanged (FAB-2). Two kinds are
//! tested: a borrowed fabric, and one whose events pass through its host.

#[cfg(feature = "blocks")]
mod blocks;
mod recorder;

use core::time::Duration;
use std::collections::BTreeSet;
use std::fmt::Debug;

use recorder::{Recorder, Silent, StaticRows, TOLD, Unhurried, static_rows};
use tramontane_core::fabric::{
    Area, Event, Fabric, HostFabric, HostRegions, Kind, Permissions, Region, Routed, Token,
    ViewPlan, ViewRows, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};

const VIEW: ViewId = ViewId(8);
const PEER: Rank = Rank(2);

/// Answers of the calls, as text.
type Answers = Vec<String>;

fn say(answer: &dyn Debug) -> String {
    format!("{answer:?}")
}

/// Calls each method of a fabric once, and returns the answers.
fn call_fabric(fabric: &mut impl Fabric) -> Answers {
    let rows = static_rows();
    let writes = [Write::of_row(8, 3, Kind::Content), Write::of_row(0, 8, Kind::Guard)];
    fabric.wake(VIEW, PEER);
    fabric.cut(VIEW, Rank(3));
    fabric.disarm();
    fabric.observe_barrier();
    vec![
        say(&fabric.capabilities()),
        say(&fabric.open(VIEW, &rows.memory())),
        say(&fabric.ready(VIEW, PEER)),
        say(&fabric.post(VIEW, PEER, &writes, Some(Token(5)))),
        say(&fabric.poll()),
        say(&fabric.arm()),
        say(&fabric.retire(VIEW)),
    ]
}

/// Calls each method that concerns regions.
fn call_permissions(fabric: &mut impl Permissions) -> Answers {
    let area = |region, offset| Area { region, offset };
    let (source, into) = (area(TOLD, 16), area(Region(1), 32));
    vec![
        say(&fabric.region_list_bytes_max()),
        say(&fabric.grant(VIEW, PEER, TOLD)),
        say(&fabric.revoke(VIEW, Rank(1), Region(4))),
        say(&fabric.may_write(VIEW, PEER, Region(5))),
        say(&fabric.read(VIEW, PEER, source, into, 48, Token(6))),
        say(&fabric.poll_permission()),
    ]
}

/// Calls each method of a host fabric.
fn call_host<H>(fabric: &mut H) -> Answers
where
    H: HostRegions<Bell = Silent, RegionMemory = StaticRows>,
{
    let plan = ViewPlan::with_sizes(VIEW, PEER, &[NodeId(4)], &[64], 12);
    fabric.leave();
    vec![
        say(&fabric.rows(&plan).map(|rows| rows.own())),
        say(&fabric.local_bell()),
        say(&fabric.sleep(Duration::from_millis(4))),
        say(&fabric.idle_time()),
        say(&fabric.check_peers()),
        say(&fabric.region(Region(2), 640).map(|rows| rows.own())),
        say(&fabric.views_max()),
    ]
}

/// Returns the calls that arrive at a recorder, and the answers that its caller receives.
fn seen(succeeds: bool, drive: impl FnOnce(&mut Recorder) -> Answers) -> (Vec<String>, Answers) {
    let mut recorder = Recorder::new(succeeds);
    let answers = drive(&mut recorder);
    (recorder.calls.into_inner(), answers)
}

/// Asserts that `count` different calls arrive, and that calls and answers are the same whether the
/// recorder is called directly or through a wrapper.
fn is_handed_on(
    count: usize,
    itself: impl Fn(&mut Recorder) -> Answers,
    other: impl Fn(&mut Recorder) -> Answers,
) {
    let mut told = BTreeSet::new();
    for succeeds in [true, false] {
        let (calls, answers) = seen(succeeds, &itself);
        assert_eq!(calls.iter().collect::<BTreeSet<_>>().len(), count, "{calls:?}");
        assert_eq!(seen(succeeds, &other), (calls, answers.clone()));
        told.insert(answers);
    }
    assert_eq!(told.len(), 2, "success and failure are told apart");
}

#[test]
fn borrowed_fabric_forwards_calls_and_answers() {
    is_handed_on(11, call_fabric, |mut recorder| call_fabric(&mut recorder));
    is_handed_on(6, call_permissions, |mut recorder| call_permissions(&mut recorder));
    is_handed_on(8, call_host, |mut recorder| call_host(&mut recorder));
}

/// Wraps the recorder as a fabric whose host passes every event on.
fn routed(fabric: &mut Recorder) -> impl Permissions {
    Routed { fabric, poll: |fabric: &mut &mut Recorder| fabric.poll() }
}

#[test]
fn routed_fabric_forwards_calls_and_answers() {
    is_handed_on(11, call_fabric, |recorder| call_fabric(&mut routed(recorder)));
    is_handed_on(6, call_permissions, |recorder| call_permissions(&mut routed(recorder)));
}

/// The host keeps the events of the other view.
#[test]
fn routed_fabric_returns_events_chosen_by_its_host() {
    let ready = Event::Ready { view: VIEW, peer: PEER };
    let mut others = Vec::new();
    let poll = |fabric: &mut Recorder| {
        let event = fabric.poll()?;
        others.push(event);
        Some(ready)
    };
    let mut routed = Routed { fabric: Recorder::new(true), poll };
    assert_eq!(routed.poll(), Some(ready));
    routed.fabric.succeeds = false;
    assert_eq!(routed.poll(), None);
    assert_eq!(routed.fabric.calls.borrow().len(), 2, "each poll went to the fabric once");
    assert_eq!(others, [Event::Completed(Token(77))]);
}

/// A member without work keeps polling for the millisecond of Spindle II-D, unless its fabric
/// specifies a different time. This also holds for a borrowed fabric.
#[test]
fn default_idle_time_is_one_millisecond() {
    let mut fabric = Unhurried;
    assert_eq!(fabric.idle_time(), Duration::from_millis(1));
    let mut borrowed = &mut fabric;
    assert_eq!(HostFabric::idle_time(&borrowed), Duration::from_millis(1));
    let mut knows_better = Recorder::new(true);
    assert_ne!(HostFabric::idle_time(&&mut knows_better), HostFabric::idle_time(&&mut borrowed));
}
