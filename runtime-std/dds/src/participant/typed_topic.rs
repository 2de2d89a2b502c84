//! A topic as a program has it: with the type of its samples.

use std::marker::PhantomData;

use crate::cdr::TypeSupport;
use crate::domain::TopicDescription;
use crate::error::DdsError;

/// A topic of the domain, with its type.
#[derive(Debug)]
pub struct Topic<T> {
    pub(super) index: usize,
    pub(super) generation: u64,
    pub(super) name: String,
    pub(super) sample: PhantomData<fn() -> T>,
}

/// Refuses a type that is not the topic's: DDS's inconsistent topic.
pub(super) fn check_type<T: TypeSupport>(described: &TopicDescription) -> Result<(), DdsError> {
    if described.type_name == T::TYPE_NAME {
        return Ok(());
    }
    Err(DdsError::PreconditionNotMet(format!(
        "topic \"{}\" has the type {}, but this program expects {}; correct one of them",
        described.name,
        described.type_name,
        T::TYPE_NAME
    )))
}
