//! Options that several commands share, and how their values are read.

use std::time::Duration;

use clap::Args;
use tramontane_core::layout::{MESSAGE_MAX, WINDOW_MAX};
use tramontane_core::rdmc::Algorithm;
use tramontane_local::options::AlgorithmName;

use super::exit::Failure;
use tramontane_runtime::group::WINDOW_DEFAULT;

/// The window.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct WindowOption {
    /// Slots of each sender: how many of its messages may be under way
    #[arg(long, value_name = "SLOTS", default_value_t = WINDOW_DEFAULT,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(WINDOW_MAX)))]
    pub(super) window: u32,
}

/// How long to wait for the others.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct JoinOption {
    /// How long to wait for all members to start, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", allow_negative_numbers = true,
          value_parser = seconds)]
    pub(super) join_timeout: Duration,
}

/// The algorithm of that name; that it needs racks is the user's mistake.
pub(super) fn without_racks(name: AlgorithmName) -> Result<Algorithm, Failure> {
    let needed = || Failure::usage("members have no racks here", "take another --algorithm");
    name.of_no_racks().ok_or_else(needed)
}

/// The largest time that can be asked for: ten years, which every clock can add.
const SECONDS_MAX: f64 = 315_360_000.0;

/// Reads a time in seconds: `2`, `0.5`.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(0.0..=SECONDS_MAX).contains(&seconds) {
        return Err("not between 0 and ten years".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Reads the size of the largest record, for a slot that holds `framing` bytes beside it.
pub(super) fn record_bytes<const FRAMING: u32>(text: &str) -> Result<u32, String> {
    let limit = MESSAGE_MAX - FRAMING;
    match text.parse::<u32>() {
        Ok(bytes) if bytes <= limit => Ok(bytes),
        _ => Err(format!("not a number of bytes from 0 to {limit}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds() {
        assert_eq!(seconds("2"), Ok(Duration::from_secs(2)));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["", "x", "-1", "NaN", "inf", "1e300", "2s"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_leave_room_for_the_framing() {
        assert_eq!(record_bytes::<0>("268435456"), Ok(MESSAGE_MAX));
        assert_eq!(record_bytes::<1>("268435455"), Ok(MESSAGE_MAX - 1));
        for bad in ["268435456", "-1", "x", "99999999999999999999"] {
            assert!(record_bytes::<1>(bad).is_err(), "{bad}");
        }
    }
}
