//! Functions as the unwinder knows them: one range per frame description in `.eh_frame`.
//!
//! It survives stripping, since exceptions and backtraces need it, and so gives a stripped program's functions
//! exact bounds where symbols give none. Hand-written assembly may lack it.

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};

use crate::elf::Image;

/// Start and end of each described range, sorted by start, without empty or repeated ones.
pub(crate) fn ranges(image: &Image<'_>, problems: &mut Vec<String>) -> Vec<(u64, u64)> {
    let Some((address, data)) = image.eh_frame() else { return Vec::new() };
    let section = EhFrame::new(data, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(address);
    let mut ranges = Vec::new();
    // Most entries share their common part with the one before: the map is for the others.
    let mut cies = std::collections::HashMap::new();
    let mut last = None;
    let mut entries = section.entries(&bases);
    loop {
        match entries.next() {
            Ok(Some(CieOrFde::Fde(partial))) => {
                let parsed = partial.parse(|section, bases, offset| {
                    if let Some((at, cie)) = &last
                        && *at == offset
                    {
                        return Clone::clone(cie);
                    }
                    let cie: &mut Result<_, _> =
                        cies.entry(offset.0).or_insert_with(|| section.cie_from_offset(bases, offset));
                    last = Some((offset, cie.clone()));
                    cie.clone()
                });
                if let Ok(fde) = parsed {
                    ranges.push((fde.initial_address(), fde.end_address()));
                }
            }
            Ok(Some(CieOrFde::Cie(_))) => {}
            Ok(None) => break,
            Err(e) => {
                problems.push(format!(".eh_frame unreadable after {} functions: {e}", ranges.len()));
                break;
            }
        }
    }
    ranges.retain(|(start, end)| start < end);
    ranges.sort_unstable();
    ranges.dedup_by_key(|(start, _)| *start);
    ranges
}
