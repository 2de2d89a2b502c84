//! Total restart (DUR-6): the disks at the time when all members die, and the state with which a
//! group continues.
//!
//! | file | contents |
//! |---|---|
//! | `answers` | answers of nodes, in owned form |
//! | `named` | the counterexamples of DUR-6 and DUR-7, and others |
//! | `naive` | the verdict compared with a slow and simple model |
//! | `disks` | the disks of a view's members when all of them die |
//! | `changed` | disks that changed after the deaths |
//! | `group` | a group that restarts: attempts, deaths during them, and the conditions that hold |
//! | `search` | every state of the disks, and every order of restarts |

mod answers;
mod changed;
mod disks;
mod group;
mod naive;
mod named;
mod search;
