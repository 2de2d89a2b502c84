//! Equivalent messages: sent by one incarnation to the same groups, and delivered by the same
//! incarnations in the same views.
//!
//! The verdict of a delivery check on one message is true for its whole class. So a class is a
//! count and one example message. The set of due nodes is computed later, when all fates are known.
//!
//! Invariants: keys are sorted; `places` are the exact bounds of the messages' positions, but may
//! be too wide if the class is `frayed`.

use super::archive::ClassId;
use super::groups::GroupSetId;
use super::message::{MessageView, SenderAnswer};
use super::mixing::MixedTable;
use super::name::{Name, Names};
use super::roster::StartId;

/// The properties that all messages of a class share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClassKey {
    /// The incarnation that sent the messages.
    pub(super) sender: StartId,
    /// Their groups.
    pub(super) groups: GroupSetId,
    /// The answer of the messages' sender.
    pub(super) answer: SenderAnswer,
    /// The incarnations that delivered the messages, and whether the messages are addressed to
    /// each.
    pub(super) delivered: Vec<(StartId, bool)>,
    /// The messages' view in each of their groups.
    pub(super) views: Vec<Option<MessageView>>,
}

impl ClassKey {
    /// Iterates over the incarnations whose deliveries count for checks other than integrity.
    pub(super) fn deliverers(&self) -> impl Iterator<Item = StartId> {
        let void = self.answer == SenderAnswer::Refused;
        self.delivered
            .iter()
            .filter(move |(_, addressed)| *addressed && !void)
            .map(|(start, _)| *start)
    }
}

/// A message that represents its class.
#[derive(Clone, Debug)]
pub(super) struct Example {
    /// Its name.
    pub(super) name: Name,
    /// The message's name as text, kept if the name table may forget it.
    pub(super) text: Option<Box<str>>,
    /// The line of the message's multicast.
    pub(super) line: u64,
    /// The message's position in the order, if it has one.
    pub(super) place: Option<u64>,
    /// The lines of the example's deliveries, in the order of the key; 0 for a forgotten line.
    pub(super) deliveries: Vec<u64>,
}

impl Example {
    /// Returns the sort key: the lowest comes first.
    fn rank(&self) -> u64 {
        self.place.unwrap_or(self.line)
    }

    /// Returns the message's name as text.
    pub(super) fn shown(&self, names: &Names) -> String {
        self.text.as_ref().map_or_else(|| names.text(self.name), ToString::to_string)
    }
}

/// A class.
#[derive(Debug)]
pub(super) struct Class {
    /// The properties that the messages share.
    pub(super) key: ClassKey,
    /// Number of messages.
    pub(super) count: u64,
    /// The first message, if it is still known.
    pub(super) first: Option<Example>,
    /// The last message, if it is still known.
    pub(super) last: Option<Example>,
    /// The earliest multicast time of all messages that have ever been in the class.
    pub(super) t_ns_min: u64,
    /// The lowest and the highest position in the order.
    pub(super) places: Option<(u64, u64)>,
    /// Whether a message at one of the bounds was taken out.
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
            // Nearly every message is the latest one so far, so the list of lines is reused.
            Some(last) => last.clone_from(example),
            None => self.last = Some(example.clone()),
        }
    }
}

/// All classes.
#[derive(Debug, Default)]
pub(super) struct Classes {
    ids: MixedTable<ClassKey, ClassId>,
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

    /// Moves a message to another class, knowing only its name.
    pub(super) fn shift(&mut self, from: ClassId, key: &ClassKey, name: Name) -> ClassId {
        self.remove(from, name, None);
        let t_ns_min = self.get(from).t_ns_min;
        let id = self.id(key);
        let class = &mut self.classes[id.0 as usize];
        class.count += 1;
        class.t_ns_min = class.t_ns_min.min(t_ns_min);
        id
    }

    /// Recomputes the bounds of frayed classes. `members` are the messages of all classes with
    /// their positions. Returns whether all bounds could be found.
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

    /// Iterates over the classes that have messages.
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
            answer: SenderAnswer::None,
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
    fn class_keeps_count_range_and_outermost_messages() {
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
