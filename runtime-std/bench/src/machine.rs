//! The machine that an experiment ran on.

/// Returns the processor model and the number of processors, as far as Linux reports them.
#[must_use]
pub fn machine() -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown processor", |(_, model)| model.trim());
    format!("{processors} x {model}")
}
