//! Total restart (DUR-6): what is on disk when all members die, and what a group goes on with.
//!
//! | file | what it holds |
//! |---|---|
//! | `answers` | nodes that answer, in owned form |
//! | `named` | the counterexamples that DUR-6 and DUR-7 give, and others |
//! | `naive` | the verdict against a model that is slow and plain |
//! | `disks` | what the members of a view have on disk when all of them die |
//! | `changed` | disks that come back other than they were |
//! | `group` | a group that restarts: attempts, deaths in the middle of them, and what must hold |
//! | `search` | every such disk, every order of restarts |

mod answers;
mod changed;
mod disks;
mod group;
mod naive;
mod named;
mod search;
