//! The program `tramontane-redis`: a replicated server that Redis clients talk to.
//!
//! A node is a member of a group whose state machine is a set of keys. It reads the requests of its
//! clients, sends everything that it read at once through the group's order as one command, and
//! answers each request with what applying it at this member returned.
//!
//! | file | subject |
//! |---|---|
//! | `options`, `node` | the command line; a node from its start to its end |
//! | `service`, `slots`, `wakeup`, `inbox` | a thread with connections, its connections, and what other threads tell it |
//! | `connection`, `session`, `requests` | one client: its bytes, its state, what it asks for |
//! | `surroundings`, `facts`, `limits` | what requests need of their thread; facts for INFO; limits |
//! | `local_commands` | commands that concern the connection or the server |
//! | `outgoing`, `paced`, `batch` | requests on their way to the group, slow ones, and their encoding |
//! | `machine`, `process` | the state machine, and what it knows of its process |
//! | `keyspace`, `value`, `sorted_set`, `text` | the keys and their values |
//! | `table`, `commands` | the commands' names and numbers, and what they do |
//! | `subscriptions`, `pattern` | who receives published messages; patterns of names |
//! | `protocol`, `refusal` | requests, replies and errors as bytes |
//! | `numbers`, `long_double` | numbers as text; the sums of INCRBYFLOAT |

mod batch;
mod commands;
mod connection;
mod facts;
mod inbox;
mod keyspace;
mod limits;
mod local_commands;
mod long_double;
mod machine;
#[cfg(test)]
mod model_tests;
mod node;
mod numbers;
mod options;
mod outgoing;
mod paced;
mod pattern;
mod process;
mod protocol;
mod refusal;
mod requests;
mod service;
mod session;
mod slots;
mod sorted_set;
mod subscriptions;
mod surroundings;
mod table;
mod text;
mod value;
mod wakeup;

pub use options::RedisCommand;

use tramontane_local::exit::Failure;
use tramontane_local::program::{LogOptions, Program};

impl Program for RedisCommand {
    const NAME: &'static str = "tramontane-redis";

    fn log(&self) -> LogOptions {
        self.log
    }

    fn run(&self) -> Result<(), Failure> {
        node::run(self)
    }
}
