//! Sections: the independently checked pieces of a profile file.
//!
//! ```text
//! file     := header section* end-section
//! header   := magic (12)  major u16  minor u16  xxh3 of these 16 bytes u64
//! section  := marker (4)  kind u32  run (16)  part u32  flags u32
//!             stored-length u64  raw-length u64  xxh3 of the payload as stored u64
//!             xxh3 of these 56 bytes u64
//!             payload (stored-length bytes)
//! ```
//! Numbers are little-endian. The lengths are believed only after the header's own checksum was found right, so
//! a damaged length shows as damage and not as a truncated file. The marker lets a reader find the next section
//! after damage.
//!
//! A compressed payload may expand at most [`RATIO_MAX`] times. A writer whose payload would expand more pads it
//! with a skippable zstd frame. So what a file can make a reader allocate is bounded by the file's own length.

use xxhash_rust::xxh3::{Xxh3, xxh3_64};
use zstd::bulk::{Compressor, Decompressor};

use crate::error::{Place, WriteError};
use crate::run::{OpaqueSection, RunId};
use crate::varint::{Bad, Decode};

/// First bytes of every file. The line ends in the middle show transfers in text mode; the control character
/// keeps `cat` and editors from taking it for text.
pub const MAGIC: [u8; 12] = *b"\x89Farsight\r\n\x1a";
/// Version of the layout above: a reader refuses a larger one.
pub const MAJOR: u16 = 1;
/// Version of what sections hold: a larger one only adds section kinds, modes and fields.
pub const MINOR: u16 = 1;
/// Length of the file header.
pub const FILE_HEADER_LEN: usize = 24;
/// Length of a section header.
pub const HEADER_LEN: usize = 64;
/// Ends the file; its payload says how many sections precede it and what their header checksums were.
pub const KIND_END: u32 = 0;
/// Describes a run and says which mode it is of; its data sections follow as parts 1, 2, ...
pub const KIND_RUN: u32 = 1;
/// Stands for the part of a section that belongs to no run.
pub const NO_RUN: u32 = u32::MAX;
/// Largest expansion of a compressed payload. Real profiles expand 2 to 6 times.
pub const RATIO_MAX: u64 = 16;

const MARKER: [u8; 4] = *b"\xa7sec";
const FLAG_ZSTD: u32 = 1;
/// Payloads below this are not worth a compressor's frame.
const COMPRESS_MIN: usize = 64;
/// zstd's own default: beyond it, time grows faster than sizes shrink.
const LEVEL: i32 = 3;

/// The head of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What the section holds.
    pub kind: u32,
    /// Whose it is.
    pub run: RunId,
    /// Its place among the sections of the run; [`NO_RUN`] when it belongs to none.
    pub part: u32,
    /// How the payload is stored.
    pub flags: u32,
    /// Length of the payload in the file.
    pub stored_len: u64,
    /// Length of the payload once decompressed.
    pub raw_len: u64,
    /// Checksum of the payload in the file.
    pub checksum: u64,
}

impl Header {
    /// Reads and checks a header. `None`: these 64 bytes are not an intact header.
    pub fn parse(bytes: &[u8; HEADER_LEN]) -> Option<Self> {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        if bytes[..4] != MARKER || u64_at(56) != xxh3_64(&bytes[..56]) {
            return None;
        }
        Some(Self {
            kind: u32_at(4),
            run: RunId(bytes[8..24].try_into().unwrap_or_default()),
            part: u32_at(24),
            flags: u32_at(28),
            stored_len: u64_at(32),
            raw_len: u64_at(40),
            checksum: u64_at(48),
        })
    }

