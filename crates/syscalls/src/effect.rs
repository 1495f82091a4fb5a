//! The vocabulary of the table: what an argument points to and how long it is. Arguments are numbered from 0.

/// A length, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Len {
    /// A structure of fixed size.
    Bytes(u64),
    /// The value of an argument.
    Arg(usize),
    /// An argument times an element size.
    ArgTimes(usize, u64),
    /// The result.
    Result,
    /// The result, but at most the value of an argument (a result may tell the needed size instead).
    ResultMax(usize),
    /// The result times an element size.
    ResultTimes(u64),
    /// The 32-bit value at the address in an argument, after the call.
    At(usize),
    /// An argument and some bytes more.
    ArgPlus(usize, u64),
    /// The result and some bytes more.
    ResultPlus(u64),
    /// A structure, if the result is above 0.
    BytesIfResult(u64),
    /// The result times an element size, unless the argument is 0.
    ResultTimesUnless(usize, u64),
    /// The 32-bit value at an offset in the structure itself, and some bytes more.
    OwnSize(u64, u64),
    /// A bitmap of one bit less than the argument says, in whole words (node masks).
    Bits(usize),
    /// Bits for as many descriptors as an argument says, in whole words.
    FdSet(usize),
    /// One byte for each page of the length in an argument.
    PerPage(usize),
}

/// One thing that a call does to memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    /// Reads the NUL-terminated string at the argument.
    Str(usize),
    /// Reads.
    In(usize, Len),
    /// Writes, on success.
    Out(usize, Len),
    /// Reads, and writes on success.
    InOut(usize, Len),
    /// Writes even when it fails.
    OutAlways(usize, Len),
    /// Writes only when it fails: what is left of a time that was cut short.
    OutFailed(usize, Len),
    /// Reads an array of `iovec` (address, count in arguments) and, of what they point to, the result's number of bytes.
    Gather(usize, usize),
    /// Reads an array of `iovec` and writes the result's number of bytes to what they point to.
    Scatter(usize, usize),
    /// Reads the `iovec`s alone (they describe another process's memory, or nothing is known of the length).
    Vectors(usize, usize),
    /// A socket address that the kernel writes, with the pointer to its length.
    Address(usize, usize),
    /// `msghdr` to send.
    Send(usize),
    /// `msghdr` received into.
    Receive(usize),
    /// Array of `mmsghdr` to send; the result says how many were.
    SendMany(usize),
    /// Array of `mmsghdr` received into.
    ReceiveMany(usize),
    /// Array of `pollfd` (address, count): all read, `revents` written.
    Poll(usize, usize),
    /// NULL-terminated array of strings.
    Strings(usize),
    /// Meaning depends on another argument: see the module of that name.
    Ioctl,
    Fcntl,
    Prctl,
    ArchPrctl,
    Futex,
    FutexWaitv,
    Clone,
    Clone3,
    Semctl,
    Shmctl,
    Msgctl,
    Ptrace,
    Seccomp,
    IoSubmit,
    IoGetevents,
    Keyctl,
    Quotactl(usize, usize),
    /// A pointer to a signal set and its size.
    SigsetArgument(usize),
    /// `xattr_args`: whether the kernel writes to the value.
    XattrArgs(usize, bool),
}
