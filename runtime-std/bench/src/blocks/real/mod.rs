//! Block groups of real processes of this machine, over shared memory, TCP or RDMA, in turn with
//! what the machine can do.
//!
//! | file | what it holds |
//! |---|---|
//! | `cases` | the configurations that are asked for |
//! | `case` | a round of one, and what its rounds came to |
//! | `run` | all rounds of all configurations |
//! | `task` | what a process is to do, and what it saw |
//! | `member` | one process of block groups, and what is timed |
//! | `receiving`, `completions` | what a receiver gets, and when; what the root knows of it |
//! | `pause` | a member that is delayed |
//! | `limit`, `method` | the machine's limit: copies at each receiver, or bytes read where they lie |
//! | `mark` | the marks of a message |
//! | `report`, `drawing` | rows as text and JSON, and as a drawing |

mod case;
pub(crate) mod cases;
mod completions;
mod drawing;
pub(crate) mod limit;
mod mark;
mod member;
pub(crate) mod method;
mod pause;
mod receiving;
mod report;
pub(crate) mod run;
pub(crate) mod task;
