//! Capabilities, and calls that return at once.

use std::time::{Duration, Instant};

use tramontane_core::fabric::{Capabilities, Fabric};

use crate::report::{Breach, ClauseResult, Finding, clauses, ensure};
use crate::scene::{A, B, C, capabilities, drain, everyone, guard, open_all, try_post};
use crate::testbed::{Bench, VIEW};

clauses! { pub(super) Bench
    /// A fabric's promises and limits are the same at every call and for every member, from before
    /// open until after retire.
    "capabilities-constant", "Fabric::capabilities" => constant;
    /// A guard can be kept after its content; a list may have four writes, a guard 24 bytes.
    "capabilities-sane", "Capabilities; DESIGN, The seam; SMC-6, HAL-1" => sane;
    /// No call blocks: neither a poll with nothing to report, nor a post to a peer that receives
    /// nothing.
    "calls-return", "Fabric: what every implementation keeps; HAL-2" => calls_return;
}

fn constant<T: Bench>(bench: &mut T) -> ClauseResult {
    let first = capabilities(bench);
    let same = |bench: &mut T, when: &str| -> Result<(), Breach> {
        for member in everyone() {
            let now = bench.fabric(member).capabilities();
            ensure!(
                now == first,
                "{when}, {member} reports {now:?}, but {A} first reported {first:?}"
            );
        }
        Ok(())
    };
    same(bench, "before open")?;
    open_all(bench)?;
    same(bench, "after open")?;
    for _ in 0..50 {
        // The result does not matter here.
        let _ = try_post(bench, (A, B), &[guard(0, 8)], None);
    }
    same(bench, "after posts")?;
    bench.fabric(A).cut(VIEW, C);
    bench.fabric(B).retire(VIEW);
    bench.settle();
    same(bench, "after a cut and a retired view")?;
    Ok(Finding::Holds)
}

fn sane<T: Bench>(bench: &mut T) -> ClauseResult {
    let says = capabilities(bench);
    ensure!(
        says.can_guard(),
        "neither order between writes nor visible completions: {:?}",
        says.promises
    );
    let Capabilities { writes_max, write_bytes_max, guard_bytes_max, .. } = says;
    ensure!(writes_max >= 4, "a list may have only {writes_max} writes");
    ensure!(guard_bytes_max >= 24, "a guard may have only {guard_bytes_max} bytes");
    ensure!(
        write_bytes_max >= guard_bytes_max,
        "a write may have only {write_bytes_max} bytes, less than a guard"
    );
    Ok(Finding::Holds)
}

fn calls_return<T: Bench>(bench: &mut T) -> ClauseResult {
    // Far longer than a call takes, and far shorter than any wait would be.
    const EACH_MAX: Duration = Duration::from_millis(1);
    const CALLS: u32 = 2000;
    open_all(bench)?;
    let mut timed = |what: &str, call: &mut dyn FnMut(&mut T)| -> Result<(), Breach> {
        let start = Instant::now();
        for calls in 1..=CALLS {
            call(bench);
            let taken = start.elapsed();
            ensure!(taken < EACH_MAX * CALLS, "{what}: {calls} calls take {taken:?}");
        }
        Ok(())
    };
    timed("a poll with nothing to report", &mut |bench| {
        bench.fabric(B).poll();
    })?;
    // No time passes between the posts, so most fabrics refuse at some point.
    timed("a post that no peer receives", &mut |bench| {
        let _ = try_post(bench, (A, B), &[guard(0, 8)], None);
    })?;
    timed("a wake", &mut |bench| bench.fabric(A).wake(VIEW, C))?;
    timed("arm and disarm", &mut |bench| {
        bench.fabric(C).arm();
        bench.fabric(C).disarm();
    })?;
    bench.settle();
    drain(bench, A)?;
    Ok(Finding::Holds)
}
