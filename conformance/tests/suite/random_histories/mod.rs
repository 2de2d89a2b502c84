//! Small random histories: first valid ones from a model of a group, then damaged ones.
//!
//! All choices come from one [`Chance`], so that a seed or the bytes of a fuzzer always give the
//! same history.

mod cast;
mod chance;
mod chaos;
mod model;
mod spoil;
mod steps;

pub use chance::Chance;

use tramontane_conformance::history::{Event, Writer};

/// A history's records.
pub type Records = Vec<Event<'static>>;

/// Returns one history as the contents of a file.
pub fn history(chance: &mut impl Chance) -> Vec<u8> {
    let chaotic = chance.percent(15);
    let mut records = if chaotic { chaos::records(chance) } else { model::records(chance) };
    if chance.percent(40) {
        spoil::interleave(chance, &mut records);
    }
    if chance.percent(if chaotic { 30 } else { 75 }) {
        spoil::records(chance, &mut records);
    }
    let mut bytes = written(&records);
    if chance.percent(3) {
        spoil::bytes(chance, &mut bytes);
    }
    bytes
}

fn written(records: &Records) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    for record in records {
        writer.write(record).expect("a vector takes all that is written");
    }
    writer.finish().expect("a vector takes all that is written")
}

/// Returns one history of the model, with hardly any fault.
pub fn right(chance: &mut impl Chance) -> Vec<u8> {
    let mut records = model::records(chance);
    spoil::interleave(chance, &mut records);
    written(&records)
}
