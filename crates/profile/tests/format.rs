//! The file format from outside: what each kind of damage is called, what is left after it, and that the bytes of
//! version 1 stay readable for ever.

use profile::{
    Cost, Count, Data, Exit, Function, Growth, Loaded, Looks, Metric, Opaque, OpaqueSection, Point, Profile,
    Program, ReadError, Routine, Run, RunId, Tally, ThreadCost, ThreadPoints, ThreadTally, WriteError,
    decode, encode, salvage,
};

fn growth(routines: u64, points: u64) -> Growth {
    let mut growth = Growth::new(Metric::Trms, Cost::Blocks, 4);
    growth.cost_total = 1000;
    growth.threads = vec![ThreadCost { id: 7, cost_total: 1000 }];
    for i in 0..routines {
        let points: Vec<_> = (0..points).map(|n| Point::single(n * 3, n * n + i, n)).collect();
        growth.routines.push(Routine {
            name: format!("f{i:03}()"),
            mangled: format!("_Z4f{i:03}v"),
            object: "/bin/program".into(),
            threads: vec![7],
            by_thread: vec![ThreadPoints { thread: 7, points: points.clone() }],
            points,
            ..Routine::default()
        });
    }
    growth.normalize();
    growth
}

fn count(functions: u64) -> Count {
    let tally = Tally { instructions: 1 << 40, blocks: 7, loads: 6, stores: 5, calls: 4 };
    let mut count = Count {
        total: tally,
        threads: 3,
        by_thread: vec![ThreadTally { id: 9, tally }, ThreadTally { id: 10, tally: Tally::default() }],
        functions: (0..functions)
            .map(|i| Function {
                name: format!("g{i:05}()"),
                mangled: format!("_Z6g{i:05}v"),
                object: "/bin/program".into(),
                address: (i % 2 == 0).then_some(i * 16),
                file: "g.c".into(),
                line: i as u32,
                calls: i,
                instructions_self: i * 3,
                instructions_total: if i % 5 == 0 { 0 } else { i * 7 },
            })
            .collect(),
    };
    count.normalize();
    count
}

fn run(id: u8, data: Data) -> Run {
    Run {
        id: RunId([id; 16]),
        program: Program { path: "/bin/program".into(), build_id: vec![0xab; 20], modified_unix_s: 1 },
        command: vec!["program".into(), "a b".into()],
        exit: Exit::Signal(11),
        started_unix_ns: 1_700_000_000_000_000_000,
        wall_ns: 5,
        cpu_ns: 6,
        problems: vec!["the kernel lost 3 records".into()],
        data,
    }
}

/// Two growth runs, the first of three data sections, around a run of a mode of the future.
fn sample() -> Profile {
    let section = |kind| OpaqueSection { kind, flags: 9, raw_len: 1 << 60, stored: b"whatever".to_vec() };
    Profile {
        runs: vec![
            run(1, Data::Growth(growth(5, 17_000))),
            run(2, Data::Opaque(Opaque { mode: 1234, sections: vec![section(500), section(501)] })),
            run(3, Data::Growth(growth(2, 3))),
        ],
    }
}

fn growth_of(run: &Run) -> &Growth {
    match &run.data {
        Data::Growth(growth) => growth,
        other => panic!("{other:?}"),
    }
}

/// Offsets of the sections: header 64 bytes, stored length at 32.
fn sections(file: &[u8]) -> Vec<usize> {
    let mut offsets = vec![24];
    while let Some(header) = file.get(offsets[offsets.len() - 1]..).filter(|rest| rest.len() >= 64) {
        let len = u64::from_le_bytes(header[32..40].try_into().unwrap()) as usize;
        offsets.push(offsets[offsets.len() - 1] + 64 + len);
    }
    assert_eq!(offsets.pop(), Some(file.len()));
    offsets
}

#[test]
fn counts_come_back_whole_and_in_part() {
    let profile = Profile { runs: vec![run(4, Data::Count(count(20_000))), run(5, Data::Count(count(0)))] };
    let bytes = encode(&profile).unwrap();
    let whole = Loaded { profile: profile.clone(), problems: vec![] };
    assert_eq!(decode(&bytes), Ok(whole.clone()));
    assert_eq!(salvage(&bytes), Ok(whole));
    let starts = sections(&bytes);
    assert_eq!(starts.len(), 3 + 2 + 1, "two data sections, one, and the end");
    let mut damaged = bytes;
    damaged[starts[2] + 100] ^= 1;
    let left = salvage(&damaged).unwrap().profile;
    let Data::Count(found) = &left.runs[0].data else { panic!("{left:?}") };
    assert_eq!((found.functions.len(), found.total), (1 << 14, count(0).total));
    assert_eq!(
        left.runs[0].problems[1..],
        ["data sections lost: 1 of 2", "routines lost: 3616 of 20000"].map(String::from)
    );
    assert_eq!(left.runs[1], profile.runs[1]);
}

