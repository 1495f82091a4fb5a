//! Tagged fields: how a section payload is laid out so that later versions can add to it.
//!
//! ```text
//! payload := { tag (varint, strictly ascending)  length (varint)  bytes }
//! ```
//! A reader skips tags that it does not know and says so. Tags are never given a second meaning.

use crate::varint::{self, Bad, Cursor, Decode};

/// Collects fields in ascending order of their tags.
#[derive(Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
    next: u64,
}

impl Writer {
    /// Adds a field.
    pub fn put(&mut self, tag: u64, bytes: &[u8]) {
        debug_assert!(tag >= self.next);
        self.next = tag + 1;
        varint::put(&mut self.out, tag);
        varint::put_bytes(&mut self.out, bytes);
    }

    /// Adds a field that is one number.
    pub fn put_number(&mut self, tag: u64, value: u64) {
        let mut bytes = Vec::with_capacity(10);
        varint::put(&mut bytes, value);
        self.put(tag, &bytes);
    }

    /// The payload.
    pub fn finish(self) -> Vec<u8> {
        self.out
    }
}

/// The fields of a payload whose tags are below `N`; others are counted.
#[derive(Debug)]
pub struct Reader<'a, const N: usize> {
    fields: [Option<&'a [u8]>; N],
    unknown: usize,
}

impl<'a, const N: usize> Reader<'a, N> {
    /// Finds the fields. `known` says which tags have a meaning.
    pub fn new(payload: &'a [u8], known: impl Fn(usize) -> bool) -> Decode<Self> {
        let mut found = Self { fields: [None; N], unknown: 0 };
        let mut cursor = Cursor::new(payload);
        let mut least = 0;
        while cursor.left() > 0 {
            let tag = cursor.get()?;
            if tag < least {
                return Err(Bad("fields are not in order"));
            }
            least = tag.saturating_add(1);
            let bytes = cursor.bytes()?;
            match usize::try_from(tag).ok().filter(|&tag| tag < N && known(tag)) {
                Some(tag) => found.fields[tag] = Some(bytes),
                None => found.unknown += 1,
            }
        }
        Ok(found)
    }

    /// Number of fields that have no meaning to this version.
    pub fn unknown(&self) -> usize {
        self.unknown
    }

    /// A field that must be there.
    pub fn get(&self, tag: usize) -> Decode<Cursor<'a>> {
        self.fields.get(tag).copied().flatten().map(Cursor::new).ok_or(Bad("a field is missing"))
    }

    /// A field that is one number.
    pub fn number(&self, tag: usize) -> Decode<u64> {
        let mut cursor = self.get(tag)?;
        let value = cursor.get()?;
        cursor.end()?;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_are_skipped_and_counted() {
        let mut writer = Writer::default();
        writer.put_number(1, 300);
        writer.put(2, b"later");
        writer.put_number(3, 7);
        writer.put(1000, b"much later");
        let payload = writer.finish();
        let fields = Reader::<4>::new(&payload, |tag| tag != 2).unwrap();
        assert_eq!((fields.number(1), fields.number(3), fields.unknown()), (Ok(300), Ok(7), 2));
        assert_eq!(fields.number(0), Err(Bad("a field is missing")));
    }

    #[test]
    fn disorder_and_early_ends_are_bad() {
        assert!(Reader::<4>::new(&[2, 0, 1, 0], |_| true).is_err());
        assert!(Reader::<4>::new(&[1, 0, 1, 0], |_| true).is_err());
        assert!(Reader::<4>::new(&[1, 5, 0], |_| true).is_err());
    }
}
