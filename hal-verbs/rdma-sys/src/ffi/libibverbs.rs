//! The fabric's own declarations.

#[path = "../../../src/ffi/libibverbs/numbers.rs"]
#[allow(dead_code)]
pub(crate) mod numbers;
#[path = "../../../src/ffi/libibverbs/structures.rs"]
#[allow(dead_code)]
pub(crate) mod structures;

/// The shape in which the declarations list themselves.
pub(crate) mod against_the_header {
    #[derive(Debug, PartialEq)]
    pub(crate) struct Declared {
        pub(crate) name: &'static str,
        pub(crate) is_whole: bool,
        pub(crate) bytes: usize,
        /// Names, offsets and sizes.
        pub(crate) fields: &'static [(&'static str, usize, usize)],
    }

    pub(crate) const fn size_of_field<S, F>(_: fn(&S) -> *const F) -> usize {
        size_of::<F>()
    }
}

pub(crate) const STRUCTURES: &[against_the_header::Declared] = structures::DECLARED;
pub(crate) const NUMBERS: &[(&str, u32)] = numbers::DECLARED;
