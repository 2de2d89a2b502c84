//! The calls that a partition makes into the core, each as a separate function in the image,
//! because the stack bound is computed for each of them (`../../stack`).

/// Defines functions that run a closure and are not inlined into their callers.
macro_rules! entries {
    ($($(#[$doc:meta])* $name:ident,)*) => { $(
        $(#[$doc])*
        #[inline(never)]
        pub fn $name<R>(call: impl FnOnce() -> R) -> R {
            call()
        }
    )* };
}

entries! {
    /// Opens a node with a fixed membership.
    node_open,
    /// Steps such a node, with its fabric and its application.
    node_step,
    /// Reserves a slot, fills it and commits it.
    send,
    /// Steps a health monitor.
    monitor_step,
    /// Steps a partition of the example: opening, ports, its node, restart.
    partition_step,
}
#[cfg(feature = "blocks")]
entries! {
    /// Steps a block group.
    block_group_step,
}
#[cfg(feature = "tram")]
entries! {
    /// Steps a replica of a group in the overlay.
    replica_step,
    /// Steps a client of the overlay.
    client_step,
}

/// Does nothing, unless it is built to show that the bound detects faults: it then makes a
/// recursion or a call whose target is unknown.
pub fn plant() {
    #[cfg(feature = "planted-recursion")]
    core::hint::black_box(recur(core::hint::black_box(3)));
    #[cfg(feature = "planted-indirect-call")]
    core::hint::black_box(target as fn(u64) -> u64)(1);
}

#[cfg(feature = "planted-recursion")]
#[inline(never)]
fn recur(depth: u64) -> u64 {
    let less = core::hint::black_box(depth.saturating_sub(1));
    if depth == 0 { 0 } else { recur(less).saturating_add(core::hint::black_box(depth)) }
}

/// Uses more stack than anything else, so that the bound shows whether this function was counted.
#[cfg(feature = "planted-indirect-call")]
#[inline(never)]
fn target(number: u64) -> u64 {
    let kept = core::hint::black_box([number; 1024]);
    kept.iter().copied().fold(0, u64::wrapping_add)
}
