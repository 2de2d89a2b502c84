//! The output of an image.

use crate::flips;
use crate::group::Report;
use crate::partitions;

/// A device that accepts bytes. Numbers are printed without `core::fmt`, so that no result depends
/// on the code whose properties are being proved.
pub trait Console {
    /// Writes one byte.
    fn put(&mut self, byte: u8);

    /// Writes a text.
    fn text(&mut self, text: &str) {
        for byte in text.bytes() {
            self.put(byte);
        }
    }

    /// Writes a line of text.
    fn line(&mut self, text: &str) {
        self.text(text);
        self.put(b'\n');
    }

    /// Writes a number in decimal.
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

    /// Writes the results of the runs with flipped bits, and returns whether each run ended as
    /// required.
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

    /// Writes the results of the two partitions, and returns whether they agree.
    fn partitions(&mut self, machine: &str, report: Option<partitions::Report>) -> bool {
        self.text(machine);
        self.text(": two partitions over ports, ");
        let Some(report) = report else {
            self.line("the run did not pass: FAILED");
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

    /// Writes the result of a run, and returns whether it passed.
    fn verdict(&mut self, machine: &str, memory: &str, report: Option<Report>) -> bool {
        self.text(machine);
        self.text(": three members, ");
        self.text(memory);
        self.text(", ");
        let Some(report) = report else {
            self.line("the run did not pass: FAILED");
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
