//! Rights that all members grant and revoke at any moment, compared with a model. A written value
//! lands only under a right that its writer had at the post and has kept since.

use std::collections::BTreeMap;

use tramontane_core::fabric::{ErrorKind, PermissionEvent};
use tramontane_core::ids::Rank;
use tramontane_verbs::Limits;
use tramontane_verbs::fake::Profile;

use super::world::{LOG, RightsRun};

const MEMBERS: u16 = 3;

/// Number of bytes that each writer writes in every region: several pieces.
const SLOT_BYTES: usize = 512;

/// A separate small generator, because the network has its own.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most
    }
}

/// The known state of one owner and one writer.
#[derive(Default)]
struct Right {
    is_granted: bool,
    /// The writer's posts under the current right, in words of eight bytes.
    values: Vec<u64>,
    /// The content when the right was last granted or revoked.
    before: Vec<u64>,
}

struct Storm {
    world: RightsRun,
    dice: Dice,
    rights: BTreeMap<(Rank, Rank), Right>,
    value: u64,
    landed: u64,
    denied: u64,
    refused: u64,
}

fn slot(writer: Rank) -> usize {
    writer.index() * SLOT_BYTES
}

impl Storm {
    fn new(seed: u64, profile: &Profile, limits: &Limits) -> Self {
        let world = RightsRun::with_limits(MEMBERS, seed, profile, limits);
        let nothing = || Right { before: vec![0; SLOT_BYTES / 8], ..Right::default() };
        let rights = world.pairs().into_iter().map(|pair| (pair, nothing())).collect();
        let dice = Dice(seed ^ 0xabcd);
        Self { world, dice, rights, value: 0, landed: 0, denied: 0, refused: 0 }
    }

    fn words(&self, owner: Rank, writer: Rank) -> Vec<u64> {
        let bytes = self.world.look(owner, slot(writer), SLOT_BYTES);
        let word = |chunk: &[u8]| u64::from_le_bytes(chunk.try_into().expect("eight"));
        bytes.chunks_exact(8).map(word).collect()
    }

    /// Checks that each word was already present when the right last changed, or has been written
    /// under that right.
    fn check(&self) {
        for ((owner, writer), right) in &self.rights {
            let words = self.words(*owner, *writer);
            for (index, word) in words.iter().enumerate() {
                let is_old = right.before[index] == *word;
                let is_allowed = right.is_granted && right.values.contains(word);
                assert!(
                    is_old || is_allowed,
                    "at {owner}, word {index} of {writer} became {word} from {}, granted: {}",
                    right.before[index],
                    right.is_granted
                );
            }
        }
    }

    fn change(&mut self, owner: Rank, writer: Rank) {
        let was_granted = self.rights[&(owner, writer)].is_granted;
        if was_granted {
            self.world.revoke(owner, writer);
        } else {
            self.world.grant(owner, writer);
        }
        let before = self.words(owner, writer);
        let right = Right { is_granted: !was_granted, values: Vec::new(), before };
        self.rights.insert((owner, writer), right);
    }

    fn write(&mut self, owner: Rank, writer: Rank) {
        self.value += 1;
        let content = self.value.to_le_bytes().repeat(SLOT_BYTES / 8);
        self.world.fill(writer, slot(writer), &content);
        match self.world.post(writer, owner, slot(writer), SLOT_BYTES, None) {
            Ok(()) => {}
            Err(ErrorKind::Revoked | ErrorKind::QueueFull) => self.refused += 1,
            Err(error) => panic!("{writer} to {owner}: {error}"),
        }
        // Bytes that are not inline are read when the request executes, so a later value may
        // replace that of any request in flight.
        let value = self.value;
        for ((_, other), right) in &mut self.rights {
            if *other == writer {
                right.values.push(value);
            }
        }
    }

    fn act(&mut self) {
        let pairs = self.world.pairs();
        let pick = usize::try_from(self.dice.below(6)).expect("small");
        let (owner, writer) = pairs[pick];
        match self.dice.below(12) {
            0 | 1 => self.change(owner, writer),
            2 => {
                // Posts several times without polling.
                for _ in 0..self.dice.below(8) {
                    self.change(owner, writer);
                }
            }
            3..6 => self.write(owner, writer),
            6 | 7 => self.world.fabrics[owner.index()].collect(),
            8 => {
                let passed = self.dice.below(5_000);
                self.world.pass_ns(passed);
            }
            _ => {
                self.world.pass();
            }
        }
        self.check();
        for member in (0..MEMBERS).map(Rank) {
            let told = self.world.told(member).into_iter();
            let denials = told.filter(|it| matches!(it, PermissionEvent::Denied { .. })).count();
            self.denied += u64::try_from(denials).expect("small");
        }
    }

    /// Checks at the end that every member with the right can use it.
    fn end(&mut self) {
        self.world.settle();
        self.check();
        for (owner, writer) in self.world.pairs() {
            if !self.rights[&(owner, writer)].is_granted {
                self.change(owner, writer);
            }
            let content = [u8::MAX; SLOT_BYTES];
            self.world.fill(writer, slot(writer), &content);
            self.world.run_until(|world| {
                world.post(writer, owner, slot(writer), SLOT_BYTES, None).is_ok()
            });
            self.world.run_until(|world| world.look(owner, slot(writer), SLOT_BYTES) == content);
            self.landed += 1;
        }
    }
}

fn run(seed: u64, profile: &Profile, limits: &Limits, steps: u32) -> (u64, u64, u64) {
    let mut storm = Storm::new(seed, profile, limits);
    for _ in 0..steps {
        storm.act();
    }
    storm.end();
    assert_eq!(storm.landed, 6, "all of {LOG:?}");
    (storm.value, storm.denied, storm.refused)
}

#[test]
fn random_grants_never_admit_an_unauthorised_write() {
    let seeds = std::env::var("TRAMONTANE_SEEDS").ok().and_then(|it| it.parse().ok());
    let (mut values, mut denied, mut refused) = (0, 0, 0);
    for seed in 0..seeds.unwrap_or(60) {
        let profile = if seed % 4 == 0 { Profile::strict() } else { Profile::drawn(seed) };
        let limits = Limits {
            depth: if seed % 3 == 0 { 64 } else { 256 },
            inline_bytes_max: (seed % 2 == 0).then_some(0),
            ..Limits::default()
        };
        println!("seed {seed}");
        let found = run(seed, &profile, &limits, 400);
        values += found.0;
        denied += found.1;
        refused += found.2;
    }
    println!("{values} writes, {denied} denials, {refused} refused at once");
    assert!(denied > 0 && refused > 0 && values > denied, "inconclusive");
}