    fn bytes(&self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        out[..4].copy_from_slice(&MARKER);
        out[4..8].copy_from_slice(&self.kind.to_le_bytes());
        out[8..24].copy_from_slice(&self.run.0);
        out[24..28].copy_from_slice(&self.part.to_le_bytes());
        out[28..32].copy_from_slice(&self.flags.to_le_bytes());
        out[32..40].copy_from_slice(&self.stored_len.to_le_bytes());
        out[40..48].copy_from_slice(&self.raw_len.to_le_bytes());
        out[48..56].copy_from_slice(&self.checksum.to_le_bytes());
        let checksum = xxh3_64(&out[..56]);
        out[56..].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// What to call the section in a message.
    pub fn place(&self, number: u64) -> Place {
        let run = (self.part != NO_RUN).then_some(self.run);
        Place::Section { number, kind: Some(self.kind), run }
    }
}

/// Where the next thing that looks like a section starts, at or after `from`.
pub fn find_marker(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(MARKER.len()).position(|window| window == MARKER).map(|at| from + at)
}

/// The header of a file of this version.
pub fn file_header() -> [u8; FILE_HEADER_LEN] {
    let mut out = [0; FILE_HEADER_LEN];
    out[..12].copy_from_slice(&MAGIC);
    out[12..14].copy_from_slice(&MAJOR.to_le_bytes());
    out[14..16].copy_from_slice(&MINOR.to_le_bytes());
    let checksum = xxh3_64(&out[..16]);
    out[16..].copy_from_slice(&checksum.to_le_bytes());
    out
}

/// The major version of a file that starts so, when its header is intact.
pub fn file_version(bytes: &[u8; FILE_HEADER_LEN]) -> Option<u16> {
    let checksum = u64::from_le_bytes(bytes[16..].try_into().ok()?);
    (checksum == xxh3_64(&bytes[..16])).then(|| u16::from_le_bytes([bytes[12], bytes[13]]))
}

/// Checksum of all section headers, in order: shows a section that was removed, doubled or moved.
#[derive(Default)]
pub struct Roll {
    count: u64,
    hash: Xxh3,
}

impl Roll {
    /// Takes note of a section by its header's bytes.
    pub fn add(&mut self, header: &[u8]) {
        self.count += 1;
        self.hash.update(header);
    }

    /// Sections seen.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The payload of the end section.
    pub fn finish(&self) -> [u8; 16] {
        let mut out = [0; 16];
        out[..8].copy_from_slice(&self.count.to_le_bytes());
        out[8..].copy_from_slice(&self.hash.digest().to_le_bytes());
        out
    }
}

/// Appends sections to a file.
pub struct Writer {
    out: Vec<u8>,
    roll: Roll,
    compressor: Compressor<'static>,
}

impl Writer {
    /// A file with no sections yet.
    pub fn new() -> Result<Self, WriteError> {
        let compressor = Compressor::new(LEVEL).map_err(|e| WriteError::Compress(e.to_string()))?;
        Ok(Self { out: file_header().to_vec(), roll: Roll::default(), compressor })
    }

    /// Adds a section.
    pub fn put(&mut self, kind: u32, run: RunId, part: u32, raw: &[u8]) -> Result<(), WriteError> {
        let packed = if raw.len() < COMPRESS_MIN {
            None
        } else {
            let packed = self.compressor.compress(raw).map_err(|e| WriteError::Compress(e.to_string()))?;
            Some(padded(packed, raw.len())).filter(|packed| packed.len() < raw.len())
        };
        let (flags, stored) = packed.as_deref().map_or((0, raw), |packed| (FLAG_ZSTD, packed));
        self.put_stored(kind, run, part, flags, raw.len() as u64, stored);
        Ok(())
    }

    /// Adds a section that some other version has written.
    pub fn put_opaque(&mut self, run: RunId, part: u32, section: &OpaqueSection) {
        self.put_stored(section.kind, run, part, section.flags, section.raw_len, &section.stored);
    }

    fn put_stored(&mut self, kind: u32, run: RunId, part: u32, flags: u32, raw_len: u64, stored: &[u8]) {
        let stored_len = stored.len() as u64;
        let header =
            Header { kind, run, part, flags, stored_len, raw_len, checksum: xxh3_64(stored) }.bytes();
        self.roll.add(&header);
        self.out.extend_from_slice(&header);
        self.out.extend_from_slice(stored);
    }

