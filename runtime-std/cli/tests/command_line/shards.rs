//! `tramontane shards`: replicas as processes that are killed and return, clients, and the status.

use rustix::process::Signal;

use crate::support::overlay::{
    Overlay, a_client_and_replicas_are_killed_under_load, leaders_are_killed_and_come_back,
};

#[test]
fn killed_leaders_return_over_shared_memory() {
    leaders_are_killed_and_come_back(&Overlay::new("shm"), || ());
}

#[test]
fn killed_leaders_return_over_tcp() {
    leaders_are_killed_and_come_back(&Overlay::new("tcp"), || ());
}

/// All messages are sent by reference.
const BY_REFERENCE: &str = "references_from = 1\n";

#[test]
fn killed_leaders_with_references_return_over_shared_memory() {
    leaders_are_killed_and_come_back(&Overlay::with("shm", BY_REFERENCE), || ());
}

#[test]
fn killed_leaders_with_references_return_over_tcp() {
    leaders_are_killed_and_come_back(&Overlay::with("tcp", BY_REFERENCE), || ());
}

#[test]
fn shards_with_references_survive_kills_over_shared_memory() {
    a_client_and_replicas_are_killed_under_load(&Overlay::with("shm", BY_REFERENCE));
}

#[test]
fn shards_with_references_survive_kills_over_tcp() {
    a_client_and_replicas_are_killed_under_load(&Overlay::with("tcp", BY_REFERENCE));
}

#[test]
fn mismatched_references_from_option_is_refused() {
    let overlay = Overlay::new("shm");
    let names = ["g1.0", "g1.1", "g1.2", "g2.0", "g2.1", "g2.2"];
    let mut replicas = names.map(|name| overlay.replica(name));
    overlay.await_leader("g1");
    replicas[0].signal(Signal::KILL);
    replicas[0].wait_with_input();
    let text = std::fs::read_to_string(&overlay.config).expect("the overlay file");
    std::fs::write(&overlay.config, BY_REFERENCE.to_owned() + &text).expect("it is written");
    let place = &overlay.place;
    let words = ["g1.", "a different configuration (references_from"];
    let replica = overlay.command(&["--id", "g1.0", "--join-timeout", "60"]);
    place.run(&replica).failed(5, &words);
    place.run(&overlay.command(&["send", "--to", "g1"])).failed(5, &words);
    std::fs::write(&overlay.config, "references_from = 0\n".to_owned() + &text).expect("written");
    place
        .run(&replica)
        .failed(2, &["references_from is 0; set it to a value from 1 to message_max (1024)"]);
    // The other replicas have continued, and readmit a replica with the same configuration.
    std::fs::write(&overlay.config, &text).expect("it is written");
    overlay.send("g1", "one\n");
    replicas[0] = overlay.replica("g1.0");
    overlay.await_leader("g1");
    assert_eq!(overlay.await_same("g1", 1).lines().count(), 1);
}

#[test]
fn invalid_shard_options_fail_with_one_line() {
    let overlay = Overlay::new("shm");
    let place = &overlay.place;
    let id =
        |name: &str| place.run(&[overlay.command(&[]), vec!["--id".into(), name.into()]].concat());
    id("g3.0").failed(2, &["\"g3.0\" is not a replica", "g2.2"]);
    let send = |to: &str| place.run(&overlay.command(&["send", "--time-limit", "0.2", "--to", to]));
    send("g1,g7").failed(2, &["\"g7\" is not a group", "g1, g2"]);
    send("g1").failed(5, &["g1.0, g1.1, g1.2"]);
    place.run(&overlay.command(&["status"])).failed_after_output(5, &["group g1 has no majority"]);
    let cycle = "name = \"a\"\n[[groups]]\nname = \"x\"\nparent = \"y\"\nreplicas = 3\n\
                 [[groups]]\nname = \"y\"\nparent = \"x\"\nreplicas = 3\n";
    let config = place.file("cycle.toml", cycle.as_bytes()).display().to_string();
    place
        .run(&["shards", "--config", &config, "--id", "x.0"])
        .failed(2, &["group \"x\" is its own ancestor"]);
}

#[test]
fn unencrypted_rdma_must_be_permitted() {
    let overlay = Overlay::new("verbs");
    let place = &overlay.place;
    let key = place.file("key", "5a".repeat(32).as_bytes());
    let text = std::fs::read_to_string(&overlay.config).expect("the overlay file");
    let keyed = format!("key_file = {:?}\n{text}", key.display().to_string());
    std::fs::write(&overlay.config, keyed).expect("it is written");
    let refusal = ["RDMA is never encrypted", "allow_clear = true", "fabric \"tcp\""];
    let replica = [overlay.command(&[]), vec!["--id".into(), "g1.0".into()]].concat();
    place.run(&replica).failed(2, &refusal);
    place.run(&overlay.command(&["send", "--to", "g1"])).failed(2, &refusal);
    place.run(&overlay.command(&["status"])).failed(2, &refusal);
}

#[test]
fn shards_refuse_device_options_without_rdma() {
    let overlay = Overlay::new("shm");
    let place = &overlay.place;
    let words = ["\"verbs\"", "--gid"];
    place.run(&overlay.command(&["--id", "g1.0", "--gid", "1"])).failed(2, &words);
    place.run(&overlay.command(&["send", "--to", "g1", "--gid", "1"])).failed(2, &words);
    let text = std::fs::read_to_string(&overlay.config).expect("the overlay file");
    std::fs::write(&overlay.config, text + "[rdma]\nport = 1\n").expect("it is written");
    place.run(&overlay.command(&["status"])).failed(2, &["[rdma]", "fabric = \"verbs\""]);
}

/// The lower group orders none of these messages, so it never opens the client.
#[test]
fn late_client_receives_answers_of_both_leaders() {
    let overlay = Overlay::new("shm");
    let _replicas = overlay.start_all();
    overlay.await_leader("g1");
    let words = ["send", "--to", "g1,g2", "--answers", "leaders", "--time-limit", "20"];
    let mut client = overlay.place.start(&overlay.command(&words));
    client.write(b"one\ntwo\n");
    let reports = String::from_utf8(client.wait().succeeded()).expect("text");
    assert_eq!(reports.lines().count(), 2, "{reports}");
    assert_eq!(reports.matches('*').count(), 4, "each group's leader has a star: {reports}");
}

#[test]
fn error_names_number_of_too_long_line() {
    let overlay = Overlay::new("shm");
    let names = ["g1.0", "g1.1", "g1.2", "g2.0", "g2.1", "g2.2"];
    let _replicas = names.map(|name| overlay.replica(name));
    overlay.await_leader("g2");
    let mut client = overlay.place.start(&overlay.command(&["send", "--to", "g2"]));
    client.write(format!("short\n{}\nlast\n", "x".repeat(2000)).as_bytes());
    let ended = client.wait();
    ended.failed_at_last(3, &["1 line is longer than 1024 bytes"]);
    assert!(ended.errors.contains("line 2 is too long"), "{}", ended.errors);
    assert_eq!(String::from_utf8_lossy(&ended.output).lines().count(), 2);
    overlay.await_same("g2", 2);
}
