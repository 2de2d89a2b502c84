//! Views with more connections per peer than a row and blocks need: members that meet over TCP
//! announce the same number to each other.

use std::time::{Duration, Instant};

use tramontane_core::fabric::Region;
use tramontane_verbs::Limits;

use super::VIEW;
use super::group::beside::{Beside, meet_all_with};

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn members_with_several_regions_become_ready() {
    for count in [1, 2, 5, 32] {
        let regions: Vec<_> = (1..=count).map(|number| (Region(number), 4096)).collect();
        let mut members = meet_all_with(2, &Limits::default(), 4096, &regions);
        members.iter_mut().for_each(Beside::open);
        let until = Instant::now() + PATIENCE;
        while !members.iter_mut().fold(true, |all, member| all & member.is_ready()) {
            let lost = [super::A, super::B].map(|peer| {
                let told = members.iter().filter_map(|member| member.fabric.loss_of(VIEW, peer));
                told.map(ToString::to_string).collect::<Vec<_>>()
            });
            assert!(Instant::now() < until, "not all ready with {count} regions: {lost:?}");
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}
