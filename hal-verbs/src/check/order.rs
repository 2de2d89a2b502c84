//! Checks the order in which writes become visible.

use std::time::{Duration, Instant};

use super::connection::{CheckConnection, CheckedHalf};
use super::{CheckError, FindingVerdict, Judged, Session};
use crate::settings::WriteOrder;

/// The counter that guards the preceding writes, and the other end's answer to it, in a separate
/// cell.
const GUARD: usize = 0;
const ANSWER: usize = 64;

/// The offset of the contents, in [`PLACES`] consecutive slots.
const CONTENTS: usize = 4096;
const PLACES: u64 = 32;
const PLACE_BYTES: usize = 16_384;

/// The offset from which counters are written: a device may read late, so each counter has its own
/// slot until it has been answered.
const COUNTERS: usize = 786_432;

/// Time without an answer after which the last write is repeated.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Time limit for the answer to the last round. The other end also reports it of its own accord.
const LAST_MAX: Duration = Duration::from_secs(2);

/// Maximum lead of the writer over the observer. It is less than the number of slots.
const AHEAD_MAX: u64 = 16;

/// The lengths of contents, in turn.
const LENGTHS: [usize; 6] = [64, 8192, 512, 16_384, 4096, 1024];

/// Time limit for a round, unless the connection has failed.
const ROUND_MAX: Duration = Duration::from_secs(20);

fn place(round: u64) -> usize {
    CONTENTS + usize::try_from(round % PLACES).unwrap_or(0) * PLACE_BYTES
}

fn length(round: u64) -> usize {
    LENGTHS[usize::try_from(round).unwrap_or(0) % LENGTHS.len()]
}

/// Returns the number of words in a range that are older than a value.
fn older(connection: &CheckConnection, offset: usize, bytes: usize, value: u64) -> u64 {
    let row = connection.written();
    let is_older = |at: &usize| row.cell(*at).is_ok_and(|cell| cell.load() < value);
    (offset..offset + bytes).step_by(8).filter(is_older).count() as u64
}

/// One end's counts, as sent to the other.
struct Counted {
    rounds: u64,
    broken: u64,
}

fn tell(session: &mut Session<'_>, counted: &Counted) -> Result<(), CheckError> {
    session.tell_number(counted.rounds)?;
    session.tell_number(counted.broken)
}

fn hear(session: &mut Session<'_>) -> Result<Counted, CheckError> {
    Ok(Counted { rounds: session.hear_number()?, broken: session.hear_number()? })
}

/// Judges an order. Groups rely on it only if it is promised; `fault` then describes the failure.
fn judged(
    session: &Session<'_>,
    counted: &Counted,
    is_promised: bool,
    fault: impl FnOnce(&Counted) -> String,
) -> (FindingVerdict, String) {
    let Counted { rounds, broken } = counted;
    match (*rounds == session.rounds, broken, is_promised) {
        (false, ..) => (FindingVerdict::Failed, stopped(counted)),
        (true, 0, _) => (FindingVerdict::Passed, format!("the order was kept in {rounds} rounds")),
        (true, _, true) => (FindingVerdict::Failed, fault(counted)),
        (true, ..) => (
            FindingVerdict::Note,
            format!(
                "the order was not kept in {broken} of {rounds} rounds; groups on this device do \
                 not rely on it"
            ),
        ),
    }
}

/// Writes content and then its counter, repeatedly. The other end checks the content as soon as it
/// sees the counter.
pub(super) fn write_guarded(session: &mut Session<'_>) -> Judged {
    let mut connection = session.connect()?;
    stream(session, &mut connection, |round| {
        let counter = COUNTERS + usize::try_from(round % PLACES).unwrap_or(0) * 64;
        let content = CheckedHalf::at(place(round), length(round));
        vec![content, CheckedHalf { from: counter, to: GUARD, bytes: 8 }]
    });
    let counted = hear(session)?;
    session.meet()?;
    let by_device = session.site.report().write_order == WriteOrder::ByDevice;
    Ok(judged(session, &counted, by_device, |Counted { rounds, broken }| {
        format!(
            "{broken} of {rounds} counters overtook their content: writes are placed out of order \
             (adaptive routing, relaxed ordering); turn these features off, or set the RDMA order \
             of all members to none"
        )
    }))
}

/// Acts as the other end of [`write_guarded`].
pub(super) fn look_guarded(session: &mut Session<'_>) -> Result<(), CheckError> {
    let mut connection = session.connect()?;
    let rounds = session.rounds;
    let counted = watch(&mut connection, rounds, GUARD, |connection, from, to| {
        (from..=to)
            .filter(|round| older(connection, place(*round), length(*round), *round) > 0)
            .count() as u64
    });
    tell(session, &counted)?;
    session.meet()
}

/// Writes long contents. The other end checks the whole content as soon as it sees the last word.
pub(super) fn write_long(session: &mut Session<'_>) -> Judged {
    let mut connection = session.connect()?;
    stream(session, &mut connection, |_| vec![CheckedHalf::at(CONTENTS, PLACE_BYTES)]);
    let counted = hear(session)?;
    session.meet()?;
    let is_promised = session.site.report().order.addresses;
    Ok(judged(session, &counted, is_promised, |Counted { rounds, broken }| {
        format!(
            "the order was not kept in {broken} of {rounds} rounds, although the RDMA order \
             promises it; choose an RDMA order that promises less"
        )
    }))
}

