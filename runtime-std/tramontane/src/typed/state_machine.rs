//! The program's side of a replicated state machine.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value that commands change, of which every member of a group has a copy.
///
/// The value itself is the state: serde encodes it for joining nodes and for logs. All members must
/// start with equal values.
///
/// # What is required
/// - [`apply`](StateMachine::apply) must be deterministic: equal states and equal commands give
///   equal states at all members. So it must not read the clock, random numbers, or the order of a
///   `HashMap`; a proposer reads these, and puts the result into the command.
/// - `apply` must end within the group's failure timeout, and so must encoding the state.
///   Otherwise, the other members remove this one.
/// - `apply` may run in a thread that waits for an answer, so a thread must not wait with a lock
///   that `apply` takes.
/// - A panic in `apply` ends the member. Because the other members apply the same command, it
///   probably ends them too: return an error as the answer instead.
///
/// # Versions
/// Commands and states travel in the format of the crate `postcard`, behind a byte with the version
/// of this layer's own format. In that format, all members must have the same types. Variants may
/// be added at the end of an enum once all members run a program that knows them. A member that
/// cannot decode a command ends with a line that names the sender.
pub trait StateMachine: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// A change to the state. Commands travel to all members.
    type Command: Serialize + DeserializeOwned;

    /// The result of a command, for the member that proposed it. Answers do not travel.
    type Answer: Send + 'static;

    /// Applies a command, and returns its answer.
    fn apply(&mut self, command: Self::Command) -> Self::Answer;
}
