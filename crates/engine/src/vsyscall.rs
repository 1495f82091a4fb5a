//! The vsyscall page: three system calls at fixed addresses, which old static programs call.
//!
//! The page can be executed and not read, and the kernel emulates it; so does the engine, where control arrives. What is
//! counted is the call alone.

use crate::appmem;
use crate::kernel::gpr;
use crate::state::ThreadState;
use crate::sys::{self, nr};

const PAGE: u64 = 0xffff_ffff_ff60_0000;

/// If `pc` is one of the three, makes the call and says where it returns to.
pub(crate) fn call(st: &mut ThreadState, pc: u64) -> Option<u64> {
    let n = match pc.wrapping_sub(PAGE) {
        0 => nr::GETTIMEOFDAY,
        0x400 => nr::TIME,
        0x800 => nr::GETCPU,
        _ => return None,
    };
    let back = appmem::read::<u64>(st.gpr[gpr::RSP])?;
    let a = [st.gpr[gpr::RDI], st.gpr[gpr::RSI], st.gpr[gpr::RDX], 0, 0, 0];
    // SAFETY: the program's own call, whose pointers the kernel checks.
    st.gpr[gpr::RAX] = unsafe { sys::call(n, a) } as u64;
    st.gpr[gpr::RSP] += 8;
    Some(back)
}
