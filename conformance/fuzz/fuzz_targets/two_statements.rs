//! Histories of the generator whose choices the fuzzer makes: the two statements of every check
//! must agree.

#![no_main]

#[path = "../../tests/suite/judges/mod.rs"]
#[allow(dead_code, reason = "the tests ask for more")]
mod judges;
#[path = "../../tests/suite/naive/mod.rs"]
mod naive;
#[path = "../../tests/suite/random_histories/mod.rs"]
#[allow(dead_code, reason = "the tests ask for more")]
mod random_histories;

use libfuzzer_sys::fuzz_target;
use random_histories::Chance;

/// Choices from bytes: two for each, and zero when there are no more.
struct Bytes<'b>(&'b [u8]);

impl Chance for Bytes<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        let Some((drawn, rest)) = self.0.split_at_checked(2) else { return 0 };
        self.0 = rest;
        u64::from(u16::from_le_bytes([drawn[0], drawn[1]])) % bound.max(1)
    }
}

fuzz_target!(|choices: &[u8]| {
    let history = random_histories::history(&mut Bytes(choices));
    judges::assert_agreed("what was found", &history);
});
