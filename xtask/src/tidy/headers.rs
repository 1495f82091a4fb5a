//! Every Rust module opens with `//!`: what it is for, how it works, what it must never do.

use std::fs;

use anyhow::Result;

use crate::shell;

pub fn check() -> Result<Vec<String>> {
    let mut violations = Vec::new();
    for file in super::files(&[".rs"])? {
        let text = fs::read_to_string(shell::root().join(&file))?;
        if !has_header(&text) {
            violations.push(format!("{file} does not open with a `//!` header"));
        }
    }
    Ok(violations)
}

/// A header may follow a shebang, attributes and blank lines, nothing else.
fn has_header(text: &str) -> bool {
    let mut lines = text.lines().skip_while(|l| l.is_empty() || l.starts_with("#!"));
    lines.next().is_some_and(|line| line.starts_with("//!"))
}

#[cfg(test)]
mod tests {
    use super::has_header;

    #[test]
    fn headers_stand_first() {
        assert!(has_header("//! For this.\nuse std;\n"));
        assert!(has_header("#![no_std]\n\n//! For this.\n"));
        assert!(!has_header("use std;\n//! Too late.\n"));
        assert!(!has_header("// not a header\n"));
        assert!(!has_header(""));
    }
}