    /// Ends the file.
    pub fn finish(mut self) -> Vec<u8> {
        let end = self.roll.finish();
        self.put_stored(KIND_END, RunId([0; 16]), NO_RUN, 0, end.len() as u64, &end);
        self.out
    }
}

/// Lengthens compressed bytes until they expand no more than [`RATIO_MAX`] times.
fn padded(mut packed: Vec<u8>, raw_len: usize) -> Vec<u8> {
    const SKIPPABLE: [u8; 4] = 0x184D_2A50_u32.to_le_bytes();
    let least = raw_len.div_ceil(RATIO_MAX as usize);
    // A skippable frame counts its length in 32 bits. Sections stay far below what would need two.
    if let Some(missing) = least.checked_sub(packed.len()).filter(|&missing| missing > 0) {
        let filling = missing.saturating_sub(8).min(u32::MAX as usize);
        packed.extend_from_slice(&SKIPPABLE);
        packed.extend_from_slice(&(filling as u32).to_le_bytes());
        packed.resize(packed.len() + filling, 0);
    }
    packed
}

/// Checks and decompresses payloads, with one buffer for all.
pub struct Unpacker {
    decompressor: Option<Decompressor<'static>>,
    buffer: Vec<u8>,
}

impl Unpacker {
    /// With nothing allocated yet.
    pub fn new() -> Self {
        Self { decompressor: None, buffer: Vec::new() }
    }

    /// The payload of a section whose checksum was found right.
    pub fn unpack<'b>(&'b mut self, header: &Header, stored: &'b [u8]) -> Decode<&'b [u8]> {
        match header.flags {
            0 if header.raw_len == header.stored_len => Ok(stored),
            0 => Err(Bad("its lengths contradict each other")),
            FLAG_ZSTD => self.decompress(header, stored),
            _ => Err(Bad("it is stored in a way that only a newer farsight knows")),
        }
    }

    fn decompress(&mut self, header: &Header, stored: &[u8]) -> Decode<&[u8]> {
        const FAILED: Bad = Bad("it does not decompress");
        if header.raw_len > header.stored_len.saturating_mul(RATIO_MAX) {
            return Err(Bad("it claims to expand more than a profile may"));
        }
        let raw_len = usize::try_from(header.raw_len).map_err(|_| FAILED)?;
        self.buffer.clear();
        self.buffer.reserve_exact(raw_len);
        let decompressor = match &mut self.decompressor {
            Some(decompressor) => decompressor,
            none => none.insert(Decompressor::new().map_err(|_| FAILED)?),
        };
        // One call with the whole output at hand: zstd then needs no window of its own, however large a window
        // the frame asks for.
        let written = decompressor.decompress_to_buffer(stored, &mut self.buffer).map_err(|_| FAILED)?;
        if written == raw_len { Ok(&self.buffer) } else { Err(Bad("its lengths contradict each other")) }
    }
}

/// Whether a payload is as it was written.
pub fn intact(header: &Header, stored: &[u8]) -> bool {
    xxh3_64(stored) == header.checksum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(raw: &[u8]) -> (Header, Vec<u8>) {
        let mut writer = Writer::new().unwrap();
        writer.put(7, RunId([3; 16]), 1, raw).unwrap();
        let file = writer.finish();
        let header = Header::parse(file[FILE_HEADER_LEN..][..HEADER_LEN].try_into().unwrap()).unwrap();
        let stored = &file[FILE_HEADER_LEN + HEADER_LEN..][..header.stored_len as usize];
        (header, stored.to_vec())
    }

    #[test]
    fn payloads_come_back_and_none_expands_too_much() {
        let noise: Vec<u8> = (0..5000u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
        for raw in [&b""[..], b"short", &[7; 1000], &[0; 1 << 20], &noise] {
            let (header, stored) = sections(raw);
            assert!(intact(&header, &stored));
            assert!(header.raw_len <= header.stored_len * RATIO_MAX);
            assert_eq!(Unpacker::new().unpack(&header, &stored), Ok(raw));
        }
        assert_eq!(sections(&[0; 1 << 20]).0.stored_len, (1 << 20) / RATIO_MAX);
    }

    #[test]
    fn any_altered_bit_of_a_header_is_seen() {
        let (header, _) = sections(b"payload");
        let good = header.bytes();
        assert_eq!(Header::parse(&good), Some(header));
        for bit in 0..HEADER_LEN * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::parse(&bad), None, "bit {bit}");
        }
    }

    #[test]
    fn a_bomb_is_refused_before_it_is_unpacked() {
        let (mut header, stored) = sections(&[0; 1 << 20]);
        header.raw_len = 1 << 50;
        let mut unpacker = Unpacker::new();
        assert_eq!(
            unpacker.unpack(&header, &stored),
            Err(Bad("it claims to expand more than a profile may"))
        );
        assert_eq!(unpacker.buffer.capacity(), 0);
        header.raw_len = 1 << 19;
        assert_eq!(unpacker.unpack(&header, &stored), Err(Bad("it does not decompress")));
    }
}
