//! `cargo xtask demo`: builds everything and profiles the bundled programs.

use anyhow::Result;

use crate::packages;

pub fn run() -> Result<()> {
    packages::ensure(&[packages::COMPILERS])
}
