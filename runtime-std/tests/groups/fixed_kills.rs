//! Kills a process of a group with fixed membership. The others end, and report which process was
//! lost and how.

use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use tramontane_core::fabric::LossCause;
use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{Description, DescriptionBuilder, Messages, start};
use tramontane_runtime::member::Stopped;

use crate::fixed_support::{Meeting, PATIENCE, await_end};
use crate::group_support::carriers_of_processes;

const KILLED: u32 = 2;

fn group() -> DescriptionBuilder {
    Description::builder("killed").nodes(3).window(8).message_max(16)
}

/// Does nothing unless this program was started again to play this role. Sends until it is killed.
/// Its arguments are the folder and the members' addresses.
#[test]
fn role_send_until_killed() {
    let Ok(role) = std::env::var("TRAMONTANE_ROLE") else { return };
    let meeting = Meeting::of_role(&role);
    let application = |_: &mut Messages<'_, '_>| {};
    let running = start(meeting.describe(group()), meeting.options(KILLED), application);
    let running = running.expect("it starts");
    let mut sender = running.sender_of(SubgroupId(0)).expect("a sender");
    // With a limit, in case the test ends without killing this process.
    for number in 0_u64.. {
        if sender.send(&number.to_le_bytes(), PATIENCE).is_err() {
            return;
        }
    }
}

fn start_role(meeting: &Meeting) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "fixed_kills::role_send_until_killed", "--test-threads=1"])
        .env("TRAMONTANE_ROLE", meeting.role())
        .stdout(Stdio::null())
        .spawn()
        .expect("a child")
}

#[test]
fn fixed_members_name_the_killed_process() {
    for fabric in carriers_of_processes() {
        let mut meeting = Meeting::new(fabric, 3);
        meeting.leave_listening_to_another(KILLED);
        let mut child = start_role(&meeting);
        let (told, heard) = mpsc::channel();
        let running = meeting.run(group(), KILLED, |_, description, options| {
            let told = told.clone();
            let application = move |messages: &mut Messages<'_, '_>| {
                let from_it = messages.filter(|message| message.sender == NodeId(KILLED)).count();
                let _ = told.send(from_it);
            };
            start(description, options, application).expect("it starts")
        });
        // The process is killed in the middle of its messages, and each of the others has delivered
        // some.
        let mut delivered = 0;
        while delivered < 1000 {
            delivered += heard.recv_timeout(PATIENCE).expect("it sends");
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        for member in &running {
            let stopped = await_end(member);
            let Stopped::PeerLost { node, cause, .. } = stopped else {
                panic!("{fabric:?}: {stopped}")
            };
            assert_eq!((node, cause), (Some(NodeId(KILLED)), LossCause::Exited), "{fabric:?}");
        }
        if fabric == Carrier::SharedMemory {
            drop(running);
            // Nothing that the killed process has left behind obstructs the next group.
            let again = meeting.run(group(), 3, |_, description, options| {
                start(description, options, |_: &mut Messages<'_, '_>| {}).expect("it starts")
            });
            assert!(again.iter().all(|member| member.stopped().is_none()));
        }
    }
}
