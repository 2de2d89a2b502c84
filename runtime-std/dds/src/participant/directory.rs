//! The directory of topics that are created and deleted at run time (DDS-1).
//!
//! # Invariants
//! - The directory depends only on the order of discovery, so all participants have the same
//!   directory at the same position of that order.
//! - A place is held by one topic at a time: from the position of its creation in the order to the
//!   position of the message that a view has closed the place.
//! - A generation is unique to a topic: a topic that is deleted and re-created gets another
//!   generation.

use serde::{Deserialize, Serialize};

use crate::domain::{TopicDescription, TopicPlaces};

/// A topic created at run time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeldPlace {
    pub(crate) topic: TopicDescription,
    pub(crate) generation: u64,
    /// The view in which the topic was created. Only messages of later views belong to the topic.
    pub(crate) created_in: u64,
    /// The participant that created the topic.
    pub(crate) creator: u32,
    /// Whether the topic has been deleted, although no view has closed its place yet.
    pub(crate) ends: bool,
}

/// The reason that a topic is not created or deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TopicRefusal {
    #[error(
        "topic \"{name}\" already exists, but differs in {fields}; use a different name, or the \
         same description"
    )]
    Differs { name: String, fields: String },
    #[error("topic \"{0}\" is being deleted; try again")]
    Ends(String),
    #[error(
        "no place is free for topic \"{name}\" with level {level} and its window, sample_max and \
         clients; delete a topic, or add places to the domain's description"
    )]
    NoPlace { name: String, level: &'static str },
    #[error(
        "topic \"{0}\" is declared in the domain description, so it cannot be deleted at run time; \
         remove it from the description instead"
    )]
    Declared(String),
    #[error("there is no topic \"{0}\"; check the name")]
    Unknown(String),
}

/// A topic, and whether this call created it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Created {
    /// The topic's index: that of a topic in the description, or of a place, which come after
    /// those.
    pub(crate) index: usize,
    pub(crate) generation: u64,
    pub(crate) is_new: bool,
}

/// The next step that a place needs from the participant that keeps the places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Request a view in which the place is open.
    Open,
    /// Request a view in which the place is closed.
    Close,
    /// Send a message in the order: the topic with this generation has been removed, and its place
    /// is free.
    Free(u64),
}

/// The directory of created topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Directory {
    declared: Vec<TopicDescription>,
    places: Vec<TopicPlaces>,
    held: Vec<Option<HeldPlace>>,
    /// Number of topics created so far.
    generations: u64,
}

/// The state that a joining participant receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DirectoryState {
    held: Vec<Option<HeldPlace>>,
    generations: u64,
}

impl Directory {
    pub(crate) fn new(declared: Vec<TopicDescription>, places: Vec<TopicPlaces>) -> Self {
        let held = places.iter().map(|_| None).collect();
        Self { declared, places, held, generations: 0 }
    }

    /// Creates a topic for a participant in this view. If a topic with the same description exists,
    /// returns that topic.
    pub(crate) fn create(
        &mut self,
        creator: u32,
        created_in: u64,
        topic: TopicDescription,
    ) -> Result<Created, TopicRefusal> {
        if let Some((index, there, generation, ends)) = self.named(&topic.name) {
            if ends {
                return Err(TopicRefusal::Ends(topic.name));
            }
            let fields = there.differing(&topic);
            if !fields.is_empty() {
                return Err(TopicRefusal::Differs { name: topic.name, fields: fields.join(", ") });
            }
            return Ok(Created { index, generation, is_new: false });
        }
        let fits = |(held, place): (&Option<HeldPlace>, &TopicPlaces)| {
            held.is_none() && place.fits(&topic)
        };
        let Some(place) = self.held.iter().zip(&self.places).position(fits) else {
            return Err(TopicRefusal::NoPlace { name: topic.name, level: topic.level.name() });
        };
        self.generations += 1;
        let generation = self.generations;
        if let Some(held) = self.held.get_mut(place) {
            *held = Some(HeldPlace { topic, generation, created_in, creator, ends: false });
        }
        Ok(Created { index: self.declared.len() + place, generation, is_new: true })
    }

    /// Deletes a topic for a participant, and returns its index and generation. From then on, the
    /// topic cannot be written. Its place is free after a view has closed it.
    pub(crate) fn delete(&mut self, name: &str) -> Result<(usize, u64), TopicRefusal> {
        match self.named(name) {
            None => Err(TopicRefusal::Unknown(name.to_owned())),
            Some((_, _, 0, _)) => Err(TopicRefusal::Declared(name.to_owned())),
            Some((_, _, _, true)) => Err(TopicRefusal::Ends(name.to_owned())),
            Some((index, _, generation, false)) => {
                let place = index - self.declared.len();
                if let Some(Some(held)) = self.held.get_mut(place) {
                    held.ends = true;
                }
                Ok((index, generation))
            }
        }
    }

