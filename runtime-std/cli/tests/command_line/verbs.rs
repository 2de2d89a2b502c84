//! The command line of RDMA, as far as it needs no device: what is refused, and what a build
//! without it says.

use crate::support::Place;

const TWO: &str = "127.0.0.1:7000,127.0.0.1:7001";

#[cfg(not(feature = "verbs"))]
#[test]
fn a_build_without_rdma_says_how_to_get_it() {
    let place = Place::new();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("group.toml");
    let node = "[[nodes]]\nid = 0\naddress = \"127.0.0.1:7000\"\n";
    std::fs::write(&file, format!("name = \"g\"\nfabric = \"verbs\"\n{node}"))
        .expect("it is written");
    let file = file.to_str().expect("a path of letters");
    let commands: [&[&str]; 10] = [
        &["cast", "--fabric", "verbs", "--addresses", TWO, "--id", "0"],
        &["demo", "--fabric", "verbs"],
        &["bench", "multicast", "--fabric", "verbs"],
        &["bench", "latency", "--fabric", "verbs"],
        &["bench", "blocks", "--fabric", "verbs"],
        &["bench", "views", "--fabric", "verbs"],
        &["node", "--config", file, "--id", "0"],
        &["copy", "file", "--to", ".", "--fabric", "verbs"],
        &["verbs", "devices"],
        &["verbs", "devices", "--json"],
    ];
    for command in commands {
        let ended = place.run(command);
        ended.failed(8, &["without RDMA", "cargo build --release --features verbs", "guide"]);
        assert!(ended.output.is_empty(), "{ended:?}");
    }
    place.assert_empty();
}

#[test]
fn members_on_a_network_say_where_they_listen() {
    let place = Place::new();
    let cast = |more: &[&str]| place.run(&[&["cast", "--id", "0"], more].concat());
    cast(&["--fabric", "verbs"]).failed(2, &["--addresses is missing"]);
    cast(&["--fabric", "verbs", "--addresses", TWO, "--nodes", "3"])
        .failed(2, &["2 addresses for 3 members"]);
    cast(&["--fabric", "verbs", "--addresses", TWO, "--group", "g"]).failed(2, &["--group"]);
    // What goes over RDMA is in clear, also where there is a key.
    cast(&["--fabric", "verbs", "--addresses", TWO, "--key-file", "k"])
        .failed(2, &["--allow-clear"]);
    place
        .run(&["cast", "--fabric", "verbs", "--addresses", TWO, "--id", "2"])
        .failed(2, &["member 2 is not in a group of 2"]);
}

#[test]
fn options_of_one_fabric_mean_nothing_to_another() {
    let place = Place::new();
    let cast = ["cast", "--group", "g", "--id", "0", "--nodes", "2"];
    for option in
        [["--addresses", TWO], ["--key-file", "k"], ["--device", "rxe0"], ["--loss-timeout", "1"]]
    {
        place.run(&[&cast[..], &option].concat()).failed(2, &[option[0], "--fabric verbs"]);
    }
    place.run(&["cast", "--id", "0", "--nodes", "2"]).failed(2, &["--group is missing"]);
    place.run(&["cast", "--id", "0", "--group", "g"]).failed(2, &["--nodes is missing"]);
    place
        .run(&["copy", "file", "--to", ".", "--port", "1"])
        .failed(2, &["--port", "--fabric verbs"]);
    place.run(&["demo", "--mtu", "1024"]).failed(2, &["--mtu", "--fabric verbs"]);
    place.run(&["bench", "latency", "--gid", "1"]).failed(2, &["--gid", "--fabric verbs"]);
    place.run(&["bench", "multicast", "--fabric", "sim", "--port", "1"]).failed(2, &["--port"]);
    place.run(&["bench", "multicast", "--fabric", "verbs", "--probe"]).failed(2, &["--probe"]);
    place.assert_empty();
}

#[test]
fn values_that_are_none_are_refused() {
    let place = Place::new();
    for (option, value) in [
        ("--gid", "ten"),
        ("--gid", "300"),
        ("--port", "256"),
        ("--mtu", "large"),
        ("--loss-timeout", "0"),
    ] {
        place.run(&["verbs", "devices", option, value]).failed(2, &[option]);
    }
    place.run(&["demo", "--fabric", "pigeon"]).failed(2, &["pigeon"]);
}

#[test]
fn help_has_examples_and_the_exit_statuses() {
    let place = Place::new();
    for command in [&["verbs", "devices", "--help"][..], &["cast", "--help"], &["demo", "--help"]] {
        let text = String::from_utf8(place.run(command).succeeded()).expect("text");
        for words in ["Examples:", "verbs", "8  no usable RDMA device"] {
            assert!(text.contains(words), "{words:?} is not in {text}");
        }
    }
}
