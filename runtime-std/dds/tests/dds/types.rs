//! Types, and samples that are built and read in place.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tramontane_dds::{
    DdsError, Disposition, Lent, Level, Octets, OctetsRef, OnSample, ReaderQos, TopicDescription,
    TypeSupport, WriterQos, encode,
};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::support::{Notes, TestDomain, take, until};

/// A plain type with a key.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Serialize,
    Deserialize,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
#[repr(C)]
struct Position {
    time_s: f64,
    aircraft: u32,
    altitude_m: f32,
    speed_m_s: [i16; 4],
}

impl TypeSupport for Position {
    const TYPE_NAME: &'static str = "Position";
    type Key = u32;
    fn key(&self) -> u32 {
        self.aircraft
    }
}

/// The type's memory layout differs from its CDR, which has a length before a text.
#[derive(
    Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout, Deserialize,
)]
#[repr(C)]
struct Lying(u32);

impl Serialize for Lying {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str("0")
    }
}

impl TypeSupport for Lying {
    const TYPE_NAME: &'static str = "Lying";
    type Key = ();
    fn key(&self) {}
}

#[test]
fn plain_sample_is_built_and_read_in_place() {
    let place = TestDomain::new(1, [TopicDescription::new("Positions", "Position").sample_max(64)]);
    let own = place.join(0);
    let topic = own.topic::<Position>("Positions").expect("a topic");
    let notes: Notes<(Position, bool)> = Arc::default();
    let noted = Arc::clone(&notes);
    let listener = OnSample(move |sample: &Lent<'_, Position>| {
        if let Some(position) = sample.plain() {
            let lies_there =
                std::ptr::eq(sample.cdr().as_ptr(), std::ptr::from_ref(position).cast());
            noted.lock().expect("no panic").push((*position, lies_there));
            assert_eq!(sample.data().expect("a position"), *position);
        }
        Disposition::Keep
    });
    let reader = own
        .create_datareader_with_listener(&topic, ReaderQos::default(), listener)
        .expect("a reader");
    let mut writer = own.create_datawriter(&topic, WriterQos::of(Level::Atomic)).expect("a writer");
    let position =
        Position { time_s: 1.5, aircraft: 4, altitude_m: 9_000.0, speed_m_s: [1, -2, 3, -4] };
    assert_eq!(encode(&position).expect("plain"), position.as_bytes());
    drop(writer.loan().expect("room"));
    let mut loan = writer.loan().expect("room");
    *loan.sample() = position;
    loan.write().expect("room");
    until("it came", || !notes.lock().expect("no panic").is_empty());
    assert_eq!(*notes.lock().expect("no panic"), [(position, true)], "what was dropped did not");
    let kept = take(&reader, 1).remove(0);
    assert_eq!(kept.data().expect("a position"), position);
    assert_eq!(kept.info.sequence, 1);
}

#[test]
fn type_with_mismatched_cdr_layout_gets_no_loan() {
    let place = TestDomain::new(1, [TopicDescription::new("Lies", "Lying")]);
    let own = place.join(0);
    let topic = own.topic::<Lying>("Lies").expect("a topic");
    let mut writer = own.create_datawriter(&topic, WriterQos::of(Level::Atomic)).expect("a writer");
    assert!(matches!(writer.loan(), Err(DdsError::PreconditionNotMet(_))));
}

#[test]
fn octets_are_built_in_place_within_the_limit() {
    let place = TestDomain::new(1, [TopicDescription::new("Bytes", "Octets").sample_max(100)]);
    let own = place.join(0);
    let topic = own.topic::<Octets>("Bytes").expect("a topic");
    let reader = own.create_datareader(&topic, ReaderQos::default()).expect("a reader");
    let mut writer = own.create_datawriter(&topic, WriterQos::of(Level::Atomic)).expect("a writer");
    assert!(matches!(writer.loan_octets(97), Err(DdsError::TooLarge { bytes: 101, limit: 100 })));
    let told = writer.write(&Octets(vec![0; 1000])).expect_err("too large");
    assert!(matches!(told, DdsError::TooLarge { .. }), "{told}");
    let mut loan = writer.loan_octets(96).expect("room");
    loan.bytes().fill(9);
    loan.write().expect("room");
    let sample = take(&reader, 1).remove(0);
    assert_eq!(sample.lend().view::<OctetsRef<'_>>().expect("bytes").0, [9; 96]);
    assert_eq!(sample.data().expect("bytes"), Octets(vec![9; 96]));
    assert_eq!(sample.info.sequence, 1, "what was refused has no number");
}
