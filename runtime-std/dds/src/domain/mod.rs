//! Domains and their topics, as files and programs describe them.
//!
//! | file | subject |
//! |---|---|
//! | `level` | promises of a topic |
//! | `topic_description` | a topic, and the subgroup that carries it |
//! | `topic_places` | places for topics created at run time |
//! | `description` | a domain, and the group that carries it |

mod description;
mod level;
mod topic_description;
mod topic_places;

pub(crate) use description::DISCOVERY;
pub use description::Domain;
pub use level::Level;
pub use topic_description::{SAMPLE_MAX_DEFAULT, TopicDescription};
pub use topic_places::TopicPlaces;
