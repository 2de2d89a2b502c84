//! The cost of checking a view: a fixed number of cells per member, each found as quickly in a view
//! with many subgroups as in a view with few.

use std::time::{Duration, Instant};

use crate::steady_view::with_view;
use tramontane_core::ids::Rank;

/// Returns the shortest of several checks, because the longer ones include unrelated work of the
/// machine.
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
fn view_checks_stay_fast_with_many_subgroups() {
    let (few, many) = (shortest_look(64, 1), shortest_look(64, 32));
    assert!(many < few * 4, "{few:?} with one subgroup, {many:?} with 32");
}

#[test]
fn check_of_a_steady_view_reads_few_cells() {
    // The leader also reads the stances of all members, and reads the suspicions again.
    for (own, each, a_word) in [(Rank(1), 7, 2), (Rank(0), 16, 4)] {
        for (members, subgroups) in [(16, 4), (64, 1), (256, 16), (1024, 2)] {
            with_view(own, (members, subgroups), |look| {
                // The first check starts the view.
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
