//! Checks the directory against a model that keeps the whole history and searches it for each
//! answer.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{Created, Directory, Due, TopicRefusal};
use crate::domain::{Level, TopicDescription, TopicPlaces};

const DECLARED: &str = "declared";
const NAMES: [&str; 4] = ["a", "b", "c", DECLARED];
const LEVELS: [Level; 2] = [Level::Atomic, Level::Volatile];

/// A message, or the effect of a view.
#[derive(Clone, Debug)]
enum DirectoryDeed {
    Create {
        name: usize,
        level: usize,
        window: u32,
    },
    Delete {
        name: usize,
    },
    /// The keeper of the places has a view do what is due at a place, or frees the place.
    Keep {
        place: usize,
    },
    /// A participant joins, and receives another participant's state.
    Join,
}

fn deeds() -> impl Strategy<Value = Vec<DirectoryDeed>> {
    let deed = prop_oneof![
        4 => (0..NAMES.len(), 0..LEVELS.len(), prop_oneof![Just(8_u32), Just(99)])
            .prop_map(|(name, level, window)| DirectoryDeed::Create { name, level, window }),
        2 => (0..NAMES.len()).prop_map(|name| DirectoryDeed::Delete { name }),
        6 => (0..3_usize).prop_map(|place| DirectoryDeed::Keep { place }),
        1 => Just(DirectoryDeed::Join),
    ];
    prop::collection::vec(deed, 1..60)
}

fn topic(name: &str, level: Level, window: u32) -> TopicDescription {
    TopicDescription::new(name, "T").level(level).window(window)
}

fn places() -> Vec<TopicPlaces> {
    let of = |level| TopicPlaces { level, window: 16, ..TopicPlaces::new(1) };
    vec![of(Level::Atomic), of(Level::Volatile), of(Level::Atomic)]
}

/// The history from the beginning: successful creations, successful deletions, and freed places.
#[derive(Clone, Debug)]
enum DirectoryEvent {
    Created { topic: TopicDescription, place: usize },
    Deleted { name: String },
    Freed { place: usize },
}

/// The model.
#[derive(Default)]
struct Naive(Vec<DirectoryEvent>);

impl Naive {
    /// Returns the topic at a place, its generation, and whether it has been deleted.
    fn at(&self, place: usize) -> Option<(TopicDescription, u64, bool)> {
        let mut found: Option<(TopicDescription, u64, bool)> = None;
        let mut generation = 0;
        for event in &self.0 {
            match event {
                DirectoryEvent::Created { topic, place: at } => {
                    generation += 1;
                    if *at == place {
                        found = Some((topic.clone(), generation, false));
                    }
                }
                DirectoryEvent::Deleted { name } => {
                    if let Some((topic, _, is_deleted)) = &mut found
                        && topic.name == *name
                    {
                        *is_deleted = true;
                    }
                }
                DirectoryEvent::Freed { place: at } if *at == place => found = None,
                DirectoryEvent::Freed { .. } => {}
            }
        }
        found
    }

    fn named(&self, name: &str) -> Option<(usize, TopicDescription, u64, bool)> {
        (0..places().len()).find_map(|place| {
            let (topic, generation, ends) = self.at(place)?;
            (topic.name == name).then_some((place, topic, generation, ends))
        })
    }

    fn create(&mut self, topic: &TopicDescription) -> Result<Created, &'static str> {
        if topic.name == DECLARED {
            let is_alike = *topic == self::topic(DECLARED, Level::Atomic, 8);
            let there = Created { index: 0, generation: 0, is_new: false };
            return if is_alike { Ok(there) } else { Err("differs") };
        }
        if let Some((place, there, generation, ends)) = self.named(&topic.name) {
            return match (ends, there == *topic) {
                (true, _) => Err("ends"),
                (false, false) => Err("differs"),
                (false, true) => Ok(Created { index: place + 1, generation, is_new: false }),
            };
        }
        let all = places();
        let is_free = |place: &usize| {
            let of = all[*place];
            self.at(*place).is_none() && of.level == topic.level && topic.window <= of.window
        };
        let place = (0..all.len()).find(is_free).ok_or("no place")?;
        self.0.push(DirectoryEvent::Created { topic: topic.clone(), place });
        let generation =
            self.0.iter().filter(|event| matches!(event, DirectoryEvent::Created { .. }));
        Ok(Created { index: place + 1, generation: generation.count() as u64, is_new: true })
    }

    fn delete(&mut self, name: &str) -> Result<(usize, u64), &'static str> {
        if name == DECLARED {
            return Err("declared");
        }
        match self.named(name) {
            None => Err("unknown"),
            Some((.., true)) => Err("ends"),
            Some((place, _, generation, false)) => {
                self.0.push(DirectoryEvent::Deleted { name: name.to_owned() });
                Ok((place + 1, generation))
            }
        }
    }
}

