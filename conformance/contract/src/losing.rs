//! Lost peers: each is reported once, with a cause, and without affecting other peers.

use tramontane_core::fabric::{ErrorKind, Event};

use crate::report::{Breach, ClauseResult, Finding, clauses, ensure};
use crate::scene::{A, B, C, drain, ensure_way, guard, open_all, try_post};
use crate::testbed::Bench;

clauses! { pub(super) Bench
    /// A member that loses a peer to which it writes gets one event with a cause, and no event
    /// about other peers.
    "loss-told-once", "Event::PeerLost; HAL-5, VIE-2" => reported_once;
    /// A post to a lost peer is PeerLost, and traffic with the other peers continues.
    "lost-peer-refused", "ErrorKind::PeerLost; HAL-5" => refused;
    /// While all members exist and none has cut another, no peer is reported lost.
    "no-loss-without-cause", "Event::PeerLost; HAL-5" => not_without_cause;
}

/// Ends B, has both other members write to it, and waits until they detect the loss. Returns the
/// reason if this cannot be provoked.
fn lose_b<T: Bench>(bench: &mut T) -> Result<Option<&'static str>, Breach> {
    open_all(bench)?;
    if let Err(reason) = bench.lose(B) {
        return Ok(Some(reason));
    }
    for from in [A, C] {
        // On some fabrics only a member that writes can detect the loss; the write itself may or
        // may not be accepted.
        let _ = try_post(bench, (from, B), &[guard(64, 8)], None);
    }
    Ok(None)
}

fn reported_once<T: Bench>(bench: &mut T) -> ClauseResult {
    if let Some(reason) = lose_b(bench)? {
        return Ok(Finding::NotApplicable(reason));
    }
    let mut told = [Vec::new(), Vec::new()];
    for _ in 0..5 {
        bench.settle();
        for (member, told) in [A, C].into_iter().zip(&mut told) {
            let losses = drain(bench, member)?.into_iter();
            told.extend(losses.filter(|event| matches!(event, Event::PeerLost { .. })));
            let _ = try_post(bench, (member, B), &[guard(64, 8)], None);
        }
    }
    for (member, told) in [A, C].into_iter().zip(&told) {
        ensure!(!told.is_empty(), "{member} gets no event for the loss of {B}");
        let of_b = matches!(told[..], [Event::PeerLost { peer: B, .. }]);
        ensure!(of_b, "{member} lost only {B}, but gets {told:?}");
    }
    Ok(Finding::Holds)
}

fn refused<T: Bench>(bench: &mut T) -> ClauseResult {
    if let Some(reason) = lose_b(bench)? {
        return Ok(Finding::NotApplicable(reason));
    }
    for _ in 0..5 {
        bench.settle();
    }
    for member in [A, C] {
        drain(bench, member)?;
        for _ in 0..3 {
            let result = try_post(bench, (member, B), &[guard(64, 8)], None);
            ensure!(
                result == Err(ErrorKind::PeerLost),
                "{member} reported the loss of {B}, but a post to {B} returns {result:?}"
            );
        }
    }
    ensure_way(bench, (A, C), 5)?;
    ensure_way(bench, (C, A), 6)?;
    Ok(Finding::Holds)
}

fn not_without_cause<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    for value in 1..=20 {
        for way in [(A, B), (B, C), (C, A), (B, A)] {
            ensure_way(bench, way, value)?;
        }
        for member in [A, B, C] {
            let events = drain(bench, member)?;
            let lost = events.iter().find(|event| matches!(event, Event::PeerLost { .. }));
            ensure!(lost.is_none(), "all members exist, but {member} gets {lost:?}");
        }
    }
    Ok(Finding::Holds)
}