    /// Frees the place of a deleted topic. Returns whether the place was held until now, because
    /// the message may come twice.
    pub(crate) fn free(&mut self, generation: u64) -> bool {
        let is_it = |held: &&mut Option<HeldPlace>| {
            held.as_ref().is_some_and(|held| held.generation == generation && held.ends)
        };
        match self.held.iter_mut().find(is_it) {
            Some(held) => held.take().is_some(),
            None => false,
        }
    }

    /// Finds a topic by name: its index, its generation (0 if it is declared), and whether it is
    /// being deleted.
    fn named(&self, name: &str) -> Option<(usize, &TopicDescription, u64, bool)> {
        if let Some(index) = self.declared.iter().position(|topic| topic.name == name) {
            return Some((index, self.declared.get(index)?, 0, false));
        }
        let is_it =
            |held: &Option<HeldPlace>| held.as_ref().is_some_and(|of| of.topic.name == name);
        let place = self.held.iter().position(is_it)?;
        let held = self.held.get(place)?.as_ref()?;
        Some((self.declared.len() + place, &held.topic, held.generation, held.ends))
    }

    /// Finds a topic by name, unless it is being deleted: its index, generation and description.
    pub(crate) fn find(&self, name: &str) -> Option<(usize, u64, &TopicDescription)> {
        let (index, topic, generation, ends) = self.named(name)?;
        (!ends).then_some((index, generation, topic))
    }

    /// Returns the topic with this index and generation, even if it is being deleted.
    pub(crate) fn topic(&self, index: usize, generation: u64) -> Option<&TopicDescription> {
        match index.checked_sub(self.declared.len()) {
            None => self.declared.get(index).filter(|_| generation == 0),
            Some(place) => {
                let held = self.held.get(place)?.as_ref()?;
                (held.generation == generation).then_some(&held.topic)
            }
        }
    }

    /// Returns whether the topic with this index and generation exists and is not being deleted.
    pub(crate) fn is_written(&self, index: usize, generation: u64) -> bool {
        match self.place_of(index) {
            None => self.topic(index, generation).is_some(),
            Some(place) => self
                .held
                .get(place)
                .and_then(Option::as_ref)
                .is_some_and(|held| held.generation == generation && !held.ends),
        }
    }

    /// Returns all topics that are not being deleted: those of the description, then those created
    /// at run time.
    pub(crate) fn topics(&self) -> impl Iterator<Item = &TopicDescription> {
        let held = self.held.iter().flatten().filter(|held| !held.ends);
        self.declared.iter().chain(held.map(|held| &held.topic))
    }

    /// Returns the places that are held, by number.
    pub(crate) fn held(&self) -> impl Iterator<Item = (usize, &HeldPlace)> {
        self.held.iter().enumerate().filter_map(|(place, held)| Some((place, held.as_ref()?)))
    }

    /// Returns the number of places.
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    /// Returns the index of the topic that has a place.
    pub(crate) fn index_of(&self, place: usize) -> usize {
        self.declared.len() + place
    }

    /// Returns the place that has an index, unless the index belongs to the description's topics.
    pub(crate) fn place_of(&self, index: usize) -> Option<usize> {
        index.checked_sub(self.declared.len()).filter(|place| *place < self.places.len())
    }

    /// Returns the next step that a place needs, given whether it is open in the view. `is_asked`
    /// means that a view that opens the place has been requested and may still come.
    pub(crate) fn due(&self, place: usize, is_open: bool, is_asked: bool) -> Option<Due> {
        match self.held.get(place)? {
            None => is_open.then_some(Due::Close),
            Some(held) if !held.ends => (!is_open).then_some(Due::Open),
            Some(_) if is_open => Some(Due::Close),
            Some(held) => (!is_asked).then_some(Due::Free(held.generation)),
        }
    }

    /// Returns the state for a joining participant.
    pub(crate) fn state(&self) -> DirectoryState {
        DirectoryState { held: self.held.clone(), generations: self.generations }
    }

    /// Returns the state of a new domain: no place has a topic.
    pub(crate) fn first_state(&self) -> DirectoryState {
        DirectoryState { held: self.places.iter().map(|_| None).collect(), generations: 0 }
    }

    /// Restores a participant's state. Returns `false` if that state has a different number of
    /// places.
    #[must_use]
    pub(crate) fn restore(&mut self, state: DirectoryState) -> bool {
        let fits = state.held.len() == self.places.len();
        if fits {
            (self.held, self.generations) = (state.held, state.generations);
        }
        fits
    }
}

#[cfg(test)]
mod tests;
