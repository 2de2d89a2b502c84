//! Where an image's lines go.

use crate::flips;
use crate::group::Report;
use crate::partitions;

/// A place that takes bytes, and prints numbers without `core::fmt`, so that no result depends on
/// what is being proved.
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

    /// Puts out a number in decimal.
    fn number(&mut self, value: u64) {
        let mut power = 10_000_000_000_000_000_000_u64;
        while power > 1 && value < power {
            power /= 10;
        }
        while power > 0 {
            self.put(b'0'.wrapping_add(((value / power) % 10) as u8));
            power /= 10;
        }
    }

    /// Puts out what became of the flipped bits; true if each ended as it must.
    fn flips(&mut self, machine: &str, report: Option<flips::Report>) -> bool {
        self.text(machine);
        self.text(": two members with checks, ");
        let Some(report) = report else {
            self.line("a flipped bit stayed silent: FAILED");
            return false;
        };
        self.number(report.reported);
        self.text(" flipped bits reported, ");
        self.number(report.agreed);
        self.line(" without harm, none silent: ok");
        true
    }

    /// Puts out what became of the two partitions; true if they agree.
    fn partitions(&mut self, machine: &str, report: Option<partitions::Report>) -> bool {
        self.text(machine);
        self.text(": two partitions over ports, ");
        let Some(report) = report else {
            self.line("the run went wrong: FAILED");
            return false;
        };
        self.number(report.messages);
        self.text(" messages, ");
        self.number(report.restarts);
        self.text(" restarts, queues full ");
        self.number(report.full);
        self.line(" times, same order: ok");
        true
    }

    /// Puts out what a run came to; true if it went well.
    fn verdict(&mut self, machine: &str, memory: &str, report: Option<Report>) -> bool {
        self.text(machine);
        self.text(": three members, ");
        self.text(memory);
        self.text(", ");
        let Some(report) = report else {
            self.line("the run went wrong: FAILED");
            return false;
        };
        self.number(report.messages);
        self.text(" messages, ");
        self.number(report.nulls);
        self.text(" nulls, ");
        self.number(report.posts);
        self.text(" posts, ");
        self.number(report.stack_bytes);
        self.line(" bytes of stack a step, same order: ok");
        true
    }
}
