//! The value that a write carries, and the meaning of a completion.

use std::collections::BTreeMap;

use tramontane_core::fabric::{ErrorKind, Event, Fabric, Promises, Token, Write};

use crate::report::{Breach, ClauseResult, Finding, clauses, ensure};
use crate::scene::{
    A, B, C, capabilities, content, drain, ensure_same, everyone, fill, guard, open_all, post,
    promises, read_bytes, try_post, wait,
};
use crate::testbed::Bench;

clauses! { pub(super) Bench
    /// A guard carries the bytes that it had at the call, regardless of later stores.
    "guard-as-posted", "Kind::Guard; DESIGN, The seam" => guard_as_posted;
    /// Changes made after a list has completed do not reach the peer with that list.
    "content-until-completed", "Kind::Content; Event::Completed" => content_until_completed;
    /// Each list posted with a token, even an empty one, completes exactly once, and no other list
    /// does.
    "completed-once", "Fabric::post; Event::Completed" => completed_once;
    /// Completions wait for a member that polls late; if they cannot, the post is refused as
    /// QueueFull.
    "completions-kept", "Fabric::post; HAL-2" => completions_kept;
    /// If visibility on completion is promised, a list's bytes are visible at the peer when the
    /// list completes.
    "completion-visible", "Promises::COMPLETION_VISIBLE" => completion_visible;
}

const STORE_IS_WRITE: Finding = Finding::NotApplicable(
    "a store in the row is already the write, so no value is carried at the call or later",
);

const ROUNDS: u8 = 40;

fn guard_as_posted<T: Bench>(bench: &mut T) -> ClauseResult {
    if promises(bench, Promises::SHARED) {
        return Ok(STORE_IS_WRITE);
    }
    open_all(bench)?;
    let longest = capabilities(bench).guard_bytes_max.min(512);
    let guards = [(64, 8), (200, 24), (1024, longest)];
    let list = [content(2048, 1024), guard(64, 8), guard(200, 24), guard(1024, longest)];
    for round in 1..=ROUNDS {
        for (offset, length) in guards {
            fill(bench, A, offset, length, round);
        }
        post(bench, (A, B), &list, None)?;
        for (offset, length) in guards {
            fill(bench, A, offset, length, 100 + round);
        }
        bench.settle();
        for (offset, length) in guards {
            let seen = read_bytes(&bench.copy(B, A), offset, length);
            let what = format!(
                "a guard of {length} bytes whose source changed from {round} after the call"
            );
            ensure_same(&seen, &vec![round; length], &what)?;
        }
    }
    Ok(Finding::Holds)
}

/// Waits until a token completes; other completions are a breach, because nothing else is in
/// flight.
fn await_completion<T: Bench>(bench: &mut T, token: Token) -> Result<(), Breach> {
    let completed = wait(bench, |bench| {
        let Some(event) = bench.fabric(A).poll() else { return Ok(false) };
        if let Event::Completed(other) = event {
            ensure!(other == token, "{other:?} completes while only {token:?} is in flight");
        }
        Ok(event == Event::Completed(token))
    })?;
    ensure!(completed, "{token:?} never completes");
    Ok(())
}

fn content_until_completed<T: Bench>(bench: &mut T) -> ClauseResult {
    if promises(bench, Promises::SHARED) {
        return Ok(STORE_IS_WRITE);
    }
    open_all(bench)?;
    let list = [content(100, 1000), content(2048, 64)];
    for round in 1..=ROUNDS {
        let token = Token(u64::from(round));
        let store = |bench: &T, value| {
            list.iter().for_each(|w| fill(bench, A, w.source.offset, w.length, value))
        };
        store(bench, round);
        post(bench, (A, B), &list, Some(token))?;
        await_completion(bench, token)?;
        store(bench, 100 + round);
        bench.settle();
        for write in &list {
            let seen = read_bytes(&bench.copy(B, A), write.target.offset, write.length);
            let what =
                format!("content whose source changed from {round} after its list had completed");
            ensure_same(&seen, &vec![round; write.length], &what)?;
        }
    }
    Ok(Finding::Holds)
}

/// Adds a member's completions to the counts by token.
fn count_completions<T: Bench>(
    bench: &mut T,
    counts: &mut BTreeMap<u64, u32>,
) -> Result<(), Breach> {
    for event in drain(bench, A)? {
        if let Event::Completed(Token(token)) = event {
            *counts.entry(token).or_default() += 1;
        }
    }
    Ok(())
}