#[test]
fn whole_profiles_come_back_and_equal_ones_have_equal_bytes() {
    for profile in [Profile::default(), sample()] {
        let bytes = encode(&profile).unwrap();
        assert_eq!(encode(&profile.clone()).unwrap(), bytes);
        let whole = Loaded { profile, problems: vec![] };
        assert_eq!(decode(&bytes), Ok(whole.clone()));
        assert_eq!(salvage(&bytes), Ok(whole));
    }
}

#[test]
fn every_truncation_is_called_one() {
    let bytes = encode(&Profile { runs: vec![run(1, Data::Growth(growth(3, 5)))] }).unwrap();
    assert_eq!(decode(b""), Err(ReadError::Foreign(Looks::Empty)));
    for len in 1..bytes.len() {
        let error = decode(&bytes[..len]).unwrap_err();
        assert!(matches!(error, ReadError::Truncated { end, .. } if end == len as u64), "{len}: {error:?}");
    }
    let error = decode(&bytes[..100]).unwrap_err().to_string();
    assert_eq!(
        error,
        "truncated profile: it ends at byte 100 within section 1 (description of run \
         01010101010101010101010101010101); `--salvage` reads what is intact"
    );
}

#[test]
fn every_altered_byte_is_noticed_and_never_called_truncation() {
    let bytes = encode(&Profile { runs: vec![run(1, Data::Growth(growth(3, 5)))] }).unwrap();
    for at in 0..bytes.len() {
        let mut altered = bytes.clone();
        altered[at] ^= 0x10;
        let error = decode(&altered).unwrap_err();
        assert!(matches!(error, ReadError::Corrupted { .. }), "byte {at}: {error:?}");
    }
    let mut altered = bytes.clone();
    altered[24 + 64] ^= 1;
    assert_eq!(
        decode(&altered).unwrap_err().to_string(),
        "corrupted profile: section 1 (description of run 01010101010101010101010101010101) at byte 24: its checksum \
         does not match; `--salvage` reads what is intact"
    );
    let longer = [&bytes[..], b"more"].concat();
    assert!(matches!(decode(&longer), Err(ReadError::Corrupted { reason: "bytes follow it", .. })));
}

#[test]
fn sections_that_are_gone_or_moved_are_noticed() {
    let bytes = encode(&sample()).unwrap();
    let offsets = sections(&bytes);
    for window in offsets.windows(2) {
        let without = [&bytes[..window[0]], &bytes[window[1]..]].concat();
        assert!(matches!(decode(&without), Err(ReadError::Corrupted { .. })), "without {window:?}");
        let doubled = [&bytes[..window[1]], &bytes[window[0]..]].concat();
        assert!(matches!(decode(&doubled), Err(ReadError::Corrupted { .. })), "doubled {window:?}");
    }
}

#[test]
fn newer_files_say_so_even_when_salvaging() {
    let mut bytes = encode(&sample()).unwrap();
    bytes[12] = 9;
    assert!(matches!(decode(&bytes), Err(ReadError::Corrupted { .. })), "an altered version is damage");
    let checksum = xxhash_rust::xxh3::xxh3_64(&bytes[..16]);
    bytes[16..24].copy_from_slice(&checksum.to_le_bytes());
    let newer = ReadError::Newer { found: 9, known: 1 };
    assert_eq!(decode(&bytes), Err(newer.clone()));
    assert_eq!(salvage(&bytes), Err(newer.clone()));
    assert_eq!(
        newer.to_string(),
        "profile format version 9 is newer than version 1, the newest that this farsight reads: update farsight"
    );
}

#[test]
fn a_newer_minor_version_is_read() {
    let mut bytes = encode(&sample()).unwrap();
    bytes[14] = 200;
    let checksum = xxhash_rust::xxh3::xxh3_64(&bytes[..16]);
    bytes[16..24].copy_from_slice(&checksum.to_le_bytes());
    assert_eq!(decode(&bytes).unwrap().profile, sample());
}

#[test]
fn foreign_files_are_recognized() {
    assert_eq!(
        decode(b"v 6\nm bb-count\n").unwrap_err().to_string(),
        "not a Farsight profile: it looks like an aprof report; `farsight import FILE -o OUT.farsight` converts it"
    );
    assert_eq!(salvage(b"hello"), Err(ReadError::Foreign(Looks::Text)));
}

