//! Telling the collector which modules there are, as they are met.
//!
//! Samples name a module by its serial. When one with a new serial is met, all modules that are not in the
//! shared list yet are added. One thread does this at a time; another that comes meanwhile leaves it to a later
//! sample.

use crate::{ARENA, header};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use sampler::module;
use wire::idle::{Module, NO_SERIAL};

static PUBLISHED: AtomicU32 = AtomicU32::new(0);
static BUSY: AtomicBool = AtomicBool::new(false);

/// A walk met modules up to this serial.
#[inline]
pub fn modules(serial: u16) {
    if serial < NO_SERIAL && u32::from(serial) >= PUBLISHED.load(Relaxed) {
        publish();
    }
}

/// In a forked child: nothing has been told yet.
pub fn forked() {
    PUBLISHED.store(0, Relaxed);
    BUSY.store(false, Relaxed);
}

#[cold]
#[inline(never)]
fn publish() {
    if BUSY.swap(true, Acquire) {
        return;
    }
    let done = PUBLISHED.load(Relaxed);
    let mut most = done;
    module::for_each(|module| {
        let serial = u32::from(module.serial());
        if serial >= done && module.serial() < NO_SERIAL && add(module) {
            most = most.max(serial + 1);
        }
    });
    PUBLISHED.store(most, Relaxed);
    BUSY.store(false, Release);
}

fn add(module: &module::Module) -> bool {
    let Some(memory) = ARENA.take_array::<Module>(1) else { return false };
    let mut path = [0; 256];
    for (to, &from) in path.iter_mut().zip(module.path()) {
        *to = from;
    }
    // SAFETY: fresh memory of the right size and alignment; the header stays mapped.
    let head = unsafe {
        let head = AtomicU64::from_ptr(&raw mut (*header()).modules);
        memory.write(Module {
            next: head.load(Relaxed),
            serial: module.serial().into(),
            path_len: module.path().len().min(path.len()) as u32,
            bias: module.bias as u64,
            start: module.start as u64,
            end: module.end as u64,
            path,
        });
        head
    };
    head.store(ARENA.offset_of(memory), Release);
    true
}
