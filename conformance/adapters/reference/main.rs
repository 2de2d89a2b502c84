//! The reference adapter: a sequencer that is right, and mutants of it that are not.

fn main() {}
