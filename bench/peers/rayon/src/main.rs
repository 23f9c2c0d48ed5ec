//! The same programs on rayon.
//!
//!   peer fib|stress|sort|parsort N WORKERS REPS    prints nanoseconds, a line each

use std::hint::black_box;
use std::time::Instant;

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (x, y) = rayon::join(|| fib(n - 1), || fib(n - 2));
    x + y
}

fn stress(n: u64) {
    if n > 0 {
        rayon::join(|| stress(n - 1), || stress(n - 1));
    }
}

// The merge sort of the task library: from x to itself, or to buf if over.

// The 19 exchanges of Batcher's odd-even merge sort of eight.
const NETWORK: [(usize, usize); 19] = [
    (0, 1), (2, 3), (4, 5), (6, 7), (0, 2), (1, 3), (4, 6), (5, 7), (1, 2), (5, 6),
    (0, 4), (1, 5), (2, 6), (3, 7), (2, 4), (3, 5), (1, 2), (3, 4), (5, 6),
];

fn network(x: &mut [i32; 8]) {
    let mut v = *x;
    for (i, j) in NETWORK {
        (v[i], v[j]) = (v[i].min(v[j]), v[i].max(v[j]));
    }
    *x = v;
}

fn insertion(x: &mut [i32]) {
    for i in 1..x.len() {
        let v = x[i];
        let mut j = i;
        while j > 0 && v < x[j - 1] {
            x[j] = x[j - 1];
            j -= 1;
        }
        x[j] = v;
    }
}

fn merge_ends(a: &[i32], b: &[i32], to: &mut [i32], h: usize) -> (usize, usize) {
    let (mut i, mut j) = (0, 0);
    let (mut p, mut q) = (a.len() - 1, b.len() - 1);
    let end = to.len() - 1;
    for k in 0..h {
        let (x, y) = (a[i], b[j]);
        let less = y < x;
        to[k] = if less { y } else { x };
        j += less as usize;
        i += !less as usize;
        let (x, y) = (a[p], b[q]);
        let less = y < x;
        to[end - k] = if less { x } else { y };
        p = p.wrapping_sub(less as usize);
        q = q.wrapping_sub(!less as usize);
    }
    (i, (a.len() - 1).wrapping_sub(p))
}

fn merge_run(mut a: &[i32], mut b: &[i32], mut to: &mut [i32]) {
    loop {
        let h = a.len().min(b.len()) / 2;
        if h == 0 {
            break;
        }
        let (i, p) = merge_ends(a, b, to, h);
        a = &a[i..a.len() - p];
        b = &b[h - i..b.len() - (h - p)];
        let n = to.len();
        to = &mut to[h..n - h];
    }
    while !a.is_empty() && !b.is_empty() {
        if b[0] < a[0] {
            to[0] = b[0];
            b = &b[1..];
        } else {
            to[0] = a[0];
            a = &a[1..];
        }
        to = &mut to[1..];
    }
    to[..a.len()].copy_from_slice(a);
    to[a.len()..].copy_from_slice(b);
}

fn sort_run(x: &mut [i32], buf: &mut [i32], over: bool) {
    let n = x.len();
    let mut passes = 0;
    let mut w = 8;
    while w < n {
        passes += 1;
        w *= 2;
    }
    let (mut src, mut dst) = (x, buf);
    if over == (passes % 2 == 0) {
        dst.copy_from_slice(src);
        std::mem::swap(&mut src, &mut dst);
    }
    for run in src.chunks_mut(8) {
        match run.try_into() {
            Ok(eight) => network(eight),
            Err(_) => insertion(run),
        }
    }
    let mut w = 8;
    while w < n {
        let mut lo = 0;
        while lo < n {
            let (mid, hi) = ((lo + w).min(n), (lo + 2 * w).min(n));
            merge_run(&src[lo..mid], &src[mid..hi], &mut dst[lo..hi]);
            lo += 2 * w;
        }
        std::mem::swap(&mut src, &mut dst);
        w *= 2;
    }
}

fn merge_to(a: &[i32], b: &[i32], to: &mut [i32]) {
    if to.len() <= 1 << 14 {
        return merge_run(a, b, to);
    }
    let (i, j) = if a.len() >= b.len() {
        let i = a.len() / 2;
        (i, b.partition_point(|v| *v < a[i]))
    } else {
        let j = b.len() / 2;
        (a.partition_point(|v| *v <= b[j]), j)
    };
    let (l, r) = to.split_at_mut(i + j);
    rayon::join(|| merge_to(&a[..i], &b[..j], l), || merge_to(&a[i..], &b[j..], r));
}

fn sort_to(x: &mut [i32], buf: &mut [i32], over: bool) {
    if x.len() <= 4096 {
        return sort_run(x, buf, over);
    }
    let m = x.len() / 2;
    {
        let (xl, xr) = x.split_at_mut(m);
        let (bl, br) = buf.split_at_mut(m);
        rayon::join(|| sort_to(xl, bl, !over), || sort_to(xr, br, !over));
    }
    if over {
        merge_to(&x[..m], &x[m..], buf);
    } else {
        merge_to(&buf[..m], &buf[m..], x);
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.len() != 5 {
        eprintln!("usage: peer fib|stress|sort|parsort N WORKERS REPS");
        std::process::exit(2);
    }
    let n: usize = args[2].parse().expect("N");
    let workers: usize = args[3].parse().expect("WORKERS");
    let reps: usize = args[4].parse().expect("REPS");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).build().expect("pool");
    for _ in 0..reps {
        let sorting = args[1].ends_with("sort");
        let mut s: u64 = 88172645463325252;
        let mut x: Vec<i32> = (0..if sorting { n } else { 0 })
            .map(|_| {
                s ^= s << 13;
                s ^= s >> 7;
                s ^= s << 17;
                s as i32
            })
            .collect();
        let t = pool.install(|| {
            let t = Instant::now();
            match args[1].as_str() {
                "fib" => {
                    black_box(fib(n as u64));
                }
                "stress" => stress(n as u64),
                "sort" => {
                    let mut buf = vec![0; n];
                    sort_to(&mut x, &mut buf, false);
                }
                _ => {
                    use rayon::slice::ParallelSliceMut;
                    x.par_sort();
                }
            }
            t.elapsed()
        });
        assert!(x.windows(2).all(|w| w[0] <= w[1]));
        println!("{}", t.as_nanos());
    }
}
