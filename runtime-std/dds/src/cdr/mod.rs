//! Sample types, and their encoding as CDR.
//!
//! | file | subject |
//! |---|---|
//! | `encoding` | conversion of values to CDR and back |
//! | `type_support` | requirements on a type; keys and their handles; bytes as a type |
//! | `plain` | types whose memory layout is their CDR |

mod encoding;
mod plain;
mod type_support;

pub(crate) use encoding::encode_in_place;
pub use encoding::{Encoding, decode, encode};
pub use plain::PlainType;
pub(crate) use plain::{is_plain, plain_ref};
pub(crate) use type_support::SEQUENCE_LENGTH_BYTES;
pub use type_support::{InstanceHandle, Octets, OctetsRef, TypeSupport};
