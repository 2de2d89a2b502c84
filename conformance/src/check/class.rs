//! Messages that are alike: of one sender's start, to the same groups, delivered by the same starts
//! in the same views.
//!
//! What the checks of deliveries say of a message, they say of its whole class. So a class is a
//! count, and one message as an example; which nodes are due is asked once all fates are known.
//!
//! Invariants: keys are sorted; `places` are the bounds of the places of the messages, unless it is
//! `frayed`: then they may be too wide.

use super::archive::ClassId;
use super::groups::GroupSetId;
use super::message::{Answer, MessageView};
use super::mixing::Table;
use super::name::{Name, Names};
use super::roster::StartId;

/// What the messages of a class have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClassKey {
    /// The start that sent them.
    pub(super) sender: StartId,
    /// Their groups.
    pub(super) groups: GroupSetId,
    /// What their sender answered.
    pub(super) answer: Answer,
    /// The starts that delivered them, each with whether it is addressed.
    pub(super) delivered: Vec<(StartId, bool)>,
    /// Their view in each of their groups.
    pub(super) views: Vec<Option<MessageView>>,
}

impl ClassKey {
    /// The starts that delivered them, as far as they count for any check but those of integrity.
    pub(super) fn deliverers(&self) -> impl Iterator<Item = StartId> {
        let void = self.answer == Answer::Refused;
        self.delivered
            .iter()
            .filter(move |(_, addressed)| *addressed && !void)
            .map(|(start, _)| *start)
    }
}

/// A message that stands for its class.
#[derive(Clone, Debug)]
pub(super) struct Example {
    /// Its name.
    pub(super) name: Name,
    /// The same as text, where the text may be forgotten.
    pub(super) text: Option<Box<str>>,
    /// The line of its multicast.
    pub(super) line: u64,
    /// Its place in the order, if it has one.
    pub(super) place: Option<u64>,
    /// The lines of its deliveries, in the order of the key; 0 where one is not known any more.
    pub(super) deliveries: Vec<u64>,
}

impl Example {
    /// What comes first.
    fn rank(&self) -> u64 {
        self.place.unwrap_or(self.line)
    }

    /// The text of its name.
    pub(super) fn shown(&self, names: &Names) -> String {
        self.text.as_ref().map_or_else(|| names.text(self.name), ToString::to_string)
    }
}

/// A class.
#[derive(Debug)]
pub(super) struct Class {
    /// What its messages have in common.
    pub(super) key: ClassKey,
    /// How many there are.
    pub(super) count: u64,
    /// The first of them, if it is still known.
    pub(super) first: Option<Example>,
    /// The last of them, if it is still known.
    pub(super) last: Option<Example>,
    /// The earliest multicast that was ever in it.
    pub(super) t_ns_min: u64,
    /// The lowest and the highest place in the order.
    pub(super) places: Option<(u64, u64)>,
    /// A message at the bounds was taken out.
    pub(super) frayed: bool,
}

impl Class {
    fn new(key: ClassKey) -> Self {
        Self {
            key,
            count: 0,
            first: None,
            last: None,
            t_ns_min: u64::MAX,
            places: None,
            frayed: false,
        }
    }

    fn widen(&mut self, place: u64) {
        let (low, high) = self.places.unwrap_or((place, place));
        self.places = Some((low.min(place), high.max(place)));
    }

    fn note(&mut self, example: &Example) {
        if self.first.as_ref().is_none_or(|first| example.rank() < first.rank()) {
            self.first = Some(example.clone());
        }
        match &mut self.last {
            Some(last) if last.rank() > example.rank() => {}
            // Nearly every message is the last so far: the list of lines is used again.
            Some(last) => last.clone_from(example),
            None => self.last = Some(example.clone()),
        }
    }
}

/// All classes.
#[derive(Debug, Default)]
pub(super) struct Classes {
    ids: Table<ClassKey, ClassId>,
    /// The classes, by id.
    pub(super) classes: Vec<Class>,
}

impl Classes {
    /// Adds a message to its class.
    pub(super) fn add(&mut self, key: &ClassKey, t_ns: u64, example: &Example) -> ClassId {
        let id = self.id(key);
        let class = &mut self.classes[id.0 as usize];
        class.count += 1;
        class.t_ns_min = class.t_ns_min.min(t_ns);
        if let Some(place) = example.place {
            class.widen(place);
        }
        class.note(example);
        id
    }

