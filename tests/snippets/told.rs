// What told.c is in C: by reference and value, matches, closures, iterators, structures in registers.
use std::sync::atomic::{AtomicI64, Ordering};

static OPAQUE: AtomicI64 = AtomicI64::new(0);

#[inline(never)]
fn seen(v: i64) {
    OPAQUE.fetch_add(v, Ordering::Relaxed);
}

#[derive(Clone, Copy)]
struct Point {
    x: i32,
    y: i32,
}

#[inline(never)]
fn changed(mut n: i32, m: i64, mut small: u8, factor: f64, p: Point) -> i64 {
    let sum = n as i64 + m;
    n = n.wrapping_mul(3) + p.x;
    seen(n as i64);
    small = small.wrapping_add(9);
    let half = factor / 2.0;
    seen(small as i64 + half as i64);
    sum + n as i64 + p.y as i64 + half as i64
}

#[inline(never)]
fn listed(list: &[i64], start: i64) -> i64 {
    let mut total = start;
    for (place, each) in list.iter().enumerate() {
        let twice = each * 2;
        total += twice + place as i64;
        seen(total);
    }
    total
}

#[inline(never)]
fn chosen(which: Option<i32>, otherwise: i64) -> i64 {
    let answer = match which {
        Some(found) if found > 10 => found as i64 + otherwise,
        Some(found) => {
            let less = found as i64 - otherwise;
            seen(less);
            less
        }
        None => otherwise * 7,
    };
    seen(answer);
    answer
}

#[inline(never)]
fn recursive(depth: u32, carried: u64) -> u64 {
    let mine = carried * 2 + depth as u64;
    let below = if depth > 0 { recursive(depth - 1, mine) } else { 1 };
    seen(below as i64);
    mine + below
}

fn main() {
    let mut sum = 0i64;
    for turn in 0..3i64 {
        sum += changed(turn as i32 + 5, turn * 1000, 250, turn as f64 / 4.0, Point { x: turn as i32, y: 4 });
        sum += listed(&[3, 50, 700, turn], turn + 1);
        sum += chosen(if turn == 2 { None } else { Some(turn as i32 * 15 + 2) }, turn + 9);
        sum += recursive(4, turn as u64 + 1) as i64;
    }
    println!("{} {}", sum, OPAQUE.load(Ordering::Relaxed));
}
