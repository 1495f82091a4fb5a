//! Names against the kernel's own header.

#[test]
fn names_and_numbers_are_the_kernels() {
    let path = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h";
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("skipped: {path} is not installed");
        return;
    };
    let mut seen = 0;
    for line in text.lines() {
        let Some((name, number)) = line.strip_prefix("#define __NR_").and_then(|l| l.split_once(' ')) else {
            continue;
        };
        assert_eq!(syscalls::name(number.trim().parse().unwrap()), Some(name));
        seen += 1;
    }
    assert!(seen > 350, "only {seen} names in {path}");
}
