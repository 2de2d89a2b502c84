//! The program `tramontane-copy`: see [`tramontane_copy`].

fn main() -> std::process::ExitCode {
    tramontane_local::program::main::<tramontane_copy::CopyCommand>()
}
