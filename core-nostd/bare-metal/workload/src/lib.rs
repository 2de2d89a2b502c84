//! The workload of all images: three members of a group, two members in whose memory bits flip, two
//! partitions over ports, and a call to every public function of the core.

#![no_std]

mod console;
mod entries;
mod fabric;
mod flips;
mod group;
pub mod log;
mod member;
mod partitions;
mod stack;
mod surface;

pub use console::Console;

/// Runs everything, prints a line for each part, and returns whether all parts passed.
pub fn run(machine: &str, console: &mut impl Console) -> bool {
    plant();
    let shared = group::run(false);
    let copied = group::run(true);
    surface::call_everything();

    let passed = [
        console.verdict(machine, "one memory", shared),
        console.verdict(machine, "copied rows", copied),
        console.flips(machine, flips::run()),
        console.partitions(machine, partitions::run()),
    ];
    passed == [true; 4]
}

/// Does nothing, unless it is built to show that the proof works: it then contains a panic that can
/// be reached.
fn plant() {
    #[cfg(any(feature = "planted-panic", feature = "planted-overflow"))]
    use core::hint::black_box;
    #[cfg(feature = "planted-panic")]
    black_box([1, 2, 3][black_box(0_usize)]);
    #[cfg(feature = "planted-overflow")]
    black_box(black_box(1_u64) + black_box(2_u64));
}
