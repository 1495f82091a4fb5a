//! Compressors: what they write must be identical, and must come back.

use super::{ROW, Real, Run};

/// Packs a text under the wrapper, or packs it natively and unpacks it under the wrapper.
macro_rules! rows {
    ($($tool:literal: $pack:literal $packs:tt, $unpacks:tt;)*) => {
        &[$(
            Real { name: concat!($tool, "-pack"), needs: &[$tool], setup: TEXT, run: Run::Command(&$packs), ..ROW },
            Real {
                name: concat!($tool, "-unpack"),
                needs: &[$tool],
                setup: concat!("seq 1 7 900000 > text; ", $pack, "; rm text"),
                run: Run::Command(&$unpacks),
                ..ROW
            },
        )*]
    };
}

const TEXT: &str = "awk 'BEGIN { x = 7; for (i = 0; i < 120000; i++) { x = (x * 1103515245 + 12345) % 2147483648; \
    print \"line \" x % 2003 \" of \" x % 31 } }' > text";

pub(super) const ROWS: &[Real] = rows! {
    "gzip": "gzip -9nk text" ["gzip", "-9nk", "text"], ["gzip", "-dk", "text.gz"];
    "bzip2": "bzip2 -9k text" ["bzip2", "-9k", "text"], ["bzip2", "-dk", "text.bz2"];
    "xz": "xz -6k -T2 text" ["xz", "-6k", "-T2", "text"], ["xz", "-dk", "text.xz"];
    "zstd": "zstd -q -12 -T2 text" ["zstd", "-q", "-12", "-T2", "text"], ["zstd", "-q", "-d", "text.zst"];
    "pigz": "pigz -9nk -p2 text" ["pigz", "-9nk", "-p2", "text"], ["pigz", "-dk", "text.gz"];
    "pbzip2": "pbzip2 -9k -p2 -q text" ["pbzip2", "-9k", "-p2", "-q", "text"], ["pbzip2", "-dk", "-p2", "-q", "text.bz2"];
};
