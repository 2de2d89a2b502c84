//! Prints the expected output of the logging image, formatted by `Debug` on a host.

fn main() {
    macro_rules! say {
        ($value:expr) => {
            println!("{:?}", $value)
        };
    }
    tramontane_bare_workload::each_value!(say);
}
