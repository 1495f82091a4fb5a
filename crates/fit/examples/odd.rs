//! scratch
use fit::*;
fn show(name: &str, s: Vec<Sample>) { let f = fit::fit(&s); println!("{name:<34} {:?} {:.2} [{}] k={:.2} [{:.2},{:.2}] sp={:.3} out={} | {} | {:?}", f.verdict, f.confidence, f.formula, f.exponent, f.exponent_ci[0], f.exponent_ci[1], f.spread, f.outliers, f.reason, f.alternatives.iter().take(3).map(|(c,p)| format!("{c} {p:.2}")).collect::<Vec<_>>()); 
 let b = bounds(&s); println!("      bounds O({}) Ω({})", b.upper.map_or("?".into(), |c| c.to_string()), b.lower.map_or("?".into(), |c| c.to_string())); }
fn gen_(ns: impl Iterator<Item = u64>, f: impl Fn(f64) -> f64) -> Vec<Sample> { ns.map(|n| Sample::new(n as f64, f(n as f64))).collect() }
fn main() {
    show("exact 120+7n 1..50", gen_(1..=50, |n| 120.0 + 7.0 * n));
    show("exact 7n 1..50", gen_(1..=50, |n| 7.0 * n));
    show("exact n(n-1)/2 1..100", gen_(1..=100, |n| n * (n - 1.0) / 2.0));
    show("exact 3+n(n-1)/2 1..100", gen_(1..=100, |n| 3.0 + n * (n - 1.0) / 2.0));
    show("exact n^3/6-n^2/2+n/3", gen_(3..=60, |n| n.powi(3) / 6.0 - n * n / 2.0 + n / 3.0 + 5.0));
    show("exact n^3+3n^2+2n", gen_(3..=60, |n| n.powi(3) + 3.0*n * n + 2.0*n));
    show("floor(n log n) - n", gen_(1..=200, |n| (n * n.log2()).floor() - n + 10.0));
    fn ms(n: u64) -> f64 { if n <= 1 { 3.0 } else { ms(n / 2) + ms(n - n / 2) + 7.0 * n as f64 + 5.0 } }
    show("mergesort rec 1..300", gen_(1..=300, |n| ms(n as u64)));
    show("mergesort rec 2^k", gen_((0..14).map(|k| 1 << k), |n| ms(n as u64)));
    fn bs(n: u64) -> f64 { if n <= 1 { 5.0 } else { bs(n / 2) + 9.0 } }
    show("binary search 1..1000", gen_(1..=1000, |n| bs(n as u64)));
    show("tiny ints 3,4,5 by n/10", gen_(1..=30, |n| 3.0 + (n / 10.0).floor().min(2.0)));
    show("tiny ints 1,2,3 log", gen_(1..=64, |n| 1.0 + n.log2().floor()));
    show("const 3", gen_(1..=30, |_| 3.0));
    show("const 0", gen_(1..=30, |_| 0.0));
    show("const 3, two 4s", gen_(1..=30, |n| if n == 7.0 || n == 20.0 { 4.0 } else { 3.0 }));
    show("pow2 ceil step 1..200", gen_(1..=200, |n| 2f64.powf(n.log2().ceil()) * 10.0));
    show("vector doubling amortised", gen_(1..=200, |n| n * 4.0 + 2f64.powf(n.log2().ceil())));
    show("one step at 1000", gen_((1..=40).map(|i| i * 50), |n| if n < 1000.0 { 100.0 } else { 250.0 }));
    show("bimodal n / n^2 ", gen_(10..=100, |n| if (n as u64 * 7919) % 13 < 6 { 5.0 * n } else { n * n }));
    show("bimodal 50 / 20n", gen_(10..=100, |n| if (n as u64 * 7919) % 13 < 6 { 50.0 } else { 20.0 * n }));
    show("bimodal 50 / 5000", gen_(10..=100, |n| if (n as u64 * 7919) % 13 < 6 { 50.0 } else { 5000.0 }));
    show("early exit: 10% 5 else 20n", gen_(10..=100, |n| if (n as u64 * 7919) % 13 < 1 { 5.0 } else { 20.0 * n }));
    show("huge const tiny slope exact", gen_((1..=50).map(|i| i * 20), |n| 1e6 + 3.0 * n));
    show("1e6+300n exact", gen_((1..=50).map(|i| i * 20), |n| 1e6 + 300.0 * n));
    show("2 sizes", gen_([10, 1000].into_iter(), |n| n));
    show("3 sizes exact n", gen_([10, 100, 1000].into_iter(), |n| 3.0 * n));
    show("3 sizes n^2", gen_([10, 100, 1000].into_iter(), |n| 3.0 * n*n));
    show("4 sizes n^2", gen_([10, 100, 1000, 5000].into_iter(), |n| 30.0+ 3.0 * n*n));
    show("4 sizes near const", gen_([9, 10, 11, 12].into_iter(), |n| 100.0 + n));
    show("5 sizes linear 5..9", gen_(5..=9, |n| 100.0 + 10.0*n));
    show("narrow 1000..1100", gen_((0..50).map(|i| 1000 + 2 * i), |n| 3.0 * n));
    show("falling", gen_(1..=50, |n| 1000.0 / n));
    show("falling slight", gen_(1..=50, |n| 1000.0 - n));
    show("fib 1.618^n", gen_(3..=30, |n| 3.0 * 1.618f64.powf(n)));
    show("2^n exact", gen_(1..=20, |n| 5.0 + 2.0 * n.exp2()));
    show("3^n", gen_(1..=15, |n| 5.0 + 3f64.powf(n)));
    show("n^2.5", gen_(1..=80, |n| 5.0 + n.powf(2.5)));
    show("n^4", gen_(1..=80, |n| 5.0 + n.powi(4)));
    show("n loglog n", gen_((2..20).map(|k| 1 << k), |n| n * n.log2().log2().max(0.1)));
    show("log^2 n", gen_((2..20).map(|k| 1 << k), |n| 20.0 + n.log2().powi(2)));
    show("n log^2 n", gen_((2..20).map(|k| 1 << k), |n| 20.0 + n* n.log2().powi(2)));
    show("insertion<16 then nlogn", gen_(1..=200, |n| if n < 16.0 { 5.0 + n * n } else { 200.0 + 12.0 * n * n.log2() }));
    show("3 regimes cache", gen_((1..60).map(|i| (10.0 * 1.2f64.powi(i)) as u64), |n| n * if n < 1e3 { 1.0 } else if n < 5e4 { 3.0 } else { 10.0 }));
    show("n=0 included", gen_(0..=40, |n| 10.0 * n));
    show("n=0 only const", gen_(0..=40, |_| 10.0));
    show("1e300", gen_(1..=40, |n| 1e300 * n));
    show("two n's many samples", (0..100).map(|i| Sample::new((i % 2 + 1) as f64, i as f64)).collect());
    let mut v: Vec<Sample> = gen_(1..=40, |n| 50.0 + 10.0 * n); for (i, s) in v.iter_mut().enumerate() { s.weight = 1000.0; s.variance = (s.y * 0.5).powi(2); s.y *= 1.0 + 0.01 * ((i * 7919 % 11) as f64 - 5.0) / 5.0; }
    show("weighted w/ variance", v);
}
