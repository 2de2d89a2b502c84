//! The declarations of `rdma-sys`, read with the fabric's lists.

use rdma_sys::*;

use crate::ffi::libibverbs::against_the_header::{Declared, size_of_field};
use crate::ffi::libibverbs::{NUMBERS, STRUCTURES};

macro_rules! structures {
    ($($extent:ident $name:ident { $($field:ident: $kind:ty,)* })*) => {
        const THEIRS: &[Declared] = &[$(Declared {
            name: stringify!($name),
            is_whole: matches!(stringify!($extent).as_bytes(), b"whole"),
            bytes: size_of::<rdma_sys::$name>(),
            fields: &[$((
                stringify!($field),
                std::mem::offset_of!(rdma_sys::$name, $field),
                size_of_field(|it: &rdma_sys::$name| &raw const it.$field),
            ),)*],
        },)*];
    };
}

include!(concat!(env!("OUT_DIR"), "/structures.rs"));

#[test]
fn structures_equal_those_of_rdma_sys() {
    assert_eq!(STRUCTURES.len(), THEIRS.len());
    let mut fields = 0;
    for (ours, theirs) in STRUCTURES.iter().zip(THEIRS) {
        assert_eq!((ours.name, ours.is_whole), (theirs.name, theirs.is_whole));
        if ours.is_whole {
            assert_eq!(ours.bytes, theirs.bytes, "{}", ours.name);
        }
        for (own, their) in ours.fields.iter().zip(theirs.fields) {
            // rdma-sys has other names for unions.
            assert_eq!((own.1, own.2), (their.1, their.2), "{}.{}", ours.name, own.0);
            fields += 1;
        }
        assert_eq!(ours.fields.len(), theirs.fields.len(), "{}", ours.name);
    }
    assert!(fields > 150, "only {fields} fields were compared");
}

/// A number of `rdma-sys`: a constant, or a flag in a structure of its own.
trait Number {
    fn number(self) -> u32;
}

impl Number for u32 {
    fn number(self) -> u32 {
        self
    }
}

macro_rules! flags {
    ($($name:ident)*) => { $(impl Number for $name {
        fn number(self) -> u32 {
            self.0
        }
    })* };
}

flags! { ibv_access_flags ibv_qp_attr_mask ibv_send_flags ibv_wc_flags }

macro_rules! numbers {
    ($(mod $enumeration:ident { $($name:ident = $value:expr;)* })*) => {
        fn their_numbers() -> Vec<(&'static str, u32)> {
            vec![$($((stringify!($name), $enumeration::$name.number()),)*)*]
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/numbers.rs"));

#[test]
fn numbers_equal_those_of_rdma_sys() {
    assert_eq!(NUMBERS, their_numbers());
}

#[test]
fn fabric_uses_the_linked_library() {
    assert_eq!(crate::link(), Ok(()));
    tramontane_verbs::devices::Devices::discover().expect("a list of devices");
}
