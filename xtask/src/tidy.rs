//! House rules that no compiler checks: every module says what it is for, crates depend only downwards,
//! documents name files that exist, shared libraries export what the checked-in list says.

use anyhow::{Result, bail};

mod exports;
mod headers;
mod layering;
mod paths;

/// Runs all rules and reports all violations together.
pub fn run() -> Result<()> {
    let mut violations = Vec::new();
    violations.extend(headers::check()?);
    violations.extend(layering::check()?);
    violations.extend(paths::check()?);
    violations.extend(exports::check()?);
    if violations.is_empty() {
        eprintln!("tidy: all rules hold");
        return Ok(());
    }
    for violation in &violations {
        eprintln!("tidy: {violation}");
    }
    bail!("{} violations of house rules", violations.len());
}

/// Files that git knows or would add, by ending, relative to the root.
fn files(endings: &[&str]) -> Result<Vec<String>> {
    let listed = crate::shell::output(&["git", "ls-files", "--cached", "--others", "--exclude-standard"])?;
    let exists = |f: &&str| crate::shell::root().join(f).is_file();
    let wanted = |f: &&str| endings.iter().any(|e| f.ends_with(e));
    Ok(listed.lines().filter(wanted).filter(exists).map(String::from).collect())
}
