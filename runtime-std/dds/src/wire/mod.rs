//! The content of the group's messages.
//!
//! | file | subject |
//! |---|---|
//! | `header` | the header before each sample |
//! | `announcement` | announcements of writers and readers |

mod announcement;
mod header;

pub(crate) use announcement::{
    ANNOUNCEMENT_MAX, ReaderAnnouncement, USER_DATA_MAX, Word, decode_writer, encode_writer,
};
pub use header::Origin;
pub(crate) use header::{HEADER_BYTES, HEADER_MAX, Header, Kind, say_begun};