    fn id(&mut self, key: &ClassKey) -> ClassId {
        if let Some(known) = self.ids.get(key) {
            return *known;
        }
        let id = ClassId(u32::try_from(self.classes.len()).unwrap_or(u32::MAX));
        self.ids.insert(key.clone(), id);
        self.classes.push(Class::new(key.clone()));
        id
    }

    /// Takes a message out of its class.
    pub(super) fn remove(&mut self, id: ClassId, name: Name, place: Option<u64>) {
        let class = &mut self.classes[id.0 as usize];
        class.count = class.count.saturating_sub(1);
        for example in [&mut class.first, &mut class.last] {
            example.take_if(|example| example.name == name);
        }
        if class.count == 0 {
            (class.places, class.frayed) = (None, false);
        } else if let Some((low, high)) = class.places {
            class.frayed |= place.is_none_or(|place| place == low || place == high);
        }
    }

    /// Moves a message, of which no more is known than its name, to another class.
    pub(super) fn shift(&mut self, from: ClassId, key: &ClassKey, name: Name) -> ClassId {
        self.remove(from, name, None);
        let t_ns_min = self.get(from).t_ns_min;
        let id = self.id(key);
        let class = &mut self.classes[id.0 as usize];
        class.count += 1;
        class.t_ns_min = class.t_ns_min.min(t_ns_min);
        id
    }

    /// Finds the bounds of frayed classes again; `members` are the messages of all classes, and
    /// their places. Says whether all could be found.
    pub(super) fn mend(&mut self, members: impl Iterator<Item = (ClassId, Option<u64>)>) -> bool {
        if !self.classes.iter().any(|class| class.frayed) {
            return true;
        }
        for class in self.classes.iter_mut().filter(|class| class.frayed) {
            class.places = None;
        }
        let mut known = true;
        for (id, place) in members {
            let class = &mut self.classes[id.0 as usize];
            if class.frayed {
                known &= place.is_some();
                place.into_iter().for_each(|place| class.widen(place));
            }
        }
        self.classes.iter_mut().for_each(|class| class.frayed = false);
        known
    }

    /// A class.
    pub(super) fn get(&self, id: ClassId) -> &Class {
        &self.classes[id.0 as usize]
    }

    /// The classes that have messages.
    pub(super) fn living(&self) -> impl Iterator<Item = &Class> {
        self.classes.iter().filter(|class| class.count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ClassKey {
        ClassKey {
            sender: StartId(0),
            groups: GroupSetId(0),
            answer: Answer::None,
            delivered: vec![(StartId(0), true), (StartId(1), false)],
            views: vec![None],
        }
    }

    fn example(number: u64) -> Example {
        let name = Name { prefix: 1, number };
        Example {
            name,
            text: None,
            line: number + 1,
            place: Some(number),
            deliveries: vec![number; 2],
        }
    }

    #[test]
    fn a_class_is_a_count_bounds_and_its_ends() {
        let mut classes = Classes::default();
        let id = classes.add(&key(), 0, &example(5));
        (3..9).for_each(|number| assert_eq!(classes.add(&key(), 0, &example(number)), id));
        let ends = |class: &Class| {
            [&class.first, &class.last].map(|end| end.as_ref().map(|example| example.name.number))
        };
        let class = classes.get(id);
        assert_eq!((class.count, class.places, ends(class)), (7, Some((3, 8)), [Some(3), Some(8)]));
        assert_eq!(class.key.deliverers().collect::<Vec<_>>(), [StartId(0)]);
        classes.remove(id, Name { prefix: 1, number: 5 }, Some(5));
        assert!(!classes.get(id).frayed);
        classes.remove(id, Name { prefix: 1, number: 3 }, Some(3));
        assert!(classes.get(id).frayed);
        assert_eq!(ends(classes.get(id)), [None, Some(8)]);
        assert!(classes.mend([(id, Some(4)), (id, Some(8))].into_iter()));
        assert_eq!(classes.get(id).places, Some((4, 8)));
    }
}
