//! Overlay files: invalid ones are refused with the cause, and each change alters the digest.

use tramontane_core::tram::Destinations;

use super::*;

const BASE: [Option<usize>; 8] =
    [None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(2), Some(3)];

fn parsed(text: &str) -> Result<Description, DescriptionError> {
    Description::parse(Path::new("/somewhere/overlay.toml"), text)
}

/// Describes an overlay with these lines for its groups.
fn groups(lines: &str) -> Result<Description, DescriptionError> {
    parsed(&format!("name = \"bank\"\n{lines}"))
}

#[test]
fn error_names_group_with_invalid_parent() {
    let group = |name: &str, parent: &str| {
        let parent =
            if parent.is_empty() { String::new() } else { format!("parent = \"{parent}\"\n") };
        format!("[[groups]]\nname = \"{name}\"\n{parent}replicas = 3\n")
    };
    let error = |lines: &[(&str, &str)]| {
        let lines: String = lines.iter().map(|(name, parent)| group(name, parent)).collect();
        groups(&lines).expect_err("no tree").to_string()
    };
    let cycle = error(&[("a", ""), ("b", "c"), ("c", "b")]);
    assert!(cycle.contains("group \"b\" is its own ancestor"), "{cycle}");
    let twice = error(&[("a", ""), ("b", "a"), ("b", "a")]);
    assert!(twice.contains("group \"b\" is listed twice"), "{twice}");
    let unknown = error(&[("a", ""), ("b", "x")]);
    assert!(unknown.contains("of group \"b\" is \"x\", which does not exist"), "{unknown}");
    let second = error(&[("a", ""), ("b", "")]);
    assert!(second.contains("group \"b\" has no parent"), "{second}");
    let name = error(&[("a.1", "")]);
    assert!(name.contains("\"a.1\" is not a valid group name"), "{name}");
    assert!(matches!(groups("groups = []"), Err(DescriptionError::NoGroups)));
    let none = "[[groups]]\nname = \"a\"\nreplicas = 0\n";
    assert!(matches!(groups(none), Err(DescriptionError::Replicas(name)) if name == "a"));
    let wide: Vec<String> = (0..17).map(|child| format!("c{child}")).collect();
    let mut lines = vec![("a", "")];
    lines.extend(wide.iter().map(|child| (child.as_str(), "a")));
    assert!(error(&lines).contains("more than 16 children"));
}

#[test]
fn only_network_fabrics_have_addresses() {
    let over = |fabric: &str, replicas: &str| {
        let group = format!("[[groups]]\nname = \"a\"\nreplicas = {replicas}\n");
        groups(&format!("fabric = \"{fabric}\"\n{group}"))
    };
    let listed = "[\"127.0.0.1:7001\", \"127.0.0.1:7002\"]";
    assert_eq!(over("tcp", listed).expect("right").groups[0].replicas.count(), 2);
    assert!(matches!(over("tcp", "2"), Err(DescriptionError::NoAddresses(_))));
    assert!(matches!(over("shm", listed), Err(DescriptionError::Addresses(_))));
    assert_eq!(over("verbs", listed).expect("right").fabric, Carrier::Verbs);
    assert!(matches!(over("verbs", "2"), Err(DescriptionError::NoAddresses(_))));
    let twice = "[\"127.0.0.1:7001\", \"127.0.0.1:7001\"]";
    assert!(matches!(over("tcp", twice), Err(DescriptionError::DuplicateAddress(_))));
    for wrong in ["0.0.0.0:7000", "[::]:7000", "alpha:0"] {
        let listed = format!("[\"{wrong}\", \"alpha:7001\"]");
        assert!(matches!(over("tcp", &listed), Err(DescriptionError::NoDestination(_))));
    }
    assert!(over("tcp", "[\"alpha:7000\", \"beta:7000\"]").is_ok());
}

