//! The program `tramontane`: see [`tramontane_cli`].

fn main() -> std::process::ExitCode {
    tramontane_cli::main()
}
