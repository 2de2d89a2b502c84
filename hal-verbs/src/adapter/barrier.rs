//! The barrier that keeps the load of a device's last bytes before the loads of the bytes that the
//! device wrote earlier.

/// Keeps later loads after earlier loads, even if a device made the stores (HAL-1).
///
/// - x86-64: the processor keeps loads from ordinary memory in order, and its caches see device
///   writes, so only the compiler has to be restrained. The kernel's `dma_rmb` does no more than
///   that either.
/// - aarch64: the language's acquire fence orders loads against other processors (`dmb ishld`). A
///   device may be outside that domain, so this is `dmb oshld`, as in the kernel and in rdma-core.
/// - Elsewhere, the language's strongest fence is used, and the device must be coherent.
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
