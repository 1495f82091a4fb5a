//! Numbers that are easy to confuse, each with a type of its own.
//!
//! An instruction has three numbers: where the ELF file says it lies ([`ObjectAddr`]), at which byte of that
//! file it is stored ([`FileOffset`]), and where the running process had it ([`ProcessAddr`]). They differ by
//! the load bias and by how the linker laid out the segments; with lld `address - offset` is not even the
//! same for all segments of one file. Nothing here converts between them: only [`crate::Segments`] and
//! [`crate::ProcessMap`] know how.

use std::fmt;

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u64);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }
    };
}

address! {
    /// An address as the ELF file states it (`p_vaddr`, `st_value`, DWARF), before any load bias.
    ObjectAddr
}

address! {
    /// A byte position in the ELF file.
    FileOffset
}

address! {
    /// An address in a running process.
    ProcessAddr
}

/// When a mapping was there: any counter that never decreases in one process (a sequence number, a time in
/// nanoseconds). Addresses are reused after `dlclose`; an address alone does not say which object it meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Before everything.
    pub const START: Epoch = Epoch(0);
    /// After everything.
    pub const END: Epoch = Epoch(u64::MAX);
}

/// Addresses from `start` up to and without `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddrRange {
    /// First address.
    pub start: ObjectAddr,
    /// First address after it.
    pub end: ObjectAddr,
}

impl AddrRange {
    /// A range; empty when `end <= start`.
    pub fn new(start: u64, end: u64) -> Self {
        AddrRange { start: ObjectAddr(start), end: ObjectAddr(end) }
    }

    /// Whether the address is in it.
    pub fn contains(&self, addr: ObjectAddr) -> bool {
        self.start <= addr && addr < self.end
    }

    /// How many bytes.
    pub fn size_bytes(&self) -> u64 {
        self.end.0.saturating_sub(self.start.0)
    }
}
