//! What the images run.

#![no_std]

mod surface;

use core::hint::black_box;

/// Where an image's lines go.
pub trait Console {
    /// Puts out one byte.
    fn put(&mut self, byte: u8);

    /// Puts out a text.
    fn text(&mut self, text: &str) {
        for byte in text.bytes() {
            self.put(byte);
        }
    }

    /// Puts out a text and ends the line.
    fn line(&mut self, text: &str) {
        self.text(text);
        self.put(b'\n');
    }

    /// Puts out a number in decimal, without `core::fmt`, which is larger than all of the core.
    fn number(&mut self, value: u64) {
        let mut power = 10_000_000_000_000_000_000_u64;
        while power > 1 && value < power {
            power /= 10;
        }
        while power > 0 {
            let digit = (value / power) % 10;
            self.put(b'0'.wrapping_add(digit as u8));
            power /= 10;
        }
    }
}

/// Runs everything and says whether it went well.
pub fn run(machine: &str, console: &mut impl Console) -> bool {
    plant();
    surface::call_everything();
    console.text(machine);
    console.text(": ");
    console.number(black_box(1234567890));
    console.line(" placeholder: ok");
    true
}

/// Nothing; or, to show that the proof works, a panic that can be reached.
fn plant() {
    #[cfg(feature = "planted-panic")]
    black_box([1, 2, 3][black_box(0_usize)]);
    #[cfg(feature = "planted-overflow")]
    black_box(black_box(1_u64) + black_box(2_u64));
}
