//! The barrier between a load of what a device wrote last and loads of what it wrote before.

/// Keeps later loads after earlier loads, even if the stores are a device's (HAL-1).
///
/// - x86-64: the processor keeps loads from ordinary memory in order, and its caches see device
///   writes, so only the compiler has to be restrained. The kernel's `dma_rmb` does no more than
///   that either.
/// - aarch64: an acquire fence of the language orders against other processors (`dmb ishld`). A
///   device may be outside that domain, so this is `dmb oshld`, as in the kernel and in rdma-core.
/// - Elsewhere: the strongest fence of the language; the device must be coherent.
#[inline]
pub(crate) fn device_read_barrier() {
    #[cfg(target_arch = "x86_64")]
    std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier changes no register and no memory.
    unsafe {
        std::arch::asm!("dmb oshld", options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}
