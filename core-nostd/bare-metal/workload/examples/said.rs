//! What the image that logs should have said, by `Debug` on a host.

fn main() {
    macro_rules! say {
        ($value:expr) => {
            println!("{:?}", $value)
        };
    }
    tramontane_bare_workload::each_value!(say);
}
