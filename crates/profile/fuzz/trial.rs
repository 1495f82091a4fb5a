//! One execution of the reader on one hostile file, and what must hold.

use crate::meter;

/// The most that the reader may have allocated at one time, as a multiple of the file's length. A point takes 15
/// bytes of columns and 144 of memory, a routine 9 and about 300 with its place in the index of routines; columns
/// expand 16 times when compressed; vectors that grow may be twice as large as needed.
const BYTES_PER_BYTE_MAX: usize = 1100;
/// ... beyond a constant.
const BYTES_MAX: usize = 64 << 10;

/// What one execution did.
pub struct Outcome {
    /// The file was accepted as whole.
    pub accepted: bool,
    /// Runs that salvaging gave.
    pub salvaged: usize,
    /// Peak allocation in bytes.
    pub peak_bytes: usize,
}

/// Reads the file in both ways. Panics are failures; so are the assertions.
pub fn run(bytes: &[u8]) -> Outcome {
    let (read, strict) = meter::peak(|| profile::decode(bytes));
    let (salvaged, lenient) = meter::peak(|| profile::salvage(bytes));
    let peak_bytes = strict.max(lenient);
    assert!(
        peak_bytes <= BYTES_MAX + BYTES_PER_BYTE_MAX * bytes.len(),
        "a file of {} bytes made the reader allocate {peak_bytes}",
        bytes.len()
    );
    if let Ok(loaded) = &read {
        let again = profile::encode(&loaded.profile).expect("what was read can be written");
        assert_eq!(
            profile::decode(&again).expect("what was written can be read").profile,
            loaded.profile,
            "reading and writing changed the profile"
        );
        let salvaged = salvaged.as_ref().expect("a whole file can be salvaged");
        assert_eq!(salvaged.profile, loaded.profile, "salvaging a whole file gives all of it");
    }
    if let Ok(loaded) = &salvaged {
        for run in &loaded.profile.runs {
            let canonical = match &run.data {
                profile::Data::Growth(growth) => growth.validate(),
                profile::Data::Count(count) => count.validate(),
                _ => Ok(()),
            };
            canonical.expect("what was salvaged is in canonical form");
        }
    }
    Outcome {
        accepted: read.is_ok(),
        salvaged: salvaged.map_or(0, |loaded| loaded.profile.runs.len()),
        peak_bytes,
    }
}
