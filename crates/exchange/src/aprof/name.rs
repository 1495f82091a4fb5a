//! What the name of a report says: `<program>_<pid>_<tid>_<resolution>.aprof`, the program optional.

/// A report's name, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// Folder, as given; empty when there is none.
    pub folder: String,
    /// Name of the executable; may contain anything, underscores included.
    pub program: String,
    /// Process id.
    pub pid: u64,
    /// The thread's number, from 0.
    pub thread: u64,
    /// Bytes per memory cell.
    pub cell_bytes: u32,
}

impl Name {
    /// Takes a path apart; `None` for names of another form.
    pub fn parse(path: &str) -> Option<Self> {
        let (folder, base) = path.rsplit_once('/').unwrap_or(("", path));
        let mut parts = base.strip_suffix(".aprof")?.rsplitn(4, '_');
        let cell_bytes = number(parts.next()?)?.try_into().ok()?;
        let thread = number(parts.next()?)?;
        let pid = number(parts.next()?)?;
        let program = parts.next().unwrap_or_default().to_owned();
        Some(Self { folder: folder.to_owned(), program, pid, thread, cell_bytes })
    }

    /// The name without the folder.
    pub fn base(&self) -> String {
        let Self { program, pid, thread, cell_bytes, .. } = self;
        format!("{program}_{pid}_{thread}_{cell_bytes}.aprof")
    }
}

fn number(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_the_right() {
        let name =
            |path: &str| Name::parse(path).map(|n| (n.folder, n.program, n.pid, n.thread, n.cell_bytes));
        let some = |folder: &str, program: &str, pid, thread, cell| {
            Some((folder.to_owned(), program.to_owned(), pid, thread, cell))
        };
        assert_eq!(name("ls_12_0_4.aprof"), some("", "ls", 12, 0, 4));
        assert_eq!(name("/tmp/x_y/my_prog_1_12_3_16.aprof"), some("/tmp/x_y", "my_prog_1", 12, 3, 16));
        assert_eq!(name("12_0_4.aprof"), some("", "", 12, 0, 4));
        for other in ["report.aprof", "ls_12_0_4.txt", "ls_a_0_4.aprof", "ls_12_+1_4.aprof", "0_4.aprof", ""]
        {
            assert_eq!(name(other), None, "{other}");
        }
    }
}
