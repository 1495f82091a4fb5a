//! `farsight cc` and `farsight c++`: compile Cilk with the compiler that is there.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use span_kit::cc::{self, CcError};
use span_kit::rewrite::Language;

use crate::exit::{Failure, Kind};

/// Compile C or C++ with Cilk in it for the span mode: the arguments are those of cc or c++
#[derive(clap::Args)]
pub struct Args {
    /// Arguments of the compiler; CC and CXX say which one
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    args: Vec<OsString>,
}

pub fn run(args: &Args, language: Language) -> Result<ExitCode> {
    let status = cc::compile(language, &args.args).map_err(|e| match e {
        CcError::Cilk(_) => Failure::error(Kind::Usage, e),
        CcError::Io { .. } => Failure::error(Kind::Unavailable, e),
    })?;
    Ok(ExitCode::from(status.code().unwrap_or(1) as u8))
}
