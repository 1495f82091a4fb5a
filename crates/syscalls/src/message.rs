//! Socket addresses and messages.
//!
//! ```text
//! msghdr   0 name   8 namelen(4)  16 iov  24 iovlen  32 control  40 controllen  48 flags(4)  56
//! mmsghdr  msghdr, 56 bytes received or sent (4)  64
//! ```

use crate::Access;
use crate::limits::ELEMENTS_MAX;
use crate::visit::Visit;

const HEADER_BYTES: u64 = 56;
const MANY_BYTES: u64 = 64;

/// A socket address written by the kernel: as many bytes as its length says afterwards, and the length itself.
pub(crate) fn address(v: &mut Visit, addr: u64, len_at: u64) {
    if addr == 0 || len_at == 0 {
        return;
    }
    v.read(len_at, 4);
    if let Some(len) = v.peek_u32(len_at) {
        v.write(addr, len.into());
        v.write(len_at, 4);
    }
}

/// `sendmsg`: header, name, control and `total` bytes of payload are read.
pub(crate) fn send(v: &mut Visit, header: u64, total: u64) {
    v.read(header, HEADER_BYTES);
    let Some((name, name_len, iov, iov_len, control, control_len)) = fields(v, header) else { return };
    v.read(name, name_len);
    v.read(control, control_len);
    v.vectors(iov, iov_len, Some((Access::Read, total)));
}

/// `recvmsg`: name and control as long as the header says afterwards, `total` bytes of payload, and the header's length
/// and flag fields are written.
pub(crate) fn receive(v: &mut Visit, header: u64, total: u64) {
    v.read(header, HEADER_BYTES);
    if !v.ok() {
        return;
    }
    let Some((name, name_len, iov, iov_len, control, control_len)) = fields(v, header) else { return };
    if name != 0 {
        v.write(name, name_len);
    }
    v.write(header + 8, 4);
    v.write(control, control_len);
    v.write(header + 40, 8);
    v.write(header + 48, 4);
    v.vectors(iov, iov_len, Some((Access::Write, total)));
}

/// `sendmmsg` and `recvmmsg`: as many as the result says, each with its own length.
pub(crate) fn many(v: &mut Visit, array: u64, receives: bool) {
    for i in 0..v.count().min(ELEMENTS_MAX) {
        let header = array.wrapping_add(i * MANY_BYTES);
        let total = v.peek_u32(header.wrapping_add(HEADER_BYTES)).map_or(0, u64::from);
        if receives {
            receive(v, header, total);
        } else {
            send(v, header, total);
        }
        v.write(header.wrapping_add(HEADER_BYTES), 4);
    }
}

type Fields = (u64, u64, u64, u64, u64, u64);

fn fields(v: &Visit, header: u64) -> Option<Fields> {
    let at = |offset| v.peek_u64(header.wrapping_add(offset));
    let name_len = v.peek_u32(header.wrapping_add(8))?;
    Some((at(0)?, name_len.into(), at(16)?, at(24)?, at(32)?, at(40)?))
}
