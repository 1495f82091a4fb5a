//! Seats: how the processes of a run that is followed find shared memory of their own.
//!
//! A preloaded runtime finds its memory through an environment variable. Where children are followed, the variable
//! stays in the environment and names this list instead (its value begins with [`LOBBY_MARK`]): whoever starts, or has
//! been forked, takes the next seat and opens the descriptor of the launcher that stands there. The launcher keeps some
//! seats ahead of those that were taken.
//!
//! ```text
//! launcher   fills seats[prepared], prepared += 1     …sees pid, serves that process
//! process    taken += 1, opens the seat's descriptor, writes its pid; calls += 1 and wakes, if its runtime calls
//! ```

use core::sync::atomic::AtomicU32;

/// First byte of the variable where it names a lobby.
pub const LOBBY_MARK: u8 = b'@';
/// Processes that can be followed in one run.
pub const SEATS_MAX: usize = 4096;

/// Memory for one process.
#[repr(C)]
#[derive(Debug)]
pub struct Seat {
    /// Descriptor of the launcher.
    pub descriptor: AtomicU32,
    /// Who sits here; 0 while nobody does.
    pub pid: AtomicU32,
}

/// The list, shared by all processes of a run.
#[repr(C)]
#[derive(Debug)]
pub struct Lobby {
    /// [`crate::VERSION`].
    pub version: AtomicU32,
    /// Seats that can be taken.
    pub prepared: AtomicU32,
    /// Seats that were.
    pub taken: AtomicU32,
    /// The launcher takes nobody any more.
    pub closed: AtomicU32,
    /// Processes that found no seat.
    pub refused: AtomicU32,
    /// Changes when somebody wants to be seen now; a futex that the launcher sleeps on.
    pub calls: AtomicU32,
    /// The seats.
    pub seats: [Seat; SEATS_MAX],
}

/// Length of the list.
pub const BYTES: usize = size_of::<Lobby>();
