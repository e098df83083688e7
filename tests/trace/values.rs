// What Rust passes and returns in ways of its own: pairs in registers, forms with and without numbers, what lies where
// registers have run out. languages.py says what each call is called with.

// What nobody can see through (black_box, also before 1.66).
#[inline(never)]
fn any<T>(v: T) -> T {
    let same = unsafe { std::ptr::read_volatile(&v) };
    std::mem::forget(v);
    same
}

#[derive(Clone, Copy)]
pub struct Small(u8, u32);
#[derive(Clone, Copy)]
pub struct Reals { a: f32, b: f32 }
#[derive(Clone, Copy)]
pub struct Mixed { x: f64, n: u16 }
#[derive(Clone, Copy)]
pub struct Three { a: u32, b: u32, c: u32 }
#[derive(Clone, Copy)]
pub struct Metres(f32);
#[derive(Clone, Copy)]
pub enum Shape { Dot, Line { from: u32, to: u32 }, Circle(f64) }
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Plain { k: u8, n: u32 }

#[inline(never)]
pub fn small(s: Small, n: u64) -> Small { Small(s.0 + 1, s.1 + n as u32) }
#[inline(never)]
pub fn reals(p: Reals, x: f64) -> Reals { Reals { a: p.a * x as f32, b: p.b } }
#[inline(never)]
pub fn mixed(n: u8, p: Mixed, x: f64) -> Mixed { Mixed { x: p.x + x, n: p.n + n as u16 } }
#[inline(never)]
pub fn three(t: Three, n: u64) -> Three { Three { a: t.c, b: t.b + n as u32, c: t.a } }
#[inline(never)]
pub fn metres(m: Metres, n: i32) -> Metres { Metres(m.0 * n as f32) }
#[inline(never)]
pub fn maybe(o: Option<u64>, n: u64) -> Option<u64> { o.map(|x| x + n) }
#[inline(never)]
pub fn real(o: Option<f64>, n: i8) -> Option<f64> { o.map(|x| x * n as f64) }
#[inline(never)]
pub fn worked(o: Option<u32>, n: u64) -> Result<u32, u8> { o.map(|x| x + n as u32).ok_or(n as u8) }
#[inline(never)]
pub fn refers(o: Option<&u64>, n: u64) -> u64 { *o.unwrap_or(&9) + n }
#[inline(never)]
pub fn hides(o: Option<(bool, u32)>, n: u64) -> Option<bool> { o.map(|(b, x)| b && x as u64 == n) }
#[inline(never)]
pub fn shape(s: Shape, n: u64) -> Shape {
    match s {
        Shape::Dot => Shape::Circle(n as f64 / 4.0),
        Shape::Line { from, to } => Shape::Line { from: to, to: from + n as u32 },
        Shape::Circle(_) => Shape::Dot,
    }
}
#[inline(never)]
pub fn owned(s: String, n: u64) -> String { s + &n.to_string() }
#[inline(never)]
pub fn texts(a: &str, b: &str, n: usize) -> usize { a.len() + b.len() + n }
#[inline(never)]
pub fn bytes(b: [u8; 3], n: u64) -> [u8; 3] { [b[2], b[1], n as u8] }
#[inline(never)]
pub fn words(w: [u64; 2], n: u64) -> [u64; 2] { [w[1], w[0] + n] }
#[inline(never)]
pub fn wide(w: u128, n: u64) -> u128 { w + n as u128 }
#[inline(never)]
pub fn tuple(_unit: (), t: (u16, i64, bool), n: i64) -> (i64, bool) { (t.1 + n, t.2) }
#[inline(never)]
pub fn pattern((a, b): (u16, u8), n: i64) -> i64 { a as i64 + b as i64 + n }
#[inline(never)]
pub fn crowded(a: u8, b: u16, c: u32, d: u64, e: i8, s: &str, f: i16, t: Three) -> i64 {
    a as i64 + b as i64 + c as i64 + d as i64 + e as i64 + s.len() as i64 + f as i64 + t.a as i64
}
#[inline(never)]
#[no_mangle]
pub extern "C" fn as_c_does(p: Plain, n: u64) -> Plain { Plain { k: p.k + 1, n: p.n + n as u32 } }

fn main() {
    let k = any(1u64);
    let mut sum = 0u64;
    sum += any(small(any(Small(k as u8, 2)), k + 2)).1 as u64;
    sum += any(reals(any(Reals { a: 1.5, b: 2.5 }), any(3.0))).a as u64;
    sum += any(mixed(any(7), any(Mixed { x: 0.25, n: 300 }), any(0.5))).n as u64;
    sum += any(three(any(Three { a: 1, b: 2, c: 3 }), k + 3)).a as u64;
    sum += any(metres(any(Metres(1.25)), any(4))).0 as u64;
    sum += any(maybe(any(Some(5)), k + 5)).unwrap_or(0) + any(maybe(any(None), k + 6)).unwrap_or(8);
    sum += any(real(any(Some(1.5)), any(-2))).is_some() as u64 + any(real(any(None), any(3))).is_some() as u64;
    sum += any(worked(any(Some(5)), k + 5)).unwrap() as u64 + any(worked(any(None), k + 6)).is_ok() as u64;
    sum += any(refers(any(None), k + 1)) + any(hides(any(Some((true, 6))), k + 5)).is_some() as u64;
    sum += any(hides(any(None), k + 8)).is_some() as u64;
    for s in [Shape::Dot, Shape::Line { from: 1, to: 2 }, Shape::Circle(0.5)] {
        sum += matches!(any(shape(any(s), k + 4)), Shape::Dot) as u64;
    }
    sum += any(owned(any("a string of its own".to_string()), k + 6)).len() as u64;
    sum += any(texts(any("one"), any("three"), any(7))) as u64;
    sum += any(bytes(any([1, 2, 3]), k + 8))[0] as u64 + any(words(any([1, 2]), k + 6))[0];
    sum += any(wide(any(1 << 70), k + 6)) as u64 + any(tuple((), any((1, -2, true)), any(7))).0 as u64;
    sum += any(pattern(any((3, 4)), any(5))) as u64;
    sum += any(crowded(any(1), any(2), any(3), any(4), any(-5), any("some"), any(-6), any(Three { a: 7, b: 8, c: 9 }))) as u64;
    sum += any(as_c_does(any(Plain { k: 3, n: 4 }), k + 1)).n as u64;
    println!("{}", sum);
}
