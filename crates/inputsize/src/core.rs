//! The algorithm that the instrumented program runs.
//!
//! [`thread`] holds what each thread does alone, [`coherence`] what threads do to each other, [`shadow`] where
//! both keep stamps, [`stack`] the pending activations. [`replay`] runs traces through them. Why it is right:
//! `docs/input-size.md`.
//!
//! # What a host emits
//! Per thread, reachable from `gs`: `SSP` (address of the top [`stack::Frame`]), `CALLER` (stamp of the frame
//! below, in both halves), `COUNTER`, `LOG`, `LOG_END`, `MASK`, `MARKS` (base of the marks), `ME` (the own mark in
//! all 8 bytes), `COLD` (address of the youngest frame with rare facts), and the stamps at displacement `D`.
//! Registers: `T` the top stamp in both halves, `S` and `X` scratch, `K` the top frame's `own`, `C` the cost.
//! `K` is worth a register: with `own` in the frame, sqlite3 ran a fifth slower.
//!
//! ## Read of one cell (any metric)
//! ```text
//!     lea   S, [operand]
//!     pext  S, S, gs:[MASK]
//!     cmp   dword gs:[S*4+D], Td
//!     jb    cold
//! back:
//! cold:                                   ; out of line
//!     mov   Xd, gs:[S*4+D]                ; the cell's stamp
//!     mov   gs:[S*4+D], Td
//!     inc   K
//!     cmp   Xd, gs:[CALLER]
//!     jae   back                          ; near: done
//!     call  far_1                         ; in: X = stamp, S = cell index; under trms only
//!     jmp   back                          ;     for X = 0 does it need more than the stack
//! ```
//! ## Read of two cells (aligned 8 bytes; 16 bytes as two of them)
//! ```text
//!     cmp   qword gs:[S*4+D], T
//!     jne   cold
//! cold:
//!     mov   X, gs:[S*4+D]
//!     mov   gs:[S*4+D], T
//!     rorx  R, X, 32                      ; R: one more scratch, or S where far_2 need not know the cell
//!     cmp   R, X
//!     jne   mixed                         ; 1 in 500: the halves one by one, out of line
//!     cmp   X, T
//!     jae   back                          ; touched by a callee since: no first read
//!     add   K, 2
//!     cmp   X, gs:[CALLER]
//!     jae   back
//!     call  far_2
//!     jmp   back
//! ```
//! `far_n` is [`stack::Stack::far_read`]: `caller.far += n`; unless X = 0, walk down from the caller's caller to
//! the first frame with `stamp <= X`, `far -= n` there. Under trms, X = 0 goes on to
//! [`coherence::before_first_stamp`] for each cell (a call into Rust; it may use all registers the host
//! saved). The stamp may be stored before: nothing else looks at a thread's own stamps.
//!
//! ## Write of n cells, n = 1, 2, 4, 8
//! ```text
//!     mov   X, gs:[MARKS]                 ; trms and both only, these four
//!     mov   X.n, [X+S]                    ; n bytes
//!     cmp   X.n, gs:[ME]
//!     jne   slow                          ; before_foreign_write for each cell whose mark is not ME
//!     mov   gs:[S*4+D], T                 ; 4n bytes in stores of 8
//! ```
//! A read-modify-write is a read, then the four instructions of the write; its stamp is stored already.
//! For slots from [`shadow::Mark::SLOTS`] on set `ME` to a value that no mark has (0xfd): always slow.
//!
//! ## Call and return, beside what the host does for itself
//! ```text
//! call: mov gs:[SSP]->own, K          ret:  X = gs:[LOG]; S = gs:[SSP]
//!       gs:[CALLER] = T                     K += S->far;  [X+8] = K                  ; size
//!       T = gs:[COUNTER] += 1:1             [X] = S->routine | T << 32
//!       carry (or limit): renumber          [X+16] = C - S->entered                  ; cost
//!       S += frame                          caller->callees += that
//!       S->stamp = T, routine,              [X+24] = that - S->callees               ; self
//!       entered = C, far = 0,               caller->far += S->far
//!       callees = 0                         cmp S, gs:[COLD]; je rare                ; before the base entry
//!       K = 0                               X += 32; cmp X, gs:[LOG_END]; jae full
//!                                           K = caller->own, T = caller->stamp,
//!                                           gs:[CALLER] = caller's caller's stamp (1:1 for the root)
//! ```
//! Only `far` must be zeroed on a call; `own` is saved there by the caller's own calls, `cold` never touched.
//! `full` hands the words to [`crate::ingest::Ingest::add`], `rare` writes the rare part first.
//!
//! # What must never happen
//! - A stamp of one thread compared with one of another.
//! - An exclusive mark while another thread holds a stamp of the cell.
//! - A record in the buffer across a renumbering.

pub mod coherence;
pub mod replay;
pub mod shadow;
pub mod stack;
pub mod thread;
