//! The command line of RDMA without a device: refusals, and the messages of a host without RDMA.

use std::process::Command;

use crate::support::{ProgramEnd, RunningProgram, TestFolder};

const TWO: &str = "127.0.0.1:7000,127.0.0.1:7001";

/// Runs a command for which the loader finds a given libibverbs first.
fn run_with_library(
    place: &TestFolder,
    folder: &std::path::Path,
    arguments: &[&str],
) -> ProgramEnd {
    let mut command = place.command(arguments);
    command.env("LD_LIBRARY_PATH", folder);
    RunningProgram::start(command).wait()
}

#[test]
fn rdma_commands_name_missing_libibverbs() {
    let place = TestFolder::new();
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("libibverbs.so.1"), "no library").expect("it is written");
    let file = folder.path().join("group.toml");
    let node = "[[nodes]]\nid = 0\naddress = \"127.0.0.1:7000\"\n";
    std::fs::write(&file, format!("name = \"g\"\nfabric = \"verbs\"\n{node}"))
        .expect("it is written");
    let file = file.to_str().expect("a path of letters");
    let overlay = folder.path().join("overlay.toml");
    let group = "[[groups]]\nname = \"g1\"\nreplicas = [\"127.0.0.1:7000\"]\n";
    std::fs::write(&overlay, format!("name = \"s\"\nfabric = \"verbs\"\n{group}"))
        .expect("it is written");
    let overlay = overlay.to_str().expect("a path of letters");
    let commands: [&[&str]; 9] = [
        &["cast", "--fabric", "verbs", "--addresses", TWO, "--id", "0"],
        &["demo", "--fabric", "verbs"],
        &["node", "--config", file, "--id", "0"],
        &["shards", "--config", overlay, "--id", "g1.0"],
        &["shards", "send", "--config", overlay, "--to", "g1"],
        &["verbs", "devices"],
        &["verbs", "devices", "--json"],
        &["verbs", "check", "--loopback"],
        &["verbs", "check", "--loopback", "--json"],
    ];
    for command in commands {
        let ended = run_with_library(&place, folder.path(), command);
        ended.failed(
            8,
            &["RDMA is not available: libibverbs.so.1 cannot be loaded", "install libibverbs1"],
        );
        assert!(ended.output.is_empty(), "{ended:?}");
    }
    place.assert_empty();
}

/// A library of the same name from another project.
#[test]
fn error_names_function_missing_from_libibverbs() {
    let place = TestFolder::new();
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("libibverbs.so.1");
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let empty = ["-shared", "-x", "c", "/dev/null", "-o"];
    let made = Command::new(compiler).args(empty).arg(&library).status().expect("a C compiler");
    assert!(made.success());
    run_with_library(&place, folder.path(), &["verbs", "devices"])
        .failed(8, &["libibverbs.so.1 has no ibv_get_device_list of IBVERBS_1.1", "install"]);
}

/// The library is loaded only when RDMA is requested.
#[test]
fn unusable_libibverbs_does_not_affect_other_fabrics() {
    let place = TestFolder::new();
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("libibverbs.so.1"), "no library").expect("it is written");
    for fabric in ["shared-memory", "tcp"] {
        let demo = ["demo", "--fabric", fabric, "--nodes", "2", "--repeat", "1", "--json"];
        let output = run_with_library(&place, folder.path(), &demo).succeeded();
        assert!(String::from_utf8_lossy(&output).contains("\"agree\":true"));
    }
}

/// On a machine with a device, there is nothing to test.
#[test]
fn missing_device_is_reported_with_remedy() {
    let known = std::fs::read_dir("/sys/class/infiniband").map_or(0, Iterator::count);
    if known > 0 {
        return;
    }
    let place = TestFolder::new();
    let ended = place.run(&["verbs", "devices"]);
    // The command fails in the same way whether or not libibverbs is installed.
    let is_missing = ended.errors.contains("libibverbs.so.1 is not installed");
    let expected = match is_missing {
        true => ["RDMA is not available", "ibverbs-providers"],
        false => ["no RDMA device", "rdma link add"],
    };
    ended.failed(8, &expected);
}

