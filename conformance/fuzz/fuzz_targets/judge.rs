//! Any bytes: the judge must come to a verdict or a refusal, and the same as the naive statements
//! where these can be afforded.

#![no_main]

#[path = "../../tests/suite/judges/mod.rs"]
#[allow(dead_code, reason = "the tests ask for more")]
mod judges;
#[path = "../../tests/suite/naive/mod.rs"]
mod naive;

use libfuzzer_sys::fuzz_target;

/// The naive statements are cubic; beyond this they would be all that is fuzzed.
const LINES_MAX: usize = 60;

fuzz_target!(|history: &[u8]| {
    if history.iter().filter(|byte| **byte == b'\n').count() <= LINES_MAX {
        judges::assert_agreed("what was found", history);
    } else {
        let _ = judges::fast(history);
    }
});
