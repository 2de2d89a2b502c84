//! Shrinks a failing plan of random faults to the fewest that still fail.
//!
//! One fault after the other is left out, the last first; it stays out if the rest still fails in
//! one of [`TRIES`] plays. What is left then is needed, each of it, as far as that many plays show.

/// How often a smaller plan is played before it is taken not to fail.
const TRIES: u32 = 2;

/// How many plays shrinking takes at most.
const PLAYS_MAX: u32 = 40;

/// The fewest of these faults with which `fails` is still true, as it is with all of them.
pub(super) fn fewest<E>(
    faults: Vec<usize>,
    mut fails: impl FnMut(&[usize]) -> Result<bool, E>,
) -> Result<Vec<usize>, E> {
    let (mut kept, mut plays) = (faults.clone(), 0);
    for fault in faults.into_iter().rev() {
        let fewer: Vec<usize> = kept.iter().copied().filter(|other| *other != fault).collect();
        for _ in 0..TRIES {
            if plays == PLAYS_MAX {
                return Ok(kept);
            }
            plays += 1;
            if fails(&fewer)? {
                kept = fewer;
                break;
            }
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shrunk(count: usize, fails: impl Fn(&[usize]) -> bool) -> Vec<usize> {
        fewest::<()>((0..count).collect(), |faults| Ok(fails(faults))).expect("nothing else fails")
    }

    #[test]
    fn what_is_not_needed_is_left_out() {
        let needs = |faults: &[usize]| faults.contains(&1) && faults.contains(&4);
        assert_eq!(shrunk(8, needs), [1, 4]);
        assert_eq!(shrunk(8, |_| true), [0; 0]);
        assert_eq!(shrunk(3, |faults| faults.len() == 3), [0, 1, 2]);
    }

    #[test]
    fn one_that_fails_now_and_then_is_played_again() {
        let mut plays = 0;
        let found = fewest::<()>(vec![0, 1], |faults| {
            plays += 1;
            Ok(plays % 2 == 0 && faults.contains(&1))
        });
        assert_eq!(found, Ok(vec![1]));
    }

    #[test]
    fn it_ends() {
        let mut plays = 0;
        let found = fewest::<()>((0..1000).collect(), |_| {
            plays += 1;
            Ok(false)
        });
        assert_eq!((found.map(|kept| kept.len()), plays), (Ok(1000), PLAYS_MAX));
    }
}
