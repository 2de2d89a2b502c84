//! The life cycle of a view: open, ready, cut, retire.

use tramontane_core::fabric::{ErrorKind, Event, Fabric, Promises, Token};
use tramontane_core::ids::{Rank, ViewId};

use crate::report::{ClauseResult, Finding, clauses, ensure};
use crate::scene::{
    A, B, C, SHARED_ROWS, content, drain, ensure_refused, ensure_same, ensure_way, everyone, fill,
    guard, open, open_all, post, promises, read_bytes, snapshot, try_post, wait,
};
use crate::testbed::{Bench, VIEW};

clauses! { pub(super) Bench
    /// Before the writer opens the view, no peer is ready and a post is Other; a post to a peer
    /// that is not ready yet is QueueFull.
    "not-before-open", "Fabric::ready; VIE-11, VIE-12" => not_before_open;
    /// An open view cannot be opened again, and continues unchanged.
    "open-once", "Fabric::open" => open_once;
    /// When all members have opened the view, each gets one ready event per peer.
    "ready-told-once", "Event::Ready; VIE-12" => ready_reported_once;
    /// After a cut nothing is sent to the peer, nothing from it lands, and other peers are not
    /// affected.
    "cut-stops", "Fabric::cut; VIE-3" => cut_stops;
    /// A second cut has no effect; neither does cutting off an unknown peer, or in an unknown view.
    "cut-idempotent", "Fabric: what every implementation keeps" => cut_idempotent;
    /// Retiring a view completes: afterwards nothing lands in its memory, its row is not read,
    /// nothing can be posted, and this is final.
    "retire-ends", "Fabric::retire; VIE-11" => retire_ends;
}

/// Returns the finding of a clause that can test less if memory is shared.
fn finding(shared: bool) -> Finding {
    if shared { Finding::InPart(SHARED_ROWS) } else { Finding::Holds }
}

fn not_before_open<T: Bench>(bench: &mut T) -> ClauseResult {
    let shared = promises(bench, Promises::SHARED);
    fill(bench, A, 64, 64, 7);
    for member in everyone() {
        for peer in everyone() {
            ensure!(
                !bench.fabric(member).ready(VIEW, peer),
                "{peer} is ready for {member} before the view is open"
            );
        }
    }
    let result = try_post(bench, (A, B), &[content(64, 64)], Some(Token(1)));
    ensure!(
        result == Err(ErrorKind::Other),
        "a post before the view is open returns {result:?} instead of Other"
    );
    open(bench, A)?;
    bench.settle();
    if !bench.fabric(A).ready(VIEW, B) {
        let result = try_post(bench, (A, B), &[content(64, 64)], Some(Token(2)));
        ensure!(
            result == Err(ErrorKind::QueueFull),
            "a post to {B}, which is not ready yet, returns {result:?} instead of QueueFull"
        );
    }
    for member in [B, C] {
        open(bench, member)?;
    }
    let ready = wait(bench, |bench| {
        let to_each = |bench: &mut T, from, to| bench.fabric(from).ready(VIEW, to);
        Ok(to_each(bench, A, B) && to_each(bench, B, A) && to_each(bench, C, A))
    })?;
    ensure!(ready, "all members have opened the view, but some are never ready");
    bench.settle();
    let events = drain(bench, A)?;
    let completed = events.iter().find(|event| matches!(event, Event::Completed(_)));
    ensure!(completed.is_none(), "a refused post is reported as completed: {completed:?}");
    if !shared {
        let seen = read_bytes(&bench.copy(B, A), 64, 64);
        ensure_same(&seen, &[0; 64], "the writes refused before all members were ready")?;
    }
    ensure_way(bench, (A, B), 5)?;
    Ok(finding(shared))
}

fn open_once<T: Bench>(bench: &mut T) -> ClauseResult {
    open(bench, A)?;
    let again = bench.open(A);
    ensure!(again == Err(ErrorKind::Other), "a second open returns {again:?} instead of Other");
    for member in [B, C] {
        open(bench, member)?;
    }
    bench.settle();
    ensure_way(bench, (A, B), 5)?;
    ensure_way(bench, (B, A), 6)?;
    let again = bench.open(B);
    ensure!(
        again == Err(ErrorKind::Other),
        "a second open while in use returns {again:?} instead of Other"
    );
    ensure_way(bench, (A, B), 7)?;
    Ok(Finding::Holds)
}

