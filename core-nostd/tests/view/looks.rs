//! What a look at a view costs: so many cells a member, each found as fast in a view of many
//! subgroups as in one of few.

use std::time::{Duration, Instant};

use crate::steady_view::with_view;
use tramontane_core::ids::Rank;

/// The shortest of some looks: what else the machine did is in the others.
fn shortest_look(members: u16, subgroups: usize) -> Duration {
    let mut shortest = Duration::MAX;
    with_view(Rank(1), (members, subgroups), |look| {
        for _ in 0..20 {
            let began = Instant::now();
            look();
            shortest = shortest.min(began.elapsed());
        }
    });
    shortest
}

#[test]
fn subgroups_do_not_make_a_look_at_the_view_longer() {
    let (few, many) = (shortest_look(64, 1), shortest_look(64, 32));
    assert!(many < few * 4, "{few:?} with one subgroup, {many:?} with 32");
}

#[test]
fn a_look_at_a_steady_view_reads_a_few_cells_a_member_and_its_suspicions() {
    // The leader also asks all members for a stance, and looks at the suspicions once more.
    for (own, each, a_word) in [(Rank(1), 7, 2), (Rank(0), 16, 4)] {
        for (members, subgroups) in [(16, 4), (64, 1), (256, 16), (1024, 2)] {
            with_view(own, (members, subgroups), |look| {
                // The first look starts the view.
                look();
                let loads = look();
                let words = u64::from(members).div_ceil(64);
                println!("{members} members, {subgroups} subgroups, at {own}: {loads} cells");
                assert!(
                    loads <= u64::from(members) * (each + a_word * words),
                    "{members}: {loads}"
                );
            });
        }
    }
}
