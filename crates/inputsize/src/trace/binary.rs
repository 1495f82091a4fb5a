//! Traces as bytes: what a recorder under a scheduler lock writes, about 4 bytes per access.
//!
//! ```text
//! file  := "FSTRACE1" { step }
//! step  := head [thread] { field }
//! head  := one byte: operation in bits 0-4, bit 5 folded, bit 7 the thread follows (else as before)
//! field := LEB128; an address is the zigzag difference from the previous address, whoever accessed it
//! ```
//! Reading never panics on foreign bytes: a bad or cut step ends the iteration with an error.

use alloc::vec::Vec;

use super::{Event, Step};

const MAGIC: &[u8; 8] = b"FSTRACE1";
const FOLDED: u8 = 1 << 5;
const THREAD_FOLLOWS: u8 = 1 << 7;

/// Encodes steps one by one.
#[derive(Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    thread: Option<u32>,
    address: u64,
}

impl Default for Writer {
    fn default() -> Writer {
        Writer { bytes: MAGIC.to_vec(), thread: None, address: 0 }
    }
}

impl Writer {
    /// Appends a step.
    pub fn push(&mut self, step: Step) {
        let (operation, folded, fields) = fields_of(step.event, &mut self.address);
        let known = self.thread == Some(step.thread);
        self.bytes.push(operation | if folded { FOLDED } else { 0 } | if known { 0 } else { THREAD_FOLLOWS });
        if !known {
            self.number(u64::from(step.thread));
            self.thread = Some(step.thread);
        }
        for field in fields.into_iter().flatten() {
            self.number(field);
        }
    }

    /// The bytes so far. They may be taken away in pieces: what matters is their concatenation.
    pub fn take(&mut self) -> Vec<u8> {
        ::core::mem::take(&mut self.bytes)
    }

    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

fn fields_of(event: Event, last: &mut u64) -> (u8, bool, [Option<u64>; 2]) {
    let mut range = |operation, address: u64, size| {
        let delta = address.wrapping_sub(*last) as i64;
        *last = address;
        (operation, false, [Some(((delta << 1) ^ (delta >> 63)) as u64), Some(size)])
    };
    match event {
        Event::ThreadStart { routine } => (0, false, [Some(u64::from(routine)), None]),
        Event::ThreadEnd => (1, false, [None, None]),
        Event::Call { routine, sp, folded } => (2, folded, [Some(u64::from(routine)), Some(sp)]),
        Event::Return => (3, false, [None, None]),
        Event::TailCall { routine, folded } => (4, folded, [Some(u64::from(routine)), None]),
        Event::Unwind { sp } => (5, false, [Some(sp), None]),
        Event::SignalEnter { routine } => (6, false, [Some(u64::from(routine)), None]),
        Event::SignalExit => (7, false, [None, None]),
        Event::Read { address, size } => range(8, address, size),
        Event::Write { address, size } => range(9, address, size),
        Event::KernelRead { address, size } => range(10, address, size),
        Event::KernelWrite { address, size } => range(11, address, size),
        Event::Reset { address, size } => range(12, address, size),
        Event::Cost { which, amount } => (13, false, [Some(u64::from(which)), Some(amount)]),
    }
}

/// Why reading stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damaged {
    /// Byte at which the bad step starts.
    pub offset: usize,
}

/// Decodes steps one by one.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    thread: u32,
    address: u64,
}

impl<'a> Reader<'a> {
    /// Reads what a [`Writer`] wrote; an error if it does not start like that.
    pub fn new(bytes: &'a [u8]) -> Result<Reader<'a>, Damaged> {
        match bytes.starts_with(MAGIC) {
            true => Ok(Reader { bytes, at: MAGIC.len(), thread: 0, address: 0 }),
            false => Err(Damaged { offset: 0 }),
        }
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                return None;
            }
            value |= part << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn routine(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn range(&mut self) -> Option<(u64, u64)> {
        let coded = self.number()?;
        let delta = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        self.address = self.address.wrapping_add(delta as u64);
        Some((self.address, self.number()?))
    }

    fn step(&mut self) -> Option<Step> {
        let head = *self.bytes.get(self.at)?;
        self.at += 1;
        if head & THREAD_FOLLOWS != 0 {
            self.thread = self.number()?.try_into().ok()?;
        }
        let folded = head & FOLDED != 0;
        let event = match head & !(FOLDED | THREAD_FOLLOWS) {
            0 => Event::ThreadStart { routine: self.routine()? },
            1 => Event::ThreadEnd,
            2 => Event::Call { routine: self.routine()?, sp: self.number()?, folded },
            3 => Event::Return,
            4 => Event::TailCall { routine: self.routine()?, folded },
            5 => Event::Unwind { sp: self.number()? },
            6 => Event::SignalEnter { routine: self.routine()? },
            7 => Event::SignalExit,
            operation @ 8..=12 => {
                let (address, size) = self.range()?;
                match operation {
                    8 => Event::Read { address, size },
                    9 => Event::Write { address, size },
                    10 => Event::KernelRead { address, size },
                    11 => Event::KernelWrite { address, size },
                    _ => Event::Reset { address, size },
                }
            }
            13 => Event::Cost { which: self.number()?.try_into().ok()?, amount: self.number()? },
            _ => return None,
        };
        Some(Step { thread: self.thread, event })
    }
}

impl Iterator for Reader<'_> {
    type Item = Result<Step, Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let offset = self.at;
        let step = self.step();
        if step.is_none() {
            self.at = self.bytes.len();
        }
        Some(step.ok_or(Damaged { offset }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_survives() {
        let events = [
            Event::ThreadStart { routine: 7 },
            Event::Call { routine: u32::MAX, sp: u64::MAX, folded: true },
            Event::Read { address: u64::MAX, size: 16 },
            Event::Write { address: 0, size: 1 },
            Event::KernelRead { address: 4096, size: 1 << 40 },
            Event::KernelWrite { address: 4090, size: 0 },
            Event::Cost { which: 3, amount: u64::MAX },
            Event::TailCall { routine: 0, folded: false },
            Event::SignalEnter { routine: 9 },
            Event::SignalExit,
            Event::Unwind { sp: 0x7fff_ffff },
            Event::Reset { address: 4096, size: 4096 },
            Event::Return,
            Event::ThreadEnd,
        ];
        let steps: Vec<Step> = events
            .iter()
            .enumerate()
            .map(|(i, &event)| Step { thread: i as u32 / 5 * 1000, event })
            .collect();
        let mut writer = Writer::default();
        let mut bytes = Vec::new();
        for &step in &steps {
            writer.push(step);
            bytes.extend(writer.take());
        }
        let read: Result<Vec<Step>, Damaged> = Reader::new(&bytes).unwrap().collect();
        assert_eq!(read.unwrap(), steps);
        // Cut anywhere, it gives whole steps and at most one error.
        for end in MAGIC.len()..bytes.len() {
            let mut whole = 0;
            for step in Reader::new(&bytes[..end]).unwrap() {
                match step {
                    Ok(step) => {
                        assert_eq!(step, steps[whole]);
                        whole += 1;
                    }
                    Err(damaged) => assert!(damaged.offset < end),
                }
            }
            assert!(whole < steps.len());
        }
    }

    #[test]
    fn foreign_bytes_are_refused() {
        assert!(Reader::new(b"ELF").is_err());
        let mut overlong = MAGIC.to_vec();
        overlong.extend([8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
        assert_eq!(
            Reader::new(&overlong).unwrap().collect::<Vec<_>>(),
            [Err(Damaged { offset: MAGIC.len() })]
        );
    }
}
