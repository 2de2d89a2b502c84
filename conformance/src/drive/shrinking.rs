//! Shrinks a failing plan of random faults to the smallest number of faults that still fail.
//!
//! Faults are omitted one by one, the last first. A fault stays omitted if the others still fail in
//! one of [`TRIES`] runs. So each of the remaining faults is needed, as far as this number of runs
//! can show.

/// Number of runs without failure after which a smaller plan counts as passing.
const TRIES: u32 = 2;

/// Maximum number of runs while shrinking.
const PLAYS_MAX: u32 = 40;

/// Returns a smallest subset of these faults for which `fails` is still true; it must be true for
/// all of them together.
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
    fn shrinking_removes_needless_faults() {
        let needs = |faults: &[usize]| faults.contains(&1) && faults.contains(&4);
        assert_eq!(shrunk(8, needs), [1, 4]);
        assert_eq!(shrunk(8, |_| true), [0; 0]);
        assert_eq!(shrunk(3, |faults| faults.len() == 3), [0, 1, 2]);
    }

    #[test]
    fn flaky_failure_is_replayed() {
        let mut plays = 0;
        let found = fewest::<()>(vec![0, 1], |faults| {
            plays += 1;
            Ok(plays % 2 == 0 && faults.contains(&1))
        });
        assert_eq!(found, Ok(vec![1]));
    }

    #[test]
    fn shrinking_ends_within_the_limit() {
        let mut plays = 0;
        let found = fewest::<()>((0..1000).collect(), |_| {
            plays += 1;
            Ok(false)
        });
        assert_eq!((found.map(|kept| kept.len()), plays), (Ok(1000), PLAYS_MAX));
    }
}