/// Acts as the other end of [`write_long`].
pub(super) fn look_long(session: &mut Session<'_>) -> Result<(), CheckError> {
    let mut connection = session.connect()?;
    let (rounds, last) = (session.rounds, CONTENTS + PLACE_BYTES - 8);
    let counted = watch(&mut connection, rounds, last, |connection, _, to| {
        u64::from(older(connection, CONTENTS, PLACE_BYTES, to) > 0)
    });
    tell(session, &counted)?;
    session.meet()
}

/// Posts rounds, each after the round `ahead` rounds earlier has been answered. Ends early if there
/// is no answer.
fn stream(
    session: &Session<'_>,
    connection: &mut CheckConnection,
    parts: impl Fn(u64) -> Vec<CheckedHalf>,
) {
    // One slot is written repeatedly, so no lead is possible.
    let ahead = if parts(1).len() == 1 { 1 } else { AHEAD_MAX };
    let mut last = Vec::new();
    for round in 1..=session.rounds {
        if !await_answer(connection, round.saturating_sub(ahead), &last, ROUND_MAX) {
            return;
        }
        last = parts(round);
        for part in &last {
            connection.fill(part.from, part.bytes, round);
        }
        if !connection.write(&last, Instant::now() + ROUND_MAX) {
            return;
        }
    }
    // The other end reports its progress of its own accord.
    let _ = await_answer(connection, session.rounds, &last, LAST_MAX);
}

/// Waits until a round is answered. If a device keeps no order, an older write may land last and
/// stay, so the last write is repeated from time to time. Returns `false` if the connection has
/// failed, or if no answer arrives in time.
fn await_answer(
    connection: &mut CheckConnection,
    round: u64,
    last: &[CheckedHalf],
    time_limit: Duration,
) -> bool {
    let until = Instant::now() + time_limit;
    let mut again_at = Instant::now() + AGAIN_AFTER;
    while answered(connection) < round {
        let now = Instant::now();
        if now > until || now > again_at && !connection.write(last, until) {
            return false;
        }
        if now > again_at {
            again_at = now + AGAIN_AFTER;
        }
        std::thread::yield_now();
    }
    true
}

fn answered(connection: &CheckConnection) -> u64 {
    connection.written().cell(ANSWER).map_or(0, |cell| cell.load())
}

/// Watches a cell grow to the number of rounds, judges each step immediately, and answers it.
fn watch(
    connection: &mut CheckConnection,
    rounds: u64,
    cell: usize,
    judge: impl Fn(&CheckConnection, u64, u64) -> u64,
) -> Counted {
    let mut counted = Counted { rounds: 0, broken: 0 };
    let mut until = Instant::now() + ROUND_MAX;
    let mut again_at = Instant::now() + AGAIN_AFTER;
    while counted.rounds < rounds {
        let seen = connection.written().cell(cell).map_or(0, |cell| cell.load()).min(rounds);
        // An older write may have landed last.
        if seen <= counted.rounds {
            let now = Instant::now();
            if now > until {
                break;
            }
            if now > again_at {
                again_at = now + AGAIN_AFTER;
                if !connection.write(&[CheckedHalf::at(ANSWER, 8)], until) {
                    break;
                }
            }
            std::thread::yield_now();
            continue;
        }
        crate::adapter::device_read_barrier();
        counted.broken += judge(connection, counted.rounds + 1, seen);
        counted.rounds = seen;
        until = Instant::now() + ROUND_MAX;
        connection.fill(ANSWER, 8, seen);
        if !connection.write(&[CheckedHalf::at(ANSWER, 8)], until) {
            break;
        }
    }
    counted
}

/// Number of rounds in which a completion is reported to the other end.
const TOLD: u64 = 200;

/// Writes, waits for the completion, and reports it over TCP to the other end, which checks
/// immediately.
pub(super) fn write_and_tell(session: &mut Session<'_>) -> Judged {
    let mut connection = session.connect()?;
    let rounds = session.rounds.min(TOLD);
    let mut unseen = 0;
    for round in 1..=rounds {
        connection.fill(CONTENTS, PLACE_BYTES, round);
        connection.write_and_wait(CONTENTS, PLACE_BYTES, ROUND_MAX);
        session.tell_number(round)?;
        unseen += session.hear_number()?;
    }
    session.meet()?;
    let is_promised = session.site.report().order.visible_upon_completion;
    Ok(match (unseen, is_promised) {
        (0, _) => (FindingVerdict::Passed, format!("the write was visible in all {rounds} rounds")),
        (_, true) => (
            FindingVerdict::Failed,
            format!(
                "the write was not visible in {unseen} of {rounds} rounds, although the RDMA order \
                 promises it; choose an RDMA order that promises less"
            ),
        ),
        (_, false) => (
            FindingVerdict::Note,
            format!(
                "the write was not visible in {unseen} of {rounds} rounds; \
                                     groups on this device do not rely on it"
            ),
        ),
    })
}

/// Acts as the other end of [`write_and_tell`].
pub(super) fn look_when_told(session: &mut Session<'_>) -> Result<(), CheckError> {
    let connection = session.connect()?;
    for _ in 0..session.rounds.min(TOLD) {
        let round = session.hear_number()?;
        let is_unseen = older(&connection, CONTENTS, PLACE_BYTES, round) > 0;
        session.tell_number(u64::from(is_unseen))?;
    }
    session.meet()
}

fn stopped(counted: &Counted) -> String {
    format!(
        "the connection stopped after {} rounds; see the checks 'reach' and 'packet size'",
        counted.rounds
    )
}
