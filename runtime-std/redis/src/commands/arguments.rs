//! The shape of every command.

use crate::refusal::CommandRefusal;

/// The arguments of a request, without the name of its command.
pub(super) type Arguments<'a> = [&'a [u8]];

/// The outcome of a command: it has added its reply, or there is a reason not to execute it.
pub(super) type Executed = Result<(), CommandRefusal>;
