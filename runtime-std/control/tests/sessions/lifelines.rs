//! What is left of the connections once the members have met: signs of life.

use std::time::{Duration, Instant};

use crate::support::{joined, key};
use tramontane_control::{Lifeline, SharedKey, Sign};

fn lifelines(members: u16, key: Option<SharedKey>) -> Vec<Vec<Option<Lifeline>>> {
    joined(members, key)
        .into_iter()
        .map(|mesh| mesh.into_lifelines(Duration::from_secs(3)))
        .collect()
}

#[test]
fn lifelines_tell_who_left_from_who_is_gone() {
    for key in [None, key(1)] {
        let mut all = lifelines(3, key);
        let mut look = |from: usize, of: usize, expected: Sign| {
            let until = Instant::now() + Duration::from_secs(5);
            let line = all[from][of].as_mut().expect("another member");
            let mut sign = line.look();
            while sign != expected && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
                sign = line.look();
            }
            assert_eq!(sign, expected, "{from} of {of}");
        };
        look(0, 1, Sign::Alive);
        look(1, 2, Sign::Alive);
        for line in all[1].iter_mut().flatten() {
            line.leave();
        }
        all[2].clear();
        let mut see = |of: usize, expected: Sign| {
            let line = all[0][of].as_mut().expect("another member");
            std::thread::sleep(Duration::from_millis(100));
            assert_eq!((line.look(), line.look()), (expected, expected));
        };
        see(1, Sign::Left);
        see(2, Sign::Gone);
    }
}
