//! stub
use anyhow::Result;
use super::{sets::Set, score::Answer};
pub fn answers(_sets: &[Set]) -> Result<Vec<(String, Vec<Answer>)>> { Ok(Vec::new()) }