#[test]
fn salvaging_a_truncated_file_gives_what_came_before_the_cut() {
    let bytes = encode(&sample()).unwrap();
    let offsets = sections(&bytes);
    // Cut inside the third data section of the first run.
    let loaded = salvage(&bytes[..offsets[3] + 100]).unwrap();
    assert_eq!(loaded.profile.runs.len(), 1);
    let found = &loaded.profile.runs[0];
    assert_eq!(found.command, ["program", "a b"]);
    assert_eq!(
        found.problems,
        ["the kernel lost 3 records", "data sections lost: 1 of 3", "routines lost: 1 of 5",]
    );
    assert_eq!(growth_of(found).routines, growth(5, 17_000).routines[..4]);
    assert!(loaded.problems.iter().any(|p| p == "the end of the file is missing"), "{:?}", loaded.problems);
    // Salvaged profiles are valid ones.
    assert_eq!(decode(&encode(&loaded.profile).unwrap()).unwrap().profile, loaded.profile);
}

#[test]
fn salvaging_skips_damage_anywhere() {
    let good = sample();
    let bytes = encode(&good).unwrap();
    for (i, &offset) in sections(&bytes).iter().enumerate() {
        for at in [offset, offset + 40, offset + 66] {
            let mut altered = bytes.clone();
            altered[at] ^= 0xff;
            let loaded = salvage(&altered).unwrap();
            assert!(!loaded.problems.is_empty(), "section {i}");
            let runs = loaded.profile.runs;
            let whole = runs.iter().filter(|run| good.runs.contains(run)).count();
            let partial = runs.len() - whole;
            // Sections: 0 to 3 of run 1, 4 to 6 of run 2, 7 and 8 of run 3, 9 the end.
            let expected = match i {
                0..=3 => (2, 1),
                4 => (2, 0),     // of an unknown mode, and the description is lost
                5..=6 => (2, 1), // one of two sections of an unknown mode
                7 => (2, 1),
                8 => (2, 0), // the only data
                _ => (3, 0),
            };
            assert_eq!((whole, partial), expected, "section {i}, byte {at}");
        }
    }
}

#[test]
fn bytes_lost_or_added_in_the_middle_cost_one_section() {
    let bytes = encode(&sample()).unwrap();
    let offsets = sections(&bytes);
    for cut in [10, 100] {
        let from = offsets[2] + 80;
        let shorter = [&bytes[..from], &bytes[from + cut..]].concat();
        let longer = [&bytes[..from], &vec![0xa7; cut], &bytes[from..]].concat();
        for damaged in [shorter, longer] {
            let runs = salvage(&damaged).unwrap().profile.runs;
            assert_eq!(runs.len(), 3);
            assert_eq!(growth_of(&runs[0]).routines.len(), 3);
            assert_eq!(runs[1..], sample().runs[1..]);
        }
    }
}

#[test]
fn a_damaged_start_does_not_hide_the_rest() {
    let mut bytes = encode(&sample()).unwrap();
    bytes[..24].fill(0);
    assert!(matches!(decode(&bytes), Err(ReadError::Corrupted { .. })));
    let loaded = salvage(&bytes).unwrap();
    assert_eq!(loaded.profile, sample());
    assert_eq!(loaded.problems, ["the file header is damaged"]);
}

#[test]
fn what_cannot_be_read_back_is_not_written() {
    let twice = Profile { runs: vec![run(1, Data::Growth(growth(0, 0))); 2] };
    assert_eq!(encode(&twice), Err(WriteError::Twice(RunId([1; 16]))));
    let mut unordered = growth(2, 2);
    unordered.routines.reverse();
    let error = encode(&Profile { runs: vec![run(1, Data::Growth(unordered))] }).unwrap_err();
    assert!(matches!(error, WriteError::Invalid { .. }), "{error}");
    let known = Data::Opaque(Opaque { mode: 1, sections: vec![] });
    let error = encode(&Profile { runs: vec![run(1, known)] }).unwrap_err();
    assert_eq!(error, WriteError::NotOpaque(RunId([1; 16])));
}

/// A file written by version 1.0. If this fails, files of users became unreadable.
#[test]
fn the_first_version_stays_readable() {
    let bytes = include_bytes!("../testdata/version-1.0.farsight");
    let profile = Profile {
        runs: vec![
            run(1, Data::Growth(growth(3, 40))),
            run(
                2,
                Data::Opaque(Opaque {
                    mode: 1234,
                    sections: vec![OpaqueSection {
                        kind: 500,
                        flags: 9,
                        raw_len: 1 << 60,
                        stored: b"whatever".to_vec(),
                    }],
                }),
            ),
        ],
    };
    assert_eq!(decode(bytes), Ok(Loaded { profile, problems: vec![] }));
}
