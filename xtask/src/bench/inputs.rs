//! Inputs for the benchmark programs, generated: the same bytes on every machine and in every year.

use std::fmt::Write as _;

/// A small generator with a fixed seed (a linear congruence is random enough for text).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// Text of `bytes` bytes that compresses like prose: words of a skewed vocabulary, lines, now and then a number.
pub fn prose(bytes: usize, seed: u64) -> String {
    let mut dice = Dice::new(seed);
    let vocabulary: Vec<String> = (0..3000)
        .map(|_| {
            let length = 2 + dice.below(9);
            (0..length)
                .map(|_| {
                    char::from(b"etaoinshrdlucmfwypvbgkjqxz"[dice.below(26).min(dice.below(26)) as usize])
                })
                .collect()
        })
        .collect();
    let mut text = String::with_capacity(bytes + 100);
    while text.len() < bytes {
        let rank = dice.below(3000).min(dice.below(3000)).min(dice.below(3000));
        text.push_str(&vocabulary[rank as usize]);
        match dice.below(40) {
            0 => text.push('\n'),
            1 => {
                let _ = write!(text, " {} ", dice.below(100_000));
            }
            _ => text.push(' '),
        }
    }
    text.truncate(bytes);
    text
}

/// A database session: tables, an index, joins, aggregates, text search, updates in a transaction.
pub fn sql() -> String {
    "PRAGMA journal_mode = memory;
     CREATE TABLE item(id INTEGER PRIMARY KEY, kind INTEGER, price REAL, name TEXT);
     CREATE TABLE sale(item INTEGER, day INTEGER, amount INTEGER);
     BEGIN;
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
       INSERT INTO item SELECT i, i % 97, (i * 7919 % 10007) / 100.0, printf('item %d of %d', i * 31 % 9973, i) FROM n;
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120000)
       INSERT INTO sale SELECT i * 7907 % 40000 + 1, i % 365, i % 13 + 1 FROM n;
     CREATE INDEX by_item ON sale(item);
     COMMIT;
     SELECT kind, count(*), round(sum(price * amount), 2) FROM item JOIN sale ON sale.item = item.id GROUP BY kind ORDER BY 3 DESC LIMIT 5;
     SELECT count(*) FROM item WHERE name LIKE '%77%';
     UPDATE item SET price = price * 1.1 WHERE kind IN (SELECT kind FROM item GROUP BY kind HAVING avg(price) > 50);
     SELECT day, sum(amount) s FROM sale GROUP BY day ORDER BY s DESC, day LIMIT 3;
     SELECT round(sum(price), 2) FROM item;\n"
        .to_owned()
}

/// A Python program: dictionaries, strings, objects, comprehensions, sorting, json and regular expressions.
pub fn python() -> String {
    "import json, re
class Point:
    __slots__ = ('x', 'y')
    def __init__(self, x, y): self.x, self.y = x, y
    def norm(self): return self.x * self.x + self.y * self.y
words = {}
seed = 42
for i in range(120000):
    seed = (seed * 1103515245 + 12345) % 2147483648
    word = 'w%d' % (seed % 5000)
    words[word] = words.get(word, 0) + 1
points = [Point(i % 100, i // 7) for i in range(80000)]
total = sum(p.norm() for p in points)
text = json.dumps(words, sort_keys=True)
again = json.loads(text)
digits = re.findall(r'w(\\d+)', text)
print(total, len(again), sum(map(int, digits)), sorted(again.items(), key=lambda kv: (-kv[1], kv[0]))[:3])
"
    .to_owned()
}

/// A C file without includes: 32 functions of loops, switches, structures and floating point.
pub fn c_source() -> String {
    let mut dice = Dice::new(3);
    let mut text = String::from(
        "typedef struct { int a, b; double c; struct { long d[4]; } e; } S;\nextern int outside(int);\n",
    );
    for f in 0..32 {
        let _ = write!(
            text,
            "int f{f}(int n, S *s, const int *v) {{\n  int r = {};\n  for (int i = 0; i < n; i++) {{\n    switch (v[i] % 9) {{\n",
            dice.below(1000)
        );
        for case in 0..8 {
            let _ = match dice.below(5) {
                0 => writeln!(text, "    case {case}: r += s[i].a * {} + outside(r); break;", dice.below(90)),
                1 => writeln!(
                    text,
                    "    case {case}: s[i].c = s[i].c * {}.5 + r; s[i].e.d[i & 3] ^= r; break;",
                    dice.below(90)
                ),
                2 => writeln!(
                    text,
                    "    case {case}: for (int k = 0; k < {}; k++) r ^= v[k] << (k % 7); break;",
                    2 + dice.below(30)
                ),
                3 => writeln!(
                    text,
                    "    case {case}: if (r > {} && s[i].b) r -= v[r & 15]; else r = ~r; break;",
                    dice.below(5000)
                ),
                _ => writeln!(
                    text,
                    "    case {case}: r = f{}(n / 2, s + i, v) + (r >> 2); break;",
                    dice.below(f + 1)
                ),
            };
        }
        text.push_str("    default: r++;\n    }\n  }\n  return r;\n}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_the_same_everywhere() {
        let sum = |s: &str| s.bytes().fold(0u64, |h, b| h.wrapping_mul(31).wrapping_add(b.into()));
        assert_eq!((sum(&prose(10_000, 1)), sum(&c_source())), (PROSE_SUM, C_SUM));
    }

    const PROSE_SUM: u64 = 13637918688516052662;
    const C_SUM: u64 = 17815519055068787356;
}