/// Checks that each of these tokens completed once, and no other did.
fn ensure_each_once(tokens: &[u64], counts: &BTreeMap<u64, u32>) -> Result<(), Breach> {
    for token in tokens {
        let times = counts.get(token).copied().unwrap_or(0);
        ensure!(times == 1, "token {token} completes {times} times");
    }
    let unknown = counts.keys().find(|token| !tokens.contains(token));
    ensure!(unknown.is_none(), "token {unknown:?} completes, but no accepted list has it");
    Ok(())
}

fn completed_once<T: Bench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    let longest = capabilities(bench).writes_max.min(16);
    let tokens = [0, u64::MAX, 1, 2, 3, 4, 1 << 40, 5, 6, 7, 8, 9];
    let mut counts = BTreeMap::new();
    for (index, token) in tokens.into_iter().enumerate() {
        let length = [1, 4, 0, longest][index % 4];
        let list: Vec<Write> = (0..length)
            .map(|at| if at % 2 == 0 { content(at * 256, 200) } else { guard(at * 256, 8) })
            .collect();
        let way = (A, if index % 3 == 0 { C } else { B });
        post(bench, way, &list, Some(Token(token)))?;
        // The list is posted again without a token.
        post(bench, way, &list, None)?;
        if index % 2 == 0 {
            bench.pass();
            count_completions(bench, &mut counts)?;
        }
    }
    bench.settle();
    count_completions(bench, &mut counts)?;
    ensure_each_once(&tokens, &counts)?;
    bench.settle();
    count_completions(bench, &mut counts)?;
    ensure_each_once(&tokens, &counts)?;
    for member in everyone().filter(|member| *member != A) {
        let events = drain(bench, member)?;
        let completed = events.iter().find(|event| matches!(event, Event::Completed(_)));
        ensure!(completed.is_none(), "{member} posted nothing, but gets {completed:?}");
    }
    Ok(Finding::Holds)
}

fn completions_kept<T: Bench>(bench: &mut T) -> ClauseResult {
    const LISTS: u64 = 3000;
    open_all(bench)?;
    let mut accepted = Vec::new();
    for token in 0..LISTS {
        let way = (A, if token % 2 == 0 { B } else { C });
        let mut result = try_post(bench, way, &[guard(64, 8)], Some(Token(token)));
        if result == Err(ErrorKind::QueueFull) {
            bench.settle();
            result = try_post(bench, way, &[guard(64, 8)], Some(Token(token)));
        }
        match result {
            Ok(()) => accepted.push(token),
            Err(ErrorKind::QueueFull) => break,
            Err(kind) => {
                return Err(Breach(format!("a post was refused while no member polls: {kind}")));
            }
        }
    }
    bench.settle();
    let mut counts = BTreeMap::new();
    count_completions(bench, &mut counts)?;
    bench.settle();
    count_completions(bench, &mut counts)?;
    let lost = accepted.iter().filter(|token| counts.get(token) != Some(&1)).count();
    ensure!(
        lost == 0,
        "of {} lists, {lost} are not reported exactly once to a member that polls late",
        accepted.len()
    );
    // Polling frees room in the queue.
    post(bench, (A, B), &[guard(64, 8)], Some(Token(LISTS)))?;
    Ok(Finding::Holds)
}

fn completion_visible<T: Bench>(bench: &mut T) -> ClauseResult {
    if !promises(bench, Promises::COMPLETION_VISIBLE) {
        return Ok(Finding::NotApplicable("visibility upon completion is not promised"));
    }
    open_all(bench)?;
    let list = [content(0, 2048), guard(2048, 8), content(4096, 2048)];
    for round in 1..=ROUNDS {
        let token = Token(u64::from(round));
        for write in &list {
            fill(bench, A, write.source.offset, write.length, round);
        }
        post(bench, (A, B), &list, Some(token))?;
        await_completion(bench, token)?;
        for write in &list {
            let seen = read_bytes(&bench.copy(B, A), write.target.offset, write.length);
            let what = format!("in completed list {round}, the write at {}", write.target.offset);
            ensure_same(&seen, &vec![round; write.length], &what)?;
        }
    }
    Ok(Finding::Holds)
}