#[test]
fn invalid_overlay_sizes_and_times_are_refused() {
    let with = |line: &str| groups(&format!("{line}\n[[groups]]\nname = \"a\"\nreplicas = 3\n"));
    assert!(matches!(with("clients_max = 0"), Err(DescriptionError::Clients(0))));
    assert!(matches!(with("clients_max = 1025"), Err(DescriptionError::Clients(1025))));
    assert!(matches!(with("client_window = 0"), Err(DescriptionError::Sizes)));
    assert!(matches!(with("heartbeat_ms = 0"), Err(DescriptionError::Times)));
    let soon = "heartbeat_ms = 10\nfailure_timeout_ms = 29";
    assert!(matches!(with(soon), Err(DescriptionError::Times)));
    let none = with("references_from = 0").expect_err("no message has no bytes").to_string();
    assert!(
        none.contains("references_from is 0; set it to a value from 1 to message_max (1024)"),
        "{none}"
    );
    let long = with("references_from = 65\nmessage_max = 64").expect_err("none is so long");
    assert!(
        long.to_string()
            .contains("references_from is 65; set it to a value from 1 to message_max (64)")
    );
    let word = with("references_from = \"all\"").expect_err("no number").to_string();
    assert!(word.contains("line 2") && !word.contains('\n'), "{word}");
    let error = with("windows = 3").expect_err("no such field").to_string();
    assert!(error.contains("overlay.toml, line 2") && error.contains("windows"), "{error}");
}

#[test]
fn excess_clients_of_fabric_are_refused() {
    let over = |fabric: &str, clients: u16| {
        let listed = "replicas = [\"10.0.0.1:1\", \"10.0.0.2:1\", \"10.0.0.3:1\"]";
        groups(&format!(
            "fabric = \"{fabric}\"\nclients_max = {clients}\n[[groups]]\nname = \"a\"\n{listed}"
        ))
    };
    assert!(over("tcp", CLIENTS_MAX).is_ok());
    let error = over("verbs", CLIENTS_MAX).expect_err("too many views").to_string();
    let words = "over verbs a replica of group \"a\" can have at most 253 clients; lower";
    assert!(error.contains(words), "{error}");
    assert!(over("verbs", 254).is_err() && over("verbs", 253).is_ok());
}

#[test]
fn group_ids_follow_file_order() {
    let description = Description::local("bank", &BASE, 3);
    let overlay = description.overlay().expect("a tree");
    let g8 = description.group("g8").expect("a group");
    assert_eq!((g8, description.group_name(g8)), (GroupId(7), "g8"));
    assert_eq!(overlay.parent(g8), description.group("g4"));
    let both = Destinations::of(g8).with(GroupId(6));
    assert_eq!(overlay.lowest_common_ancestor(both), description.group("g1"));
    assert_eq!(description.group("g9"), None);
}

#[test]
fn overlay_has_references_only_if_described() {
    for (references_from, expected) in [(None, 0), (Some(1_024), 1_024)] {
        let description = Description { references_from, ..Description::local("bank", &BASE, 3) };
        assert_eq!(description.overlay().expect("a tree").references_from(), expected);
    }
}

#[test]
fn only_shared_settings_change_overlay_digest() {
    let own = Description::local("bank", &BASE, 3);
    let mut other = own.clone();
    other.key_file = Some("key".into());
    other.shm_dir = Some("/tmp".into());
    other.allow_clear = true;
    other.rdma.port = Some(2);
    assert_eq!(own.digest(), other.digest());
    let mut renamed = own.clone();
    renamed.groups[7].name = "h8".into();
    for (field, differs) in [
        ("heartbeat_ms", Description { heartbeat_ms: 70, ..own.clone() }),
        ("references_from", Description { references_from: Some(1_024), ..own.clone() }),
        ("batching", Description { batching: !own.batching, ..own.clone() }),
        ("groups", renamed),
    ] {
        assert_ne!(own.digest(), differs.digest());
        assert_eq!(Description::differing(own.digest(), differs.digest()), field);
    }
}
