//! What was mapped where, and when, in one process.
//!
//! `dlclose` gives addresses back, and the next `dlopen` may get them: an address means something only
//! together with an [`Epoch`]. The map keeps every mapping with the epochs between which it was there. A new
//! mapping ends whatever it covers, as `mmap` with `MAP_FIXED` does, and unmapping may cut one in two. Events
//! must be told in the order of their epochs.

use crate::address::{Epoch, FileOffset, ProcessAddr};
use crate::maps::{self, Mapping};

/// A mapping and its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lived {
    /// What and where.
    pub mapping: Mapping,
    /// When it appeared.
    pub from: Epoch,
    /// When it went; [`Epoch::END`] if it has not.
    pub until: Epoch,
}

/// All mappings of one process over its life.
#[derive(Debug, Clone, Default)]
pub struct ProcessMap {
    /// Still there, by start; they do not overlap.
    live: Vec<Lived>,
    gone: Vec<Lived>,
}

impl ProcessMap {
    /// From the text of `/proc/PID/maps`; also the lines that make no sense.
    pub fn from_maps_text(text: &str) -> (ProcessMap, Vec<String>) {
        let (mappings, rejected) = maps::parse(text);
        let mut map = ProcessMap::default();
        for mapping in mappings {
            map.map(Epoch::START, mapping);
        }
        (map, rejected.into_iter().map(str::to_owned).collect())
    }

    /// Something was mapped.
    pub fn map(&mut self, at: Epoch, mapping: Mapping) {
        if mapping.start >= mapping.end {
            return;
        }
        self.unmap(at, mapping.start, mapping.end);
        let place = self.live.partition_point(|l| l.mapping.start < mapping.start);
        self.live.insert(place, Lived { mapping, from: at, until: Epoch::END });
    }

    /// Addresses `start..end` were unmapped.
    pub fn unmap(&mut self, at: Epoch, start: ProcessAddr, end: ProcessAddr) {
        if start >= end {
            return;
        }
        let first = self.live.partition_point(|l| l.mapping.end <= start);
        let last = self.live.partition_point(|l| l.mapping.start < end);
        if first >= last {
            return;
        }
        let hit: Vec<Lived> = self.live.drain(first..last).collect();
        let mut kept = Vec::new();
        for lived in hit {
            kept.extend(part(&lived, lived.mapping.start, start));
            kept.extend(part(&lived, end, lived.mapping.end));
            let cut = part(&lived, start.max(lived.mapping.start), end.min(lived.mapping.end));
            // What came and went at one epoch was never there.
            self.gone.extend(cut.filter(|_| lived.from < at).map(|c| Lived { until: at, ..c }));
        }
        self.live.splice(first..first, kept);
    }

    /// What was at an address at a time.
    pub fn at(&self, addr: ProcessAddr, when: Epoch) -> Option<&Mapping> {
        let after = self.live.partition_point(|l| l.mapping.start <= addr);
        let live = self.live[..after].last().into_iter();
        let holds =
            |l: &&Lived| l.mapping.start <= addr && addr < l.mapping.end && l.from <= when && when < l.until;
        // The list of what went is searched from the latest; it is short unless a program loads and unloads
        // libraries for its living.
        live.chain(self.gone.iter().rev()).find(holds).map(|l| &l.mapping)
    }

    /// Which byte of the backing file is at an address.
    pub fn file_offset(&self, addr: ProcessAddr, when: Epoch) -> Option<(&Mapping, FileOffset)> {
        let mapping = self.at(addr, when)?;
        let offset = mapping.offset.0.checked_add(addr.0 - mapping.start.0)?;
        Some((mapping, FileOffset(offset)))
    }

    /// Every mapping that ever was, the live ones first.
    pub fn iter(&self) -> impl Iterator<Item = &Lived> {
        self.live.iter().chain(&self.gone)
    }
}

/// The piece of a mapping between two addresses, if any.
fn part(lived: &Lived, start: ProcessAddr, end: ProcessAddr) -> Option<Lived> {
    let delta = start.0.checked_sub(lived.mapping.start.0)?;
    if start >= end || end > lived.mapping.end {
        return None;
    }
    let offset = FileOffset(lived.mapping.offset.0.wrapping_add(delta));
    Some(Lived { mapping: Mapping { start, end, offset, ..lived.mapping.clone() }, ..lived.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps::Backing;
    use proptest::prelude::*;

    fn mapping(start: u64, end: u64, name: &str) -> Mapping {
        Mapping {
            start: ProcessAddr(start),
            end: ProcessAddr(end),
            executable: true,
            offset: FileOffset(start * 16),
            backing: Backing::Anonymous(name.into()),
        }
    }

    #[test]
    fn reused_addresses_are_told_apart_by_epoch() {
        let mut map = ProcessMap::default();
        map.map(Epoch(1), mapping(10, 20, "first"));
        map.unmap(Epoch(5), ProcessAddr(10), ProcessAddr(20));
        map.map(Epoch(8), mapping(12, 30, "second"));
        let name = |addr, when| match &map.at(ProcessAddr(addr), Epoch(when))?.backing {
            Backing::Anonymous(name) => Some(name.as_str()),
            _ => None,
        };
        assert_eq!(name(15, 0), None);
        assert_eq!(name(15, 4), Some("first"));
        assert_eq!(name(15, 5), None);
        assert_eq!(name(15, 8), Some("second"));
        assert_eq!(name(11, 9), None);
    }

    proptest! {
        /// Against an array that holds, per address and time, the number of the mapping there.
        #[test]
        fn equals_an_array(events in prop::collection::vec((any::<bool>(), 0u64..40, 1u64..15), 1..30)) {
            let mut map = ProcessMap::default();
            let mut now = vec![None::<(usize, u64)>; 60];
            let mut history = Vec::new();
            for (epoch, (is_map, start, len)) in events.iter().enumerate() {
                let (at, end) = (Epoch(epoch as u64), start + len);
                if *is_map {
                    map.map(at, mapping(*start, end, &epoch.to_string()));
                } else {
                    map.unmap(at, ProcessAddr(*start), ProcessAddr(end));
                }
                for addr in *start..end {
                    now[addr as usize] = is_map.then_some((epoch, start * 16 + (addr - start)));
                }
                history.push(now.clone());
            }
            for (epoch, state) in history.iter().enumerate() {
                for (addr, want) in state.iter().enumerate() {
                    let found = map.file_offset(ProcessAddr(addr as u64), Epoch(epoch as u64)).map(|(m, o)| {
                        let Backing::Anonymous(name) = &m.backing else { unreachable!() };
                        (name.parse::<usize>().unwrap(), o.0)
                    });
                    prop_assert_eq!(found, *want, "address {} epoch {}", addr, epoch);
                }
            }
        }
    }
}
