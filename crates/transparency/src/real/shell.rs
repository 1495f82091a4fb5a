//! The tools of a shell: coreutils, bash, perl, git, sqlite3, openssl.

use super::{ROW, Real, Run};

/// 40,000 lines of numbers and words, the same every time.
const TEXT: &str = "awk 'BEGIN { x = 1; for (i = 0; i < 40000; i++) { x = (x * 1103515245 + 12345) % 2147483648; \
    print x % 9973, \"word\" x % 577, i } }' > text";

pub(super) const ROWS: &[Real] = &[
    Real {
        name: "coreutils-sort",
        setup: TEXT,
        run: Run::Command(&["sort", "-k2", "-k1n", "-o", "sorted", "text"]),
        ..ROW
    },
    Real {
        name: "coreutils-sort-parallel",
        setup: TEXT,
        run: Run::Command(&["sort", "--parallel=2", "-S", "1M", "text"]),
        ..ROW
    },
    Real { name: "coreutils-sha512sum", setup: TEXT, run: Run::Command(&["sha512sum", "text"]), ..ROW },
    Real { name: "coreutils-b2sum", setup: TEXT, run: Run::Command(&["b2sum", "text"]), ..ROW },
    Real { name: "coreutils-wc", setup: TEXT, run: Run::Command(&["wc", "text"]), ..ROW },
    Real {
        name: "coreutils-od",
        setup: TEXT,
        run: Run::Command(&["od", "-A", "x", "-t", "x1z", "text"]),
        ..ROW
    },
    Real { name: "coreutils-base64", setup: TEXT, run: Run::Command(&["base64", "text"]), ..ROW },
    Real {
        name: "coreutils-split",
        setup: TEXT,
        run: Run::Command(&["split", "-l", "9000", "text", "part-"]),
        ..ROW
    },
    Real {
        name: "coreutils-factor",
        run: Run::Command(&["factor", "18446744073709551557", "9999999999999", "360"]),
        ..ROW
    },
    Real { name: "coreutils-ls", run: Run::Command(&["ls", "-lR", "/usr/include/linux"]), ..ROW },
    Real {
        name: "coreutils-cp",
        run: Run::Command(&["cp", "-r", "/usr/include/asm-generic", "copy"]),
        ..ROW
    },
    Real {
        name: "coreutils-timeout",
        run: Run::Script(
            "($WRAP timeout 0.2 sleep 60 || echo $?; $WRAP timeout -s KILL 0.2 sleep 60 || echo $?) 2>&1",
        ),
        // bash tells of a child killed by a signal, with its pid; of a tool that says 137, nothing
        out: &[r"(?m)^bash: .*Killed.*\n"],
        ..ROW
    },
    Real {
        name: "find-grep",
        run: Run::Script(
            "$WRAP find /usr/include/linux -name '*.h' -newermt 1990-01-01 -exec grep -c struct {} + | sort | tail -50",
        ),
        ..ROW
    },
    Real {
        name: "awk",
        needs: &["awk"],
        setup: TEXT,
        run: Run::Command(&[
            "awk",
            "{ n[$2]++; s[$2] += $1 } END { for (k in n) print k, n[k], s[k] }",
            "text",
        ]),
        ..ROW
    },
    Real {
        name: "sed",
        setup: TEXT,
        run: Run::Command(&["sed", "-E", "s/([0-9]+) (word)([0-9]+)/\\3-\\1/; /99/d", "text"]),
        ..ROW
    },
    Real {
        name: "tar",
        setup: "mkdir tree; cp -r /usr/include/asm-generic tree/",
        run: Run::Command(&[
            "tar",
            "--sort=name",
            "--mtime=@0",
            "--owner=0",
            "--group=0",
            "-cf",
            "tree.tar",
            "tree",
        ]),
        ..ROW
    },
    Real { name: "bash", setup: "cp {programs}/work.sh .", run: Run::Command(&["bash", "work.sh"]), ..ROW },
    Real {
        name: "dash",
        needs: &["dash"],
        run: Run::Command(&[
            "dash",
            "-c",
            "i=0; while [ $i -lt 300 ]; do i=$((i+1)); x=$(echo $i | tr 0-9 a-j); done; echo $x; (exit 3) || echo $?",
        ]),
        ..ROW
    },
    Real {
        name: "perl",
        needs: &["perl"],
        setup: "cp {programs}/work.pl .",
        run: Run::Command(&["perl", "work.pl"]),
        ..ROW
    },
    Real {
        name: "perl-fork-signals",
        needs: &["perl"],
        setup: "cp {programs}/fork.pl .",
        run: Run::Command(&["perl", "fork.pl"]),
        ..ROW
    },
    Real {
        name: "sqlite3",
        needs: &["sqlite3"],
        setup: "cp {programs}/session.sql .",
        run: Run::Command(&["sqlite3", "data.db", ".read session.sql"]),
        ..ROW
    },
    Real {
        name: "git",
        needs: &["git"],
        run: Run::Script(GIT),
        files: &[r"\.git/index$", r"\.git/.*\.idx$", r"\.git/hooks", r"\.git/logs"],
        ..ROW
    },
    Real {
        name: "openssl-digest",
        needs: &["openssl"],
        setup: TEXT,
        run: Run::Command(&["openssl", "dgst", "-sha3-256", "text"]),
        ..ROW
    },
    Real {
        name: "openssl-cipher",
        needs: &["openssl"],
        setup: TEXT,
        run: Run::Command(&[
            "openssl",
            "enc",
            "-aes-256-ctr",
            "-K",
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
            "-iv",
            "00112233445566778899aabbccddeeff",
            "-in",
            "text",
            "-out",
            "secret",
        ]),
        ..ROW
    },
    Real {
        name: "openssl-speed",
        needs: &["openssl"],
        run: Run::Script(SPEED),
        // all of it is timing
        out: &[r"(?s)^.*$"],
        err: &[r"(?s)^.*$"],
        ..ROW
    },
];

/// A second each of hashing, ciphers (by their vector code), and big numbers.
const SPEED: &str = r#"$WRAP openssl speed -seconds 1 -bytes 1024 sha256 ecdsap256
$WRAP openssl speed -seconds 1 -bytes 1024 -evp aes-128-gcm; $WRAP openssl speed -seconds 1 -bytes 1024 -evp chacha20-poly1305"#;

const GIT: &str = r#"
export GIT_AUTHOR_DATE='2001-01-01T00:00:00Z' GIT_COMMITTER_DATE='2001-01-01T00:00:00Z' HOME=$PWD
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_NOSYSTEM=1
$WRAP git -c init.defaultBranch=main init -q repo; cd repo
for i in 1 2 3 4 5; do seq $((i * 100)) > file$i; $WRAP git add .; $WRAP git commit -qm "commit $i"; done
$WRAP git log --stat --format='%H %s'
sed -i s/50/fifty/ file5; $WRAP git diff; $WRAP git checkout -q -b side; $WRAP git commit -qam side
$WRAP git rebase -q main; $WRAP git merge-base main side; $WRAP git fsck --strict 2>&1
$WRAP git gc -q; $WRAP git clone -q . ../copy; $WRAP git -C ../copy rev-parse HEAD; cd ..; rm -rf repo copy
"#;