#[test]
fn members_on_a_network_require_addresses() {
    let place = TestFolder::new();
    let cast = |more: &[&str]| place.run(&[&["cast", "--id", "0"], more].concat());
    cast(&["--fabric", "verbs"]).failed(2, &["--addresses is missing"]);
    cast(&["--fabric", "verbs", "--addresses", TWO, "--nodes", "3"])
        .failed(2, &["2 addresses were given for 3 members"]);
    cast(&["--fabric", "verbs", "--addresses", TWO, "--group", "g"]).failed(2, &["--group"]);
    // RDMA traffic is unencrypted, even if there is a key.
    cast(&["--fabric", "verbs", "--addresses", TWO, "--key-file", "k"]).failed(2, &["allow_clear"]);
    place
        .run(&["cast", "--fabric", "verbs", "--addresses", TWO, "--id", "2"])
        .failed(2, &["member 2 is not in a group of 2"]);
}

#[test]
fn options_of_another_fabric_are_refused() {
    let place = TestFolder::new();
    let cast = ["cast", "--group", "g", "--id", "0", "--nodes", "2"];
    for option in
        [["--addresses", TWO], ["--key-file", "k"], ["--device", "rxe0"], ["--loss-timeout", "1"]]
    {
        place.run(&[&cast[..], &option].concat()).failed(2, &[option[0], "--fabric verbs"]);
    }
    place.run(&["cast", "--id", "0", "--nodes", "2"]).failed(2, &["--group is missing"]);
    place.run(&["cast", "--id", "0", "--group", "g"]).failed(2, &["--nodes is missing"]);
    place.run(&["demo", "--mtu", "1024"]).failed(2, &["--mtu", "--fabric verbs"]);
    place.run(&["demo", "--huge-pages"]).failed(2, &["--huge-pages", "--fabric verbs"]);
    place.run(&["demo", "--pkey", "0x8001"]).failed(2, &["--pkey", "--fabric verbs"]);
    place.assert_empty();
}

#[test]
fn group_file_may_set_device_options() {
    let place = TestFolder::new();
    let run = |fabric: &str, rdma: &str| {
        let node = "[[nodes]]\nid = 0\naddress = \"127.0.0.1:7000\"\n";
        let text = format!("name = \"g\"\nfabric = \"{fabric}\"\n{node}[rdma]\n{rdma}\n");
        let file = place.file("group.toml", text.as_bytes());
        place.run(&["layout", "--config", file.to_str().expect("a path of letters")])
    };
    run("verbs", "mtu = 1024\ngid = 3\npkey = \"0x8001\"\nloss_timeout_ms = 500").succeeded();
    run("tcp", "mtu = 1024").failed(2, &["[rdma]", "fabric = \"verbs\""]);
    run("verbs", "mut = 1024").failed(2, &["mut", "line"]);
    run("verbs", "pkey = \"green\"").failed(2, &["partition key in hexadecimal"]);
    run("verbs", "gid = \"ten\"").failed(2, &["neither an index"]);
}

#[test]
fn invalid_device_options_are_refused() {
    let place = TestFolder::new();
    for (option, value) in [
        ("--gid", "ten"),
        ("--gid", "300"),
        ("--port", "256"),
        ("--mtu", "large"),
        ("--loss-timeout", "0"),
        ("--timer-floor", "32"),
        ("--service-level", "16"),
        ("--traffic-class", "256"),
        ("--pkey", "0x8000"),
        ("--completion-vector", "many"),
        ("--rdma-order", "device"),
    ] {
        place.run(&["verbs", "devices", option, value]).failed(2, &[option]);
    }
    place.run(&["demo", "--fabric", "pigeon"]).failed(2, &["pigeon"]);
}

#[test]
fn help_has_examples_and_the_exit_statuses() {
    let place = TestFolder::new();
    let verbs = [&["verbs", "devices", "--help"][..], &["verbs", "check", "--help"]];
    for command in verbs.into_iter().chain([&["cast", "--help"][..], &["demo", "--help"]]) {
        let text = String::from_utf8(place.run(command).succeeded()).expect("text");
        for words in ["Examples:", "verbs", "8  no usable RDMA device"] {
            assert!(text.contains(words), "{words:?} is not in {text}");
        }
    }
}

/// Covers every combination of RDMA with a key.
#[test]
fn rdma_with_key_requires_allow_clear() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = TestFolder::new();
    let key = place.file("key", "ab".repeat(32).as_bytes());
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    let key = key.display().to_string();
    let clear = ["RDMA is never encrypted", "allow_clear = true"];
    let cast = ["cast", "--fabric", "verbs", "--addresses", TWO, "--key-file", &key, "--id", "0"];
    place.run(&cast).failed(2, &clear);
    let allowed = place.run(&[&cast[..], &["--allow-clear", "--join-timeout", "1"]].concat());
    assert_ne!(allowed.status.code(), Some(2), "it is another thing that lacks: {allowed:?}");
}
