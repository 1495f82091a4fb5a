//! Reports of aprof, the first input-sensitive profiler (Coppa, Demetrescu, Finocchi, PLDI 2012): version 6.
//!
//! A run is a set of text files, one per thread, named `<program>_<pid>_<tid>_<resolution>.aprof`:
//! ```text
//! c TEXT                              comment
//! v 6                                 version of the report
//! k COST                              cost of the thread
//! e SECONDS                           modification time of the executable
//! m bb-count | time-usec | vex-instr  meaning of costs (bb_count in what the viewer writes)
//! i rms | drms                        meaning of sizes; drms is what we call trms
//! t BYTES                             bytes per memory cell
//! a PATH                              executable
//! f COMMAND                           command line, joined with blanks
//! r "NAME" "OBJECT" RID               routine; quotes inside are not escaped; ids hold for one file
//! u RID "NAME"                        its linker name, if that differs
//! p RID POINT                         point of a routine
//! q CONTEXT POINT                     point of a calling context, below the `r` line of its routine
//! x RID CONTEXT PARENT | -1           calling context
//! fav NAME...                         written by the viewer
//!
//! POINT := n min max sum sumsq calls realsum selfsum selfmin selfmax selfsumsq
//!          [0 0 external thread-induced self-external self-thread-induced]      drms
//! ```
//! Lines come in any order but the stated one. [`import`] adds up calling contexts; [`export`] writes what the
//! format can hold. It cannot hold addresses, source lines, build ids, how the program ended, times, arguments with
//! blanks, line breaks in names, an object whose name contains `" "`, or that nothing is known of threads.

mod export;
mod import;
mod name;
mod problems;
mod report;
mod squares;

pub use export::{ExportError, Report, export};
pub use import::{ImportError, Source, import};
