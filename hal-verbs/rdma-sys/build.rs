//! Takes the lists of structures, numbers and functions out of the fabric's source, so that this
//! package can read each list with a macro of its own.

use std::path::Path;

/// Fields whose names differ in rdma-sys, which names the unions of C.
const RENAMED: [(&str, &str); 5] = [
    (
        "        imm_data: u32,\n        qp_num",
        "        imm_data_invalidated_rkey_union: u32,\n        qp_num",
    ),
    (
        "        imm_data: u32,\n        wr:",
        "        imm_data_invalidated_rkey_union: u32,\n        wr:",
    ),
    ("        bind_mw: [u64; 6]", "        bind_mw_tso_union: [u64; 6]"),
    // The library exports these with the structures of its first version.
    ("attributes: *mut ibv_port_attr", "attributes: *mut _compat_ibv_port_attr"),
    ("later \"IBVERBS_1.14\" fn", "\"IBVERBS_1.14\" fn"),
];

fn main() {
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    for list in ["structures", "numbers", "functions"] {
        let path = format!("../src/ffi/libibverbs/{list}.rs");
        println!("cargo::rerun-if-changed={path}");
        let source = std::fs::read_to_string(&path).expect("the fabric's source");
        let begin = source.find(&format!("\n{list}! {{")).expect("the list begins");
        let length = source[begin..].find("\n}\n").expect("the list ends") + 3;
        let mut text = source[begin..begin + length].to_owned();
        for (ours, theirs) in RENAMED {
            text = text.replace(ours, theirs);
        }
        std::fs::write(Path::new(&out).join(format!("{list}.rs")), text).expect("written");
    }
}
