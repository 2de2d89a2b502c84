//! The properties of a run's devices: deviations that verbs permit, drawn from the seed. Times are
//! in ns.

use std::time::Duration;

use tramontane_fixtures::random::Random;
use tramontane_verbs::devices::{DataInOrder, DeviceKind, DeviceLimits, LinkLayer};
use tramontane_verbs::fake::{
    InlineGrant, Keys, Placement, PortProfile, Profile, ResetMeans, SevenRetries,
};
use tramontane_verbs::timing::LossTimes;

/// All devices of a run, and the ways in which their processes exit.
#[derive(Clone, Debug)]
pub struct Devices {
    pub profile: Profile,
    /// Time for which a peer may leave writes unanswered, in ms.
    pub loss_time_ms: u64,
    /// Probability, in percent, that a process ends together with its host, so that no further
    /// packet comes from it.
    pub host_percent: u64,
    /// Probability, in percent, that the kernel destroys the oldest object of a killed process
    /// first instead of the newest.
    pub oldest_first_percent: u64,
    /// The time between the destruction of one object of a killed process and the next.
    pub destroy_step_ns: u64,
}

impl Devices {
    /// Draws the devices' properties.
    pub fn draw(seed: u64) -> Self {
        let mut random = Random::stream(seed, "devices");
        let profile = draw_profile(&mut random);
        Self {
            loss_time_ms: *random.pick(&[1, 5, 20]).expect("several"),
            host_percent: *random.pick(&[0, 30]).expect("several"),
            oldest_first_percent: 50,
            destroy_step_ns: *random.pick(&[0, 2_000, 50_000]).expect("several"),
            profile,
        }
    }

    /// Returns whether a device may give up a peer that does not answer during these cuts, each in
    /// ns. It retries after each interval, so it may see only one of two consecutive cuts.
    pub fn may_give_up(&self, cuts_ns: impl Iterator<Item = u64>) -> bool {
        let wanted = Duration::from_millis(self.loss_time_ms);
        let times = LossTimes::at_least(wanted, DeviceKind::Adapter, None);
        let [interval_ns, tries] = [times.first_retry().as_nanos(), u128::from(times.retries) + 1];
        let Profile { latency_ns, jitter_ns, .. } = self.profile;
        // A request sent before the cut is lost if its answer falls into the cut.
        let way_ns = u128::from(2 * (latency_ns + jitter_ns));
        let tries_lost = cuts_ns.map(|cut_ns| (u128::from(cut_ns) + way_ns) / interval_ns + 1);
        tries_lost.sum::<u128>() >= tries
    }

    /// Returns whether the ports are InfiniBand rather than Ethernet.
    pub fn is_infiniband(&self) -> bool {
        self.profile.ports.iter().any(|port| port.link_layer == LinkLayer::InfiniBand)
    }

    /// Returns each permitted deviation, and whether these devices show it.
    pub fn freedoms(&self) -> impl Iterator<Item = (bool, &'static str)> {
        let profile = &self.profile;
        let freedoms = [
            (profile.placement == Placement::WritesReordered, "writes placed in any order"),
            (profile.placement == Placement::BytesReordered, "pieces placed in any order"),
            (profile.data_in_order == DataInOrder::Yes, "order kept by devices"),
            (profile.data_in_order != DataInOrder::Yes, "order kept by updates"),
            (profile.completes_before_visible, "completion before visibility"),
            (profile.ignores_access_flags, "access flags without effect"),
            (profile.reset == ResetMeans::NothingRevoked, "RESET revokes nothing"),
            (profile.reset == ResetMeans::Error, "RESET means ERROR"),
            (profile.inline == InlineGrant::RoundedUp, "inline sizes rounded up"),
            (profile.inline == InlineGrant::Less, "less inline than asked"),
            (profile.limits.inline_bytes_max == 0, "nothing inline"),
            (profile.keys == Keys::Drawn, "keys at random"),
            (profile.keys == Keys::Reused, "keys that come again"),
            (profile.keys == Keys::ReusedAtOnce, "keys that come again at once"),
            (profile.command_ns > 0, "slow commands"),
            (profile.ready_to_receive_ns > 0, "slow RTR"),
            (profile.timeout_stretch_max > 1, "timeouts stretched"),
            (self.is_infiniband(), "InfiniBand"),
        ];
        freedoms.into_iter()
    }

    /// Returns roughly the time for which the commands of a view of `members` members may occupy a
    /// polling thread.
    pub fn view_ns(&self, members: u64) -> u64 {
        const COMMANDS: u64 = 14;
        members * (COMMANDS * self.profile.command_ns + self.profile.ready_to_receive_ns)
    }
}

/// Draws the first value as often as all others together.
fn mostly<T: Copy>(random: &mut Random, usual: T, others: &[T]) -> T {
    if random.chance(50) { usual } else { *random.pick(others).expect("several") }
}

fn draw_profile(random: &mut Random) -> Profile {
    let strict = Profile::strict();
    let (placement, data_in_order) = draw_order(random);
    Profile {
        latency_ns: mostly(random, 2_000, &[20_000, 60_000]),
        jitter_ns: mostly(random, 0, &[5_000, 40_000]),
        placement,
        placement_delay_ns: mostly(random, 2_000, &[20_000, 100_000]),
        data_in_order,
        completes_before_visible: random.chance(50),
        late_read_ns: mostly(random, 0, &[1_000, 30_000]),
        ignores_access_flags: random.chance(30),
        reset: mostly(random, ResetMeans::Reset, &[ResetMeans::NothingRevoked, ResetMeans::Error]),
        keeps_completions: random.chance(50),
        inline: mostly(random, InlineGrant::AsAsked, &[InlineGrant::RoundedUp, InlineGrant::Less]),
        limits: DeviceLimits { inline_bytes_max: mostly(random, 512, &[64, 0]), ..strict.limits },
        command_ns: mostly(random, 0, &[500, 10_000]),
        ready_to_receive_ns: mostly(random, 0, &[5_000, 100_000]),
        timeout_exponent_min: mostly(random, 0, &[12]),
        timeout_stretch_max: mostly(random, 1, &[2, 4]),
        seven_retries: SevenRetries::Seven,
        keys: mostly(random, Keys::Consecutive, &[Keys::Drawn, Keys::Reused, Keys::ReusedAtOnce]),
        ports: vec![draw_port(random)],
        ..strict
    }
}

/// Draws how writes are placed, and what the device reports about it: a device that places writes
/// out of order never reports that it keeps the order.
fn draw_order(random: &mut Random) -> (Placement, DataInOrder) {
    let reordered = [Placement::WritesReordered, Placement::BytesReordered];
    let placement = mostly(random, Placement::InOrder, &reordered);
    let data_in_order = match placement {
        Placement::InOrder => mostly(random, DataInOrder::Yes, &[DataInOrder::NotKnown]),
        _ => mostly(random, DataInOrder::NotKnown, &[DataInOrder::No]),
    };
    (placement, data_in_order)
}

/// Draws Ethernet or InfiniBand.
fn draw_port(random: &mut Random) -> PortProfile {
    let link_layer = mostly(random, LinkLayer::Ethernet, &[LinkLayer::InfiniBand]);
    PortProfile { link_layer, ..PortProfile::default() }
}
