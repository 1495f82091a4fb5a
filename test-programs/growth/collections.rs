//! Vec, HashMap, BTreeMap, sorting, threads and channels: names of generic code stay readable.
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc;
use std::thread;

#[inline(never)]
fn total<T: Copy + Into<u64>>(values: &[T]) -> u64 {
    values.iter().map(|&v| v.into()).sum()
}

#[inline(never)]
fn count_words(words: &[u32]) -> usize {
    let mut map: HashMap<u32, u32> = HashMap::new();
    for &word in words {
        *map.entry(word).or_default() += 1;
    }
    let ordered: BTreeMap<u32, u32> = map.into_iter().collect();
    ordered.len()
}

#[inline(never)]
fn sorted(mut values: Vec<u32>) -> Vec<u32> {
    values.sort();
    values
}

#[inline(never)]
fn receive(inbox: &mpsc::Receiver<Vec<u32>>) -> u64 {
    let mut sum = 0;
    while let Ok(values) = inbox.recv() {
        sum += total(&values);
    }
    sum
}

fn main() {
    let values: Vec<u32> = (0..2000u32).map(|i| i.wrapping_mul(2_654_435_761) >> 16).collect();
    let mut sum = 0;
    for n in (100..=2000).step_by(100) {
        sum += total(&values[..n]);
        sum += count_words(&values[..n]) as u64;
    }
    sum += u64::from(sorted(values.clone())[7]);
    let (send, inbox) = mpsc::channel();
    let reader = thread::spawn(move || receive(&inbox));
    for n in 1..=20 {
        send.send(vec![n; 50 * n as usize]).unwrap();
    }
    drop(send);
    println!("{sum} {}", reader.join().unwrap());
}
