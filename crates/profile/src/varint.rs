//! Numbers of variable length (LEB128), the alphabet of all section payloads.
//!
//! Small numbers take one byte: `v < 128` is itself, otherwise the low seven bits with the top bit set, then the
//! rest. Signed differences are folded first: 0, -1, 1, -2, ... become 0, 1, 2, 3, ... Reading never panics and
//! never allocates; a number that ends early or does not fit its type is [`Bad`].

/// What is wrong with a payload whose checksum is right: written by a broken or hostile program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bad(pub &'static str);

/// Result of reading a payload.
pub type Decode<T> = Result<T, Bad>;

/// Appends a number.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a wide number.
pub fn put_wide(out: &mut Vec<u8>, mut value: u128) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the difference `to - from`, modulo 2^64, so that small ones of either sign are short.
pub fn put_step(out: &mut Vec<u8>, from: u64, to: u64) {
    let d = to.wrapping_sub(from) as i64;
    put(out, ((d << 1) ^ (d >> 63)) as u64);
}

/// Appends the difference `to - from`, modulo 2^128.
pub fn put_step_wide(out: &mut Vec<u8>, from: u128, to: u128) {
    let d = to.wrapping_sub(from) as i128;
    put_wide(out, ((d << 1) ^ (d >> 127)) as u128);
}

/// Appends bytes with their length.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads a payload from front to back.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// At the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes not yet read: an upper bound for the count of anything that follows.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Next number.
    #[inline]
    pub fn get(&mut self) -> Decode<u64> {
        if let [byte @ ..0x80, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(*byte));
        }
        self.get_long()
    }

    fn get_long(&mut self) -> Decode<u64> {
        let mut value = 0u64;
        for (i, &byte) in self.rest.iter().enumerate().take(10) {
            let bits = u64::from(byte & 0x7f);
            if i == 9 && bits > 1 {
                break;
            }
            value |= bits << (7 * i);
            if byte < 0x80 {
                self.rest = &self.rest[i + 1..];
                return Ok(value);
            }
        }
        Err(Bad("a number ends early or is too large"))
    }

    /// Next wide number.
    #[inline]
    pub fn get_wide(&mut self) -> Decode<u128> {
        if let [byte @ ..0x80, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u128::from(*byte));
        }
        let mut value = 0u128;
        for (i, &byte) in self.rest.iter().enumerate().take(19) {
            let bits = u128::from(byte & 0x7f);
            if i == 18 && bits > 3 {
                break;
            }
            value |= bits << (7 * i);
            if byte < 0x80 {
                self.rest = &self.rest[i + 1..];
                return Ok(value);
            }
        }
        Err(Bad("a number ends early or is too large"))
    }

    /// Next number, narrowed.
    pub fn get_u32(&mut self) -> Decode<u32> {
        u32::try_from(self.get()?).map_err(|_| Bad("a number is too large"))
    }

    /// What `from` becomes by the next difference.
    #[inline]
    pub fn step(&mut self, from: u64) -> Decode<u64> {
        let z = self.get()?;
        Ok(from.wrapping_add((z >> 1) ^ (z & 1).wrapping_neg()))
    }

    /// What `from` becomes by the next wide difference.
    #[inline]
    pub fn step_wide(&mut self, from: u128) -> Decode<u128> {
        let z = self.get_wide()?;
        Ok(from.wrapping_add((z >> 1) ^ (z & 1).wrapping_neg()))
    }

    /// Next number, which counts items of at least `least` bytes each that follow here.
    pub fn count(&mut self, least: usize) -> Decode<usize> {
        let count = self.get()?;
        usize::try_from(count)
            .ok()
            .filter(|&c| c.checked_mul(least).is_some_and(|bytes| bytes <= self.left()))
            .ok_or(Bad("more items are announced than there are bytes"))
    }

    /// Next `len` bytes.
    pub fn take(&mut self, len: usize) -> Decode<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(Bad("bytes are missing"))?;
        self.rest = rest;
        Ok(head)
    }

    /// Next bytes with their length.
    pub fn bytes(&mut self) -> Decode<&'a [u8]> {
        let len = self.count(1)?;
        self.take(len)
    }

    /// Next text.
    pub fn text(&mut self) -> Decode<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Bad("a text is not UTF-8"))
    }

    /// Nothing may be left.
    pub fn end(&self) -> Decode<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(Bad("there are more bytes than expected")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(values in proptest::collection::vec(any::<(u64, u128, u64)>(), 0..50)) {
            let mut out = Vec::new();
            for &(a, wide, b) in &values {
                put(&mut out, a);
                put_wide(&mut out, wide);
                put_step(&mut out, a, b);
                put_step_wide(&mut out, wide, u128::from(b));
            }
            let mut cursor = Cursor::new(&out);
            for &(a, wide, b) in &values {
                prop_assert_eq!(cursor.get(), Ok(a));
                prop_assert_eq!(cursor.get_wide(), Ok(wide));
                prop_assert_eq!(cursor.step(a), Ok(b));
                prop_assert_eq!(cursor.step_wide(wide), Ok(u128::from(b)));
            }
            prop_assert_eq!(cursor.end(), Ok(()));
        }
    }

    #[test]
    fn numbers_that_do_not_fit_are_bad() {
        assert_eq!(Cursor::new(&[0xff; 9]).get(), Err(Bad("a number ends early or is too large")));
        let mut largest = [0xff; 10];
        largest[9] = 1;
        assert_eq!(Cursor::new(&largest).get(), Ok(u64::MAX));
        largest[9] = 2;
        assert!(Cursor::new(&largest).get().is_err());
        assert!(Cursor::new(&[0xff; 30]).get_wide().is_err());
        assert!(Cursor::new(&[5, 1, 2]).count(1).is_err());
        assert!(Cursor::new(&[]).get().is_err());
    }
}
