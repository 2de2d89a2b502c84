//! Where the members of one run of the suite meet: under a name, or at sockets that they find through the folder
//! that they share.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Refusal;
use super::protocol::Init;
use crate::cli::exit::{Failure, Status};
use crate::cli::interrupt::Interrupts;
use crate::join::{Meeting, NetworkMeeting};
use crate::local::Carrier;
use crate::rdma::{self, DeviceOptions, NotBuilt};
use crate::shared_memory::{GroupName, Root};

/// Between two looks for the others.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The place of this run.
pub(super) fn meeting(
    init: &Init,
    own: u16,
    carrier: Carrier,
    device: &DeviceOptions,
    interrupts: &Interrupts,
) -> Result<Meeting, Refusal> {
    if carrier != Carrier::Verbs
        && let Some(option) = device.given()
    {
        let what = format!("{option} is about RDMA devices");
        return Err(Failure::new(Status::Usage, what, "leave it out, or give --fabric verbs").into());
    }
    match carrier {
        Carrier::Verbs if !rdma::BUILT => Err(Failure::from(NotBuilt).into()),
        Carrier::Verbs => {
            Ok(rdma::meeting(on_network(init, own, interrupts)?, device).map_err(Failure::from)?)
        }
        Carrier::SharedMemory => {
            Ok(Meeting::SharedMemory { root: Root::from_env(), name: name_of_run(init)? })
        }
        Carrier::Tcp => Ok(Meeting::Tcp(on_network(init, own, interrupts)?)),
    }
}

/// The members of one run have its shared folder in common, and no other run has it.
fn name_of_run(init: &Init) -> Result<GroupName, Failure> {
    let folder = init.shared.as_os_str().as_encoded_bytes();
    let name = format!("conformance-{:016x}", xxhash_rust::xxh3::xxh3_64(folder));
    GroupName::new(&name).map_err(Failure::from)
}

/// Takes a port, tells the others of it, and waits to be told of theirs.
fn on_network(init: &Init, own: u16, interrupts: &Interrupts) -> Result<NetworkMeeting, Failure> {
    let cannot = |error| Failure::system("cannot meet the others", &error);
    let until = Instant::now() + Duration::from_millis(init.limits.deadline_ms);
    let node = init.nodes.get(usize::from(own)).map_or("127.0.0.1", |node| node.address.as_str());
    let listener = TcpListener::bind((node, 0)).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    publish(&init.shared, own, address).map_err(cannot)?;
    let mut addresses = Vec::with_capacity(init.nodes.len());
    for rank in (0..).take(init.nodes.len()) {
        addresses.push(loop {
            interrupts.check()?;
            if let Some(address) = look(&init.shared, rank) {
                break address;
            }
            if Instant::now() >= until {
                let what = format!("{} did not say where it listens", init.nodes[usize::from(rank)].node);
                return Err(Failure::new(Status::Group, what, "start it, or allow more time"));
            }
            std::thread::sleep(LOOK_INTERVAL);
        });
    }
    Ok(NetworkMeeting { addresses, listener: Some(Arc::new(listener)), ..NetworkMeeting::default() })
}

fn path(folder: &Path, rank: u16) -> PathBuf {
    folder.join(format!("tramontane-{rank}.address"))
}

/// A file that is there is whole.
fn publish(folder: &Path, own: u16, address: SocketAddr) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let path = path(folder, own);
    let draft = path.with_extension("draft");
    std::fs::write(&draft, address.to_string())?;
    std::fs::rename(&draft, &path)
}

fn look(folder: &Path, rank: u16) -> Option<SocketAddr> {
    std::fs::read_to_string(path(folder, rank)).ok()?.parse().ok()
}
