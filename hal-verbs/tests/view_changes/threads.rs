//! The threads that run commands, in real time.

use std::time::{Duration, Instant};

use tramontane_core::fabric::{Fabric as _, HostFabric as _, ViewPlan, ViewRows as _};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_fixtures::network::{
    Network as SideNetwork, SharedNetwork as SharedSideNetwork, SimFabric as SideChannel,
};
use tramontane_fixtures::profile::Profile as SideProfile;
use tramontane_fixtures::world::Hardware as _;
use tramontane_verbs::fake::{Clock, CommandKind, DeviceName, Network, Profile};
use tramontane_verbs::{Limits, RdmaViews, Site};

type ThreadViews = RdmaViews<SideChannel>;

const VIEW: ViewId = ViewId(1);
const MEMBERS: u16 = 8;
const WAY: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(60);

fn nodes() -> Vec<NodeId> {
    (0..MEMBERS).map(|rank| NodeId(u32::from(rank) + 10)).collect()
}

/// Returns members of a view under construction, on a device that takes a while to look up each
/// path.
fn members(device: &DeviceName, side: &SharedSideNetwork) -> Vec<ThreadViews> {
    let ids = nodes();
    let row_bytes = vec![4096; ids.len()];
    let processes: Vec<usize> = (0..ids.len()).collect();
    let start = |process: &usize| {
        let own = Rank(u16::try_from(*process).expect("few"));
        let plan = ViewPlan::with_sizes(VIEW, own, &ids, &row_bytes, 7).with_blocks();
        side.note_view(&plan, &processes);
        let site = Site::open(&device.wanted(), &Limits::default(), None).expect("a device");
        let channel = SideChannel::start(side, *process);
        let mut fabric = RdmaViews::new(site, channel).expect("descriptors and threads");
        let rows = fabric.rows(&plan).expect("memory");
        fabric.open(VIEW, &rows.memory()).expect("it opens");
        fabric
    };
    processes.iter().map(start).collect()
}

fn step(members: &mut [ThreadViews], side: &SharedSideNetwork) {
    for member in members {
        while member.poll().is_some() {}
    }
    let _ = side.run_until(side.now() + 50_000);
    std::thread::sleep(Duration::from_micros(200));
}

#[test]
fn ending_while_connecting_waits_only_for_running_commands() {
    let network = Network::new(7, Clock::Real);
    let side = SideNetwork::new(SideProfile::default(), &nodes(), 7).shared();
    let way_ns = u64::try_from(WAY.as_nanos()).expect("short");
    let profile = Profile { ready_to_receive_ns: way_ns, ..Profile::strict() };
    let device = network.add_device(profile);
    let mut all = members(&device, &side);
    let until = Instant::now() + PATIENCE;
    let is_begun = |context: &_| {
        let commands = network.commands(*context);
        commands.iter().any(|count| count.kind == CommandKind::ReadyToReceive)
    };
    while !network.contexts(&device).iter().any(is_begun) {
        assert!(Instant::now() < until, "nobody is connected");
        step(&mut all, &side);
    }
    let first = all.remove(0);
    let began = Instant::now();
    drop(first);
    // Four threads establish two connections with each of seven peers.
    let all_ways = WAY * (2 * u32::from(MEMBERS - 1)) / 4;
    assert!(began.elapsed() < all_ways, "{:?}", began.elapsed());
    drop(all);
    assert_eq!(network.objects(), 0, "something is left");
}
