//! A fabric whose events pass through its host forwards each call and answer unchanged (FAB-2).

#[cfg(feature = "blocks")]
mod blocks;
mod recorder;

use core::time::Duration;
use std::collections::BTreeSet;
use std::fmt::Debug;

use recorder::{Recorder, Unhurried, static_rows};
use tramontane_core::fabric::{
    Event, Fabric, HostFabric as _, Kind, Routed, Token, ViewRows, Write,
};
use tramontane_core::ids::{Rank, ViewId};

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

/// Wraps the recorder as a fabric whose host passes every event on.
fn routed(fabric: &mut Recorder) -> impl Fabric {
    Routed { fabric, poll: |fabric: &mut Recorder| fabric.poll() }
}

#[test]
fn routed_fabric_forwards_calls_and_answers() {
    is_handed_on(11, call_fabric, |recorder| call_fabric(&mut routed(recorder)));
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
    let mut recorder = Recorder::new(true);
    let mut routed = Routed { fabric: &mut recorder, poll };
    assert_eq!(routed.poll(), Some(ready));
    routed.fabric.succeeds = false;
    assert_eq!(routed.poll(), None);
    assert_eq!(routed.fabric.calls.borrow().len(), 2, "each poll went to the fabric once");
    assert_eq!(others, [Event::Completed(Token(77))]);
}

/// A member without work keeps polling for the millisecond of Spindle II-D, unless its fabric
/// specifies a different time.
#[test]
fn default_idle_time_is_one_millisecond() {
    assert_eq!(Unhurried.idle_time(), Duration::from_millis(1));
}
