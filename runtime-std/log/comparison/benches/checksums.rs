//! Checksums of a record: what each library needs for 100 B, 1 KB and 10 KB.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn checksums(criterion: &mut Criterion) {
    let mut bench = criterion.benchmark_group("checksum");
    for size in [100, 1000, 10_000] {
        let bytes = vec![0x5a_u8; size];
        bench.throughput(Throughput::Bytes(size as u64));
        bench.bench_with_input(BenchmarkId::new("crc32c", size), &bytes, |bench, bytes| {
            bench.iter(|| crc32c::crc32c(black_box(bytes)));
        });
        bench.bench_with_input(BenchmarkId::new("crc-fast, 64 bits", size), &bytes, |bench, bytes| {
            let algorithm = crc_fast::CrcAlgorithm::Crc64Nvme;
            bench.iter(|| crc_fast::checksum(algorithm, black_box(bytes)));
        });
        bench.bench_with_input(BenchmarkId::new("xxh3, 64 bits", size), &bytes, |bench, bytes| {
            bench.iter(|| xxhash_rust::xxh3::xxh3_64_with_seed(black_box(bytes), 7));
        });
    }
    bench.finish();
}

criterion_group!(benches, checksums);
criterion_main!(benches);
