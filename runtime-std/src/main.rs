//! The program `tramontane`: see [`tramontane_runtime::cli`].

fn main() -> std::process::ExitCode {
    tramontane_runtime::cli::main()
}
