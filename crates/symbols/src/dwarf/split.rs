//! Split DWARF: the bulk of a unit's debug information in another file, named by the skeleton that stayed.
//!
//! Looked for in a package beside the object (`prog.dwp`, from `dwp` or `split-debuginfo=packed`), then as a
//! single `.dwo` (`split-debuginfo=unpacked`). A file counts only if it holds a unit with the skeleton's id:
//! a stale one from another build is a problem to report, not data.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gimli::{Dwarf, DwarfPackage, DwoId, Unit};

use super::{Slice, empty, load_sections};
use crate::bytes::{Arena, Files};
use crate::elf::Image;
use crate::problems::Problems;

pub(crate) struct SplitUnit<'a> {
    pub(crate) dwarf: Dwarf<Slice<'a>>,
    pub(crate) unit: Unit<Slice<'a>>,
}

/// Where split units may come from.
pub(crate) struct SplitSource<'a> {
    pub(crate) arena: &'a Arena,
    pub(crate) files: &'a dyn Files,
    /// The object and, if other, the file that holds the skeletons.
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) package: OnceLock<Option<DwarfPackage<Slice<'a>>>>,
}

impl<'a> SplitSource<'a> {
    /// The unit that a skeleton stands for.
    pub(crate) fn load(
        &self,
        parent: &Dwarf<Slice<'a>>,
        skeleton: &Unit<Slice<'a>>,
        id: DwoId,
        problems: &Problems,
    ) -> Option<SplitUnit<'a>> {
        if let Some(package) = self.package.get_or_init(|| self.load_package())
            && let Ok(Some(dwarf)) = package.find_cu(id, parent)
            && let Some(split) = pick(dwarf, skeleton, id)
        {
            return Some(split);
        }
        let name = skeleton.dwo_name().ok().flatten().and_then(|n| parent.attr_string(skeleton, n).ok());
        let name = name.map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let folder = skeleton.comp_dir.map(|d| d.to_string_lossy().into_owned()).unwrap_or_default();
        for path in self.candidates(&folder, &name) {
            let Some(bytes) = self.files.read(&path) else { continue };
            let Ok(image) = Image::open_any(self.arena.push(bytes)) else { continue };
            let mut dwarf = load_sections(&image, self.arena, |id| id.dwo_name());
            dwarf.make_dwo(parent);
            match pick(dwarf, skeleton, id) {
                Some(split) => return Some(split),
                None => problems.add(format!("{} is from another build", path.display())),
            }
        }
        let shown = if name.is_empty() { format!("unit {:016x}", id.0) } else { name };
        problems.add(format!("split debug information {shown} not found"));
        None
    }

    /// As recorded, then beside the object: build trees get moved.
    fn candidates(&self, folder: &str, name: &str) -> Vec<PathBuf> {
        if name.is_empty() {
            return Vec::new();
        }
        let mut candidates = vec![Path::new(folder).join(name)];
        for path in &self.paths {
            let beside = path.parent().unwrap_or(Path::new(""));
            candidates.push(beside.join(name));
            candidates.extend(Path::new(name).file_name().map(|file| beside.join(file)));
        }
        let mut seen = std::collections::HashSet::new();
        candidates.retain(|c| seen.insert(c.clone()));
        candidates
    }

    fn load_package(&self) -> Option<DwarfPackage<Slice<'a>>> {
        self.paths.iter().find_map(|path| {
            let mut appended = path.clone().into_os_string();
            appended.push(".dwp");
            let bytes = [PathBuf::from(appended), path.with_extension("dwp")]
                .iter()
                .find_map(|candidate| self.files.read(candidate))?;
            let image = Image::open_any(self.arena.push(bytes)).ok()?;
            let section = |id: gimli::SectionId| {
                let data = id.dwo_name().and_then(|name| image.debug_section(name, self.arena));
                gimli::Result::Ok(Slice::new(data.unwrap_or_default(), gimli::LittleEndian))
            };
            DwarfPackage::load(section, empty()).ok()
        })
    }
}

/// The unit with the skeleton's id, completed with what only the skeleton knows.
fn pick<'a>(dwarf: Dwarf<Slice<'a>>, skeleton: &Unit<Slice<'a>>, id: DwoId) -> Option<SplitUnit<'a>> {
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        if let Ok(mut unit) = dwarf.unit(header)
            && unit.dwo_id == Some(id)
        {
            unit.copy_relocated_attributes(skeleton);
            return Some(SplitUnit { dwarf, unit });
        }
    }
    None
}
