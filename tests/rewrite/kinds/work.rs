// Rust: panics that are caught, threads and channels, traits, formatting.
use std::collections::BTreeMap;
use std::panic;
use std::sync::{mpsc, Arc, Mutex};
use std::thread;
trait Shape { fn area(&self) -> f64; }
struct Square(f64);
struct Circle(f64);
impl Shape for Square { fn area(&self) -> f64 { self.0 * self.0 } }
impl Shape for Circle { fn area(&self) -> f64 { 3.0 * self.0 * self.0 } }
fn deep(n: u32) -> u32 { if n == 0 { panic!("deep") } else { deep(n - 1) + 1 } }
fn main() {
    panic::set_hook(Box::new(|_| {}));
    let caught = (0..20).filter(|&i| panic::catch_unwind(|| deep(i)).is_err()).count();
    let shapes: Vec<Box<dyn Shape>> = (0..10).map(|i| -> Box<dyn Shape> {
        if i % 2 == 0 { Box::new(Square(i as f64)) } else { Box::new(Circle(i as f64)) } }).collect();
    let total: f64 = shapes.iter().map(|s| s.area()).sum();
    let sum = Arc::new(Mutex::new(0u64));
    let (tx, rx) = mpsc::channel();
    let threads: Vec<_> = (0..4u64).map(|i| { let (sum, tx) = (sum.clone(), tx.clone()); thread::spawn(move || {
        for k in 0..500 { *sum.lock().unwrap() += k * i; }
        tx.send(i).unwrap();
        if i == 3 { panic!("end") } }) }).collect();
    let failed = threads.into_iter().map(|t| t.join()).filter(|r| r.is_err()).count();
    drop(tx);
    let mut words = BTreeMap::new();
    for i in rx { *words.entry(i % 2).or_insert(0) += i; }
    println!("{} {} {} {} {:?}", caught, total, sum.lock().unwrap(), failed, words);
    std::process::exit(5);
}
