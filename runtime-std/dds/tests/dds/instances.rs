//! Instances through writers and readers of two participants.

use tramontane_dds::{
    DataReader, History, InstanceHandle, InstanceStates, Level, ReaderQos, SampleInfo, Selection,
    TopicDescription, ViewStates, WriterQos,
};

use crate::support::{PATIENCE, TestDomain, Track, take, track, until_read_by};

const TOPIC: &str = "Tracks";

fn place(nodes: u32) -> TestDomain {
    TestDomain::new(nodes, [TopicDescription::new(TOPIC, "Track").sample_max(256)])
}

fn writer_qos(disposes: bool) -> WriterQos {
    let mut qos = WriterQos::of(Level::Atomic);
    qos.writer_data_lifecycle.autodispose_unregistered_instances = disposes;
    qos
}

fn keep_all() -> ReaderQos {
    ReaderQos { history: History::KeepAll, ..ReaderQos::default() }
}

/// Returns the information about the next sample.
fn next(reader: &DataReader<Track>) -> SampleInfo {
    let mut taken = take(reader, 1);
    assert_eq!(taken.len(), 1, "one at a time");
    taken.remove(0).info
}

#[test]
fn instance_is_alive_while_a_writer_registers_it() {
    // Two of three members continue when one is lost.
    let place = place(3);
    let mut participants = place.join_all(0..3);
    let second = participants.pop().expect("three");
    let first = participants.swap_remove(0);
    let tracks = first.topic::<Track>(TOPIC).expect("a topic");
    let reader = first.create_datareader(&tracks, keep_all()).expect("a reader");
    let mut own = first.create_datawriter(&tracks, writer_qos(false)).expect("a writer");
    let mut other = second.create_datawriter(&tracks, writer_qos(false)).expect("a writer");
    until_read_by(&own, 1);
    until_read_by(&other, 1);
    assert!(own.dispose(&5).is_err(), "it does not have it yet");

    own.write(&track(5, 1)).expect("room");
    assert_eq!(next(&reader).publication_handle, own.handle());
    other.write(&track(5, 2)).expect("room");
    assert_eq!(next(&reader).publication_handle, other.handle());
    own.unregister_instance(&5).expect("it has it");
    own.wait_for_acknowledgments(PATIENCE).expect("all have it");
    assert!(reader.take(&Selection::default()).is_empty(), "the other has it still");

    // The second participant disappears silently.
    drop(second);
    let told = next(&reader);
    assert!(!told.valid_data);
    assert_eq!(told.instance_handle, InstanceHandle::of_key(&5_u32).expect("a key"));
    assert_eq!(told.instance_state, InstanceStates::NOT_ALIVE_NO_WRITERS);
    drop(other);
}

#[test]
fn unregistering_disposes_instance_if_autodispose_is_on() {
    let place = place(1);
    let own = place.join(0);
    let tracks = own.topic::<Track>(TOPIC).expect("a topic");
    let reader = own.create_datareader(&tracks, keep_all()).expect("a reader");
    for (disposes, state) in
        [(true, InstanceStates::NOT_ALIVE_DISPOSED), (false, InstanceStates::NOT_ALIVE_NO_WRITERS)]
    {
        let mut writer = own.create_datawriter(&tracks, writer_qos(disposes)).expect("a writer");
        let ends: [fn(&mut tramontane_dds::DataWriter<Track>); 2] =
            [|writer| writer.unregister_instance(&9).expect("it has it"), |_| ()];
        for (number, end) in (1..).zip(ends) {
            writer.write(&track(9, number)).expect("room");
            let seen = next(&reader);
            assert_eq!((seen.view_state, seen.valid_data), (ViewStates::NEW, true));
            end(&mut writer);
            if number == 1 {
                assert_eq!(next(&reader).instance_state, state, "unregistered");
            }
        }
        // A deleted writer unregisters its instances.
        drop(writer);
        assert_eq!(next(&reader).instance_state, state, "deleted");
    }
}

#[test]
fn rewritten_instance_has_a_new_generation() {
    let place = place(1);
    let own = place.join(0);
    let tracks = own.topic::<Track>(TOPIC).expect("a topic");
    let reader = own.create_datareader(&tracks, keep_all()).expect("a reader");
    let mut writer = own.create_datawriter(&tracks, writer_qos(false)).expect("a writer");
    for number in 1..=3 {
        writer.write(&track(2, number)).expect("room");
        writer.dispose(&2).expect("it has it");
    }
    // A reader that takes in between also gets the changes of state in between.
    writer.wait_for_acknowledgments(PATIENCE).expect("all have it");
    let taken = take(&reader, 4);
    let generations: Vec<u32> = taken
        .iter()
        .filter(|sample| sample.info.valid_data)
        .map(|sample| sample.info.disposed_generation_count)
        .collect();
    assert_eq!(generations, [0, 1, 2]);
    let last = taken.last().expect("some").info;
    assert_eq!(last.instance_state, InstanceStates::NOT_ALIVE_DISPOSED);
    let handle = writer.register_instance(&2).expect("it is there");
    assert_eq!(handle, last.instance_handle, "a handle is the key's, at both ends");
}

#[test]
fn writer_respects_its_instance_limit() {
    let place = place(1);
    let own = place.join(0);
    let tracks = own.topic::<Track>(TOPIC).expect("a topic");
    let mut qos = writer_qos(true);
    qos.resource_limits.max_instances = Some(2);
    let mut writer = own.create_datawriter(&tracks, qos).expect("a writer");
    writer.write(&track(1, 1)).expect("room");
    writer.register_instance(&2).expect("room");
    assert!(writer.write(&track(3, 1)).is_err());
    assert!(writer.register_instance(&3).is_err());
    writer.unregister_instance(&1).expect("it has it");
    writer.write(&track(3, 1)).expect("room");
}