fn kind(refusal: &TopicRefusal) -> &'static str {
    match refusal {
        TopicRefusal::Differs { .. } => "differs",
        TopicRefusal::Ends(_) => "ends",
        TopicRefusal::NoPlace { .. } => "no place",
        TopicRefusal::Declared(_) => "declared",
        TopicRefusal::Unknown(_) => "unknown",
    }
}

fn directory() -> Directory {
    Directory::new(vec![topic(DECLARED, Level::Atomic, 8)], places())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn directory_matches_a_model_with_full_history(deeds in deeds()) {
        let (mut own, mut naive) = (directory(), Naive::default());
        let mut open = [false; 3];
        // Between messages of two topics, a place is always closed in a view.
        let mut written: [Option<u64>; 3] = [None; 3];
        for deed in deeds {
            match deed {
                DirectoryDeed::Create { name, level, window } => {
                    let topic = topic(NAMES[name], LEVELS[level], window);
                    let told = own.create(7, 3, topic.clone());
                    prop_assert_eq!(told.map_err(|why| kind(&why)), naive.create(&topic));
                }
                DirectoryDeed::Delete { name } => {
                    let told = own.delete(NAMES[name]).map_err(|why| kind(&why));
                    prop_assert_eq!(told, naive.delete(NAMES[name]));
                }
                DirectoryDeed::Keep { place } => match own.due(place, open[place], false) {
                    Some(Due::Open) => {
                        let held = naive.at(place);
                        prop_assert!(held.is_some_and(|(.., ends)| !ends));
                        prop_assert_eq!(written[place], None);
                        open[place] = true;
                    }
                    Some(Due::Close) => {
                        prop_assert!(naive.at(place).is_some_and(|(.., ends)| ends));
                        (open[place], written[place]) = (false, None);
                    }
                    Some(Due::Free(generation)) => {
                        prop_assert!(!open[place]);
                        prop_assert!(own.free(generation));
                        prop_assert!(!own.free(generation), "a word that comes twice does nothing");
                        naive.0.push(DirectoryEvent::Freed { place });
                    }
                    None => prop_assert!(naive.at(place).is_none_or(|(.., ends)| !ends)),
                },
                DirectoryDeed::Join => {
                    let mut joined = directory();
                    prop_assert!(joined.restore(own.state()));
                    prop_assert_eq!(&joined, &own);
                    own = joined;
                }
            }
            for place in 0..3 {
                let Some((topic, generation, ends)) = naive.at(place) else { continue };
                prop_assert_eq!(own.topic(place + 1, generation), Some(&topic));
                prop_assert_eq!(own.is_written(place + 1, generation), !ends);
                if open[place] && !ends {
                    prop_assert!(written[place].is_none_or(|before| before == generation));
                    written[place] = Some(generation);
                }
            }
            let there = own.topics().map(|topic| topic.name.as_str()).collect::<BTreeSet<_>>();
            for name in NAMES {
                let is_there = name == DECLARED || naive.named(name).is_some_and(|of| !of.3);
                prop_assert_eq!(there.contains(name), is_there, "{}", name);
                prop_assert_eq!(own.find(name).is_some(), is_there);
            }
        }
    }
}

#[test]
fn slot_stays_reserved_while_views_may_open_it() {
    let mut own = directory();
    let created = own.create(0, 1, topic("a", Level::Atomic, 8)).expect("a place");
    assert_eq!(own.due(0, false, false), Some(Due::Open));
    own.delete("a").expect("it is there");
    assert_eq!(own.due(0, false, true), None, "it was asked for");
    assert_eq!(own.due(0, true, false), Some(Due::Close));
    assert_eq!(own.due(0, false, false), Some(Due::Free(created.generation)));
}

#[test]
fn mismatched_topic_error_names_its_fields() {
    let mut own = directory();
    own.create(0, 1, topic("a", Level::Atomic, 8)).expect("a place");
    let other = TopicDescription { type_name: "U".into(), ..topic("a", Level::Volatile, 8) };
    let told = own.create(1, 1, other.keep_deeper()).expect_err("it differs").to_string();
    assert!(told.contains("\"a\"") && told.contains("type, level, keep_depth"), "{told}");
    let logged = own.create(1, 1, topic("b", Level::Logged, 8)).expect_err("no such place");
    assert!(logged.to_string().contains("level logged"), "{logged}");
}

impl TopicDescription {
    fn keep_deeper(self) -> Self {
        Self { keep_depth: Some(9), ..self }
    }
}

#[test]
fn new_domain_contains_only_declared_topics() {
    let mut own = directory();
    own.create(0, 1, topic("a", Level::Atomic, 8)).expect("a place");
    assert!(own.restore(own.first_state()));
    assert_eq!(own, directory());
}
