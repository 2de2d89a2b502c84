//! The program `tramontane-conformance`: see [`tramontane_conformance::cli`].

fn main() -> std::process::ExitCode {
    tramontane_conformance::cli::main()
}
