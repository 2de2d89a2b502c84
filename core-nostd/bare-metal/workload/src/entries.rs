//! The calls that a partition makes into the core, each as a separate function of the image: the
//! stack bound is computed for each (`../../stack`).

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
    /// Opens a node of a fixed membership.
    node_open,
    /// A step of such a node, with its fabric and its application.
    node_step,
    /// Reserves a slot, fills it and commits it.
    send,
    /// A step of a health monitor.
    monitor_step,
    /// A step of a partition of the example: opening, ports, its node, restart.
    partition_step,
}
#[cfg(feature = "blocks")]
entries! {
    /// A step of a block group.
    block_group_step,
}
#[cfg(feature = "tram")]
entries! {
    /// A step of a replica of a group of the overlay.
    replica_step,
    /// A step of a client of the overlay.
    client_step,
}

/// Does nothing; or, to show that the bound detects them, makes a recursion or a call whose target
/// is unknown.
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

/// Uses more stack than anything else, so that the bound shows whether it was counted.
#[cfg(feature = "planted-indirect-call")]
#[inline(never)]
fn target(number: u64) -> u64 {
    let kept = core::hint::black_box([number; 1024]);
    kept.iter().copied().fold(0, u64::wrapping_add)
}
