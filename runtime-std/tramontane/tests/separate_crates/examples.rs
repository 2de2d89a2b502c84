//! Each example, in three terminals, with a member killed.

use crate::building::{Terminal, ask, built_example, wait_for};

/// Starts an example in three terminals, calls `body`, and ends them.
fn with_terminals(example: &str, body: impl FnOnce(&mut [Terminal], &dyn Fn(usize) -> Terminal)) {
    let root = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let program = built_example(example);
    let start = |node| Terminal::node(&program, root.path(), node);
    let mut terminals: Vec<_> = (0..3).map(start).collect();
    body(&mut terminals, &start);
}

fn last_line(terminal: &Terminal) -> String {
    terminal.shown().lines().last().unwrap_or_default().to_owned()
}

#[test]
#[ignore = "it builds an example: .ci/run has it"]
fn lock_survives_killed_holder_with_its_token() {
    with_terminals("lock_service", |terminals, start| {
        assert_eq!(ask(&mut terminals[0], "acquire door"), "Ok(1)");
        terminals[0].child.kill().expect("it runs");
        let held = ask(&mut terminals[1], "acquire door");
        assert!(held.starts_with("Err(\"held for ") && held.ends_with(" ms more\")"), "{held}");
        assert_eq!(ask(&mut terminals[1], "renew door 1"), "Ok(1)");
        assert_eq!(ask(&mut terminals[2], "release door 1"), "Ok(1)");
        assert_eq!(ask(&mut terminals[1], "acquire door"), "Ok(2)", "tokens rise");
        // The node returns, and finds that its lock has been taken.
        terminals[0] = start(0);
        assert_eq!(ask(&mut terminals[0], "renew door 1"), "Err(\"another has taken it\")");
        assert_eq!(ask(&mut terminals[0], "acquire window"), "Ok(3)");
        terminals.iter_mut().for_each(Terminal::finish);
    });
}

#[test]
#[ignore = "it builds an example: .ci/run has it"]
fn members_elect_another_leader_for_killed_one() {
    with_terminals("leader_election", |terminals, start| {
        let agree = |terminals: &[Terminal], others: &[usize], term: u32| {
            let line = last_line(&terminals[others[0]]);
            let is_term = line.starts_with(&format!("term {term}: "));
            is_term && others.iter().all(|other| last_line(&terminals[*other]) == line)
        };
        wait_for("the first term", || agree(terminals, &[0, 1, 2], 1));
        let leader_of = |terminal: &Terminal| {
            let line = last_line(terminal);
            (0..3).find(|node| line.ends_with(&format!("node Some({node}) leads")))
        };
        let leader = leader_of(&terminals[0]).expect("a leader");
        terminals[leader].child.kill().expect("it runs");
        let others = [(leader + 1) % 3, (leader + 2) % 3];
        wait_for("the second term", || agree(terminals, &others, 2));
        let next = leader_of(&terminals[others[0]]).expect("a leader");
        assert!(others.contains(&next), "{next}");
        // The node returns, and follows.
        terminals[leader] = start(leader);
        wait_for("the returned node", || agree(terminals, &[0, 1, 2], 2));
    });
}

#[test]
#[ignore = "it builds an example: .ci/run has it"]
fn configuration_keeps_versions_after_member_is_killed() {
    with_terminals("configuration", |terminals, start| {
        let wait_for_line = |terminal: &Terminal, line: &str| {
            wait_for(line, || terminal.shown().lines().any(|shown| shown == line));
        };
        terminals[0].write("colour 0 red");
        wait_for_line(&terminals[0], "Ok(1)");
        for terminal in terminals.iter() {
            wait_for_line(terminal, "colour = red (version 1)");
        }
        terminals[0].child.kill().expect("it runs");
        terminals[1].write("colour 0 blue");
        wait_for_line(&terminals[1], "Err(1)");
        terminals[2].write("colour 1 blue");
        wait_for_line(&terminals[2], "Ok(2)");
        // The node returns, and receives the settings.
        terminals[0] = start(0);
        for terminal in terminals.iter() {
            wait_for_line(terminal, "colour = blue (version 2)");
        }
        assert!(!terminals[0].shown().contains("red"), "{}", terminals[0].shown());
        terminals.iter_mut().for_each(Terminal::finish);
    });
}

#[test]
#[ignore = "it builds an example: .ci/run has it"]
fn task_of_killed_worker_goes_to_another() {
    const TASKS: usize = 5;
    with_terminals("work_queue", |terminals, _| {
        for task in 0..TASKS {
            terminals[0].write(&format!("task-{task}"));
        }
        let task_of = |terminal: &Terminal| Some(last_line(terminal).split_once('"')?.1.to_owned());
        wait_for("a task of node 1", || task_of(&terminals[1]).is_some());
        // It works on the task for a second.
        terminals[1].child.kill().expect("it runs");
        let task = task_of(&terminals[1]).expect("it has been shown");
        let shown_by_others =
            |task: &str| [0, 2].iter().any(|other| terminals[*other].shown().contains(task));
        wait_for("the killed worker's task", || shown_by_others(&task));
        let earlier = terminals[1].shown();
        wait_for("all tasks", || {
            (0..TASKS).all(|task| {
                let task = format!("\"task-{task}\"");
                shown_by_others(&task) || earlier.contains(&task)
            })
        });
    });
}

#[test]
#[ignore = "it builds an example: .ci/run has it"]
fn bank_keeps_its_total_over_killed_leaders() {
    const REPLICAS: [&str; 6] = ["g1.0", "g1.1", "g1.2", "g2.0", "g2.1", "g2.2"];
    let root = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let program = built_example("bank");
    let start = |name: &&str| Terminal::start(&program, root.path(), &[name]);
    let mut replicas: Vec<_> = REPLICAS.iter().map(start).collect();
    let mut client = Terminal::start(&program, root.path(), &[]);
    let paid = ask(&mut client, "pay 0 1 30");
    assert!(paid.contains("{0: 70, 2: 100") && paid.contains("{1: 130, 3: 100"), "{paid}");
    for killed in [0..3, 3..6] {
        let mut leader = None;
        wait_for("a leader", || {
            leader = killed.clone().find(|of| ask(&mut replicas[*of], "").starts_with("leading"));
            leader.is_some()
        });
        let leader = leader.expect("it was found");
        replicas[leader].child.kill().expect("it runs");
        for number in 0..20 {
            // Between two groups, and within one.
            ask(&mut client, &format!("pay {} {} {number}", number % 10, number * 7 % 10));
            assert_eq!(ask(&mut client, "total"), "1000");
        }
        replicas[leader] = start(&REPLICAS[leader]);
        let is_back = |shown: &str| shown.starts_with("following") || shown.starts_with("leading");
        wait_for("the returned replica", || is_back(&ask(&mut replicas[leader], "")));
    }
    client.finish();
    // All replicas of a group have the same balances.
    for group in [0..3, 3..6] {
        let balances = |replica: &mut Terminal| {
            ask(replica, "").split_once(' ').expect("a state").1.to_owned()
        };
        wait_for("equal balances", || {
            let of_group: Vec<_> = replicas[group.clone()].iter_mut().map(balances).collect();
            of_group.iter().all(|balances| *balances == of_group[0])
        });
    }
    replicas.iter_mut().for_each(Terminal::finish);
}
