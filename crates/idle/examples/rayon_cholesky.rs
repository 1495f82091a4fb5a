//! A Cholesky factorization by rayon between a serial set-up and a serial tear-down (`test-programs/idle/cholesky.c` is
//! the same with OpenMP tasks). Arguments: blocks per side, block size, rounds of set-up and tear-down.

use rayon::prelude::*;

type Tile = Vec<f64>;

struct Matrix {
    blocks: usize,
    size: usize,
    tiles: Vec<Tile>,
}

impl Matrix {
    #[inline(never)]
    fn set_up(&mut self, rounds: usize) {
        let (n, size) = (self.blocks * self.size, self.size);
        for _ in 0..rounds {
            for i in 0..n {
                for j in 0..=i {
                    let x = if i == j { n as f64 } else { 0.5 * (i as f64 * 0.7 + j as f64 * 0.3).cos() };
                    self.tiles[i / size * self.blocks + j / size][i % size * size + j % size] = x;
                }
            }
        }
    }

    #[inline(never)]
    fn factor(&mut self) {
        let (blocks, size) = (self.blocks, self.size);
        for k in 0..blocks {
            potrf(&mut self.tiles[k * blocks + k], size);
            let diagonal = self.tiles[k * blocks + k].clone();
            self.tiles
                .par_iter_mut()
                .enumerate()
                .filter(|(at, _)| at % blocks == k && at / blocks > k)
                .for_each(|(_, tile)| trsm(&diagonal, tile, size));
            let column: Vec<Tile> = (0..blocks).map(|i| self.tiles[i * blocks + k].clone()).collect();
            self.tiles
                .par_iter_mut()
                .enumerate()
                .filter(|(at, _)| at % blocks > k && at / blocks >= at % blocks)
                .for_each(|(at, tile)| gemm(&column[at / blocks], &column[at % blocks], tile, size));
        }
    }

    #[inline(never)]
    fn tear_down(&self, rounds: usize) -> f64 {
        let (n, size) = (self.blocks * self.size, self.size);
        let mut sum = 0.0;
        for _ in 0..rounds {
            for i in 0..n {
                for j in 0..=i {
                    sum += self.tiles[i / size * self.blocks + j / size][i % size * size + j % size].cos();
                }
            }
        }
        sum
    }
}

#[inline(never)]
fn potrf(a: &mut [f64], size: usize) {
    for k in 0..size {
        a[k * size + k] = a[k * size + k].sqrt();
        for i in k + 1..size {
            a[i * size + k] /= a[k * size + k];
        }
        for j in k + 1..size {
            for i in j..size {
                a[i * size + j] -= a[i * size + k] * a[j * size + k];
            }
        }
    }
}

#[inline(never)]
fn trsm(l: &[f64], a: &mut [f64], size: usize) {
    for r in 0..size {
        for c in 0..size {
            let row: f64 = (0..c).map(|k| a[r * size + k] * l[c * size + k]).sum();
            a[r * size + c] = (a[r * size + c] - row) / l[c * size + c];
        }
    }
}

#[inline(never)]
fn gemm(a: &[f64], b: &[f64], c: &mut [f64], size: usize) {
    for i in 0..size {
        for j in 0..size {
            let x: f64 = (0..size).map(|k| a[i * size + k] * b[j * size + k]).sum();
            c[i * size + j] -= x;
        }
    }
}

fn main() {
    let argument = |i: usize| std::env::args().nth(i).and_then(|a| a.parse().ok());
    let (blocks, size) = (argument(1).unwrap_or(16), argument(2).unwrap_or(64));
    let rounds = argument(3).unwrap_or(10);
    let mut matrix = Matrix { blocks, size, tiles: vec![vec![0.0; size * size]; blocks * blocks] };
    matrix.set_up(rounds);
    matrix.factor();
    println!("{:.6e}", matrix.tear_down(rounds));
}
