//! `ioctl`: most request numbers encode direction and size; the older ones are in a table.
//!
//! ```text
//! request  31..30 direction (1 = the kernel reads, 2 = it writes)  29..16 size  15..8 type  7..0 number
//! ```

use crate::visit::Visit;

/// What an old request does with its argument.
#[derive(Clone, Copy)]
enum Old {
    In(u64),
    Out(u64),
    InOut(u64),
}
use Old::{In, InOut, Out};

/// Requests without an encoded size, and those whose encoded size is a known lie. Sorted.
const WELL_KNOWN: &[(u32, Old)] = &[
    (0x0301, Out(16)),     // HDIO_GETGEO
    (0x125e, Out(4)),      // BLKROGET
    (0x1260, Out(8)),      // BLKGETSIZE
    (0x1263, Out(8)),      // BLKRAGET
    (0x1268, Out(4)),      // BLKSSZGET
    (0x5401, Out(36)),     // TCGETS
    (0x5402, In(36)),      // TCSETS
    (0x5403, In(36)),      // TCSETSW
    (0x5404, In(36)),      // TCSETSF
    (0x5405, Out(18)),     // TCGETA
    (0x5406, In(18)),      // TCSETA
    (0x5407, In(18)),      // TCSETAW
    (0x5408, In(18)),      // TCSETAF
    (0x540f, Out(4)),      // TIOCGPGRP
    (0x5410, In(4)),       // TIOCSPGRP
    (0x5411, Out(4)),      // TIOCOUTQ
    (0x5412, In(1)),       // TIOCSTI
    (0x5413, Out(8)),      // TIOCGWINSZ
    (0x5414, In(8)),       // TIOCSWINSZ
    (0x5415, Out(4)),      // TIOCMGET
    (0x5416, In(4)),       // TIOCMBIS
    (0x5417, In(4)),       // TIOCMBIC
    (0x5418, In(4)),       // TIOCMSET
    (0x5419, Out(4)),      // TIOCGSOFTCAR
    (0x541a, In(4)),       // TIOCSSOFTCAR
    (0x541b, Out(4)),      // FIONREAD
    (0x5421, In(4)),       // FIONBIO
    (0x5423, In(4)),       // TIOCSETD
    (0x5424, Out(4)),      // TIOCGETD
    (0x5429, Out(4)),      // TIOCGSID
    (0x5452, In(4)),       // FIOASYNC
    (0x5460, Out(8)),      // FIOQSIZE
    (0x8901, In(4)),       // FIOSETOWN
    (0x8902, In(4)),       // SIOCSPGRP
    (0x8903, Out(4)),      // FIOGETOWN
    (0x8904, Out(4)),      // SIOCGPGRP
    (0x8905, Out(4)),      // SIOCATMARK
    (0x8906, Out(16)),     // SIOCGSTAMP
    (0x8907, Out(16)),     // SIOCGSTAMPNS
    (0x8910, InOut(40)),   // SIOCGIFNAME
    (0x8913, InOut(40)),   // SIOCGIFFLAGS
    (0x8914, In(40)),      // SIOCSIFFLAGS
    (0x8915, InOut(40)),   // SIOCGIFADDR
    (0x8916, In(40)),      // SIOCSIFADDR
    (0x8917, InOut(40)),   // SIOCGIFDSTADDR
    (0x8919, InOut(40)),   // SIOCGIFBRDADDR
    (0x891b, InOut(40)),   // SIOCGIFNETMASK
    (0x891d, InOut(40)),   // SIOCGIFMETRIC
    (0x8921, InOut(40)),   // SIOCGIFMTU
    (0x8922, In(40)),      // SIOCSIFMTU
    (0x8927, InOut(40)),   // SIOCGIFHWADDR
    (0x8933, InOut(40)),   // SIOCGIFINDEX
    (0x8942, InOut(40)),   // SIOCGIFTXQLEN
    (0x4008_6602, In(4)),  // FS_IOC_SETFLAGS: an int, whatever the number says
    (0x8008_6601, Out(4)), // FS_IOC_GETFLAGS
    (0x8008_7601, Out(4)), // FS_IOC_GETVERSION
];

const SIOCGIFCONF: u32 = 0x8912;
const FS_IOC_FIEMAP: u32 = 0xc020_660b;

pub(crate) fn visit(v: &mut Visit) {
    let (request, arg) = (v.arg(1) as u32, v.arg(2));
    match request {
        SIOCGIFCONF => {
            // ifconf: length(4) 8 buffer; the length is then that of what was written
            v.read(arg, 16);
            v.write(arg, 4);
            if let (Some(len), Some(buffer)) = (v.peek_u32(arg), v.peek_u64(arg.wrapping_add(8))) {
                v.write(buffer, len.into());
            }
            return;
        }
        FS_IOC_FIEMAP => {
            // fiemap: 32 bytes, mapped extents at 20, room for them at 24, 56 bytes each
            v.read(arg, 32);
            v.write(arg, 32);
            let [mapped, room] = [20, 24].map(|o| v.peek_u32(arg.wrapping_add(o)).map_or(0, u64::from));
            v.write(arg.wrapping_add(32), mapped.min(room) * 56);
            return;
        }
        _ => {}
    }
    let effect = match WELL_KNOWN.binary_search_by_key(&request, |k| k.0) {
        Ok(found) => WELL_KNOWN[found].1,
        Err(_) => {
            let size = u64::from(request >> 16 & 0x3fff);
            match request >> 30 {
                1 => In(size),
                2 => Out(size),
                3 => InOut(size),
                _ => return,
            }
        }
    };
    match effect {
        In(n) => v.read(arg, n),
        Out(n) => v.write(arg, n),
        InOut(n) => {
            v.read(arg, n);
            v.write(arg, n);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sorted() {
        assert!(super::WELL_KNOWN.is_sorted_by_key(|k| k.0));
    }
}