fn ready_reported_once<T: Bench>(bench: &mut T) -> ClauseResult {
    for member in [C, A, B] {
        open(bench, member)?;
        bench.pass();
    }
    let mut told = vec![Vec::new(); everyone().count()];
    for _ in 0..5 {
        bench.settle();
        for member in everyone() {
            told[member.index()].extend(drain(bench, member)?);
        }
    }
    for member in everyone() {
        for peer in everyone() {
            let ready = Event::Ready { view: VIEW, peer };
            let times = told[member.index()].iter().filter(|event| **event == ready).count();
            let expected = usize::from(peer != member);
            ensure!(times == expected, "{member} gets {times} ready events for {peer}");
            ensure!(
                peer == member || bench.fabric(member).ready(VIEW, peer),
                "{peer} is not ready for {member}"
            );
        }
    }
    Ok(Finding::Holds)
}

fn cut_stops<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    let shared = promises(bench, Promises::SHARED);
    for (from, to) in [(A, B), (B, A)] {
        fill(bench, from, 512, 512, 3);
        post(bench, (from, to), &[content(512, 512)], None)?;
    }
    bench.pass();
    bench.fabric(A).cut(VIEW, B);
    let before = snapshot(&bench.copy(A, B));
    ensure_refused(try_post(bench, (A, B), &[guard(64, 8)], None), "a post to a peer after a cut")?;
    fill(bench, B, 64, 8, 4);
    // The post may be accepted, because B need not know of the cut yet, but it must not arrive.
    let _ = try_post(bench, (B, A), &[guard(64, 8)], None);
    bench.settle();
    if !shared {
        let what = format!("{A}'s copy of {B}'s row after {A} had cut its connection to {B}");
        ensure_same(&snapshot(&bench.copy(A, B)), &before, &what)?;
    }
    for (way, value) in [((A, C), 5), ((C, A), 6), ((B, C), 7), ((C, B), 8)] {
        ensure_way(bench, way, value)?;
    }
    Ok(finding(shared))
}

fn cut_idempotent<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    for (view, peer) in
        [(VIEW, Rank(9)), (VIEW, Rank(u16::MAX)), (ViewId(77), C), (ViewId(77), Rank(9))]
    {
        bench.fabric(A).cut(view, peer);
    }
    for way in [(A, B), (A, C), (B, A), (C, A)] {
        ensure_way(bench, way, 4)?;
    }
    for times in 1..=4 {
        bench.fabric(A).cut(VIEW, B);
        let result = try_post(bench, (A, B), &[guard(64, 8)], None);
        ensure_refused(
            result,
            &format!("a post to a peer whose connection was cut {times} times"),
        )?;
        ensure_way(bench, (A, C), times)?;
        ensure_way(bench, (C, A), times)?;
        bench.settle();
    }
    Ok(Finding::Holds)
}

fn retire_ends<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    let shared = promises(bench, Promises::SHARED);
    for (from, to) in [(A, B), (B, A), (C, A)] {
        fill(bench, from, 512, 2048, 3);
        post(bench, (from, to), &[content(512, 2048), guard(64, 8)], None)?;
    }
    bench.pass();
    let ended = wait(bench, |bench| Ok(bench.fabric(A).retire(VIEW)))?;
    ensure!(ended, "retiring the view never completes");
    let memory = |bench: &T| [B, C].map(|owner| snapshot(&bench.copy(A, owner)));
    let before = memory(bench);
    // The memory may be reused now, and its new contents must not reach any peer.
    fill(bench, A, 0, 4096, 0xee);
    ensure_refused(try_post(bench, (A, B), &[guard(64, 8)], None), "a post in a retired view")?;
    ensure!(!bench.fabric(A).ready(VIEW, B), "{B} is ready in a view that {A} retired");
    for from in [B, C] {
        fill(bench, from, 4096, 64, 5);
        // These members may not know of the cut yet; their writes must not land.
        let _ = try_post(bench, (from, A), &[content(4096, 64)], None);
    }
    for _ in 0..3 {
        bench.settle();
        ensure!(bench.fabric(A).retire(VIEW), "the view was retired, but later is not");
    }
    if !shared {
        for (before, after) in before.iter().zip(memory(bench)) {
            ensure_same(&after, before, "a copy in a retired view")?;
        }
        let seen = snapshot(&bench.copy(B, A));
        ensure!(!seen.contains(&0xee), "{B} sees bytes that {A} stored after the view had ended");
    }
    ensure_way(bench, (B, C), 9)?;
    Ok(finding(shared))
}
