//! The program `tramontane-redis`: see [`tramontane_redis`].

fn main() -> std::process::ExitCode {
    tramontane_local::program::main::<tramontane_redis::RedisCommand>()
}
