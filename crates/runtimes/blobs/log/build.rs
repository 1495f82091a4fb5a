//! Link without libc, startup files or an interpreter.
fn main() {
    for arg in
        ["-nostartfiles", "-nostdlib", "-Wl,--no-dynamic-linker", "-Wl,-z,norelro", "-Wl,--gc-sections"]
    {
        println!("cargo:rustc-link-arg-bins={arg}");
    }
}
