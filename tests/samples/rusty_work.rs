//! Everyday work of a Rust program whose number of steps depends on nothing around it: trees, sorting, text, closures
//! and traits, wide integers, floating point. Its `main` is C's: Rust's own start asks the kernel where the stack ends,
//! and how long that takes depends on what is mapped.
#![no_main]
use std::collections::BTreeMap;
use std::fmt::Write;

trait Shape {
    fn area(&self) -> f64;
    fn name(&self) -> String {
        "shape".to_string()
    }
}

struct Square(f64);
struct Circle(f64);

impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}

impl Shape for Circle {
    fn area(&self) -> f64 {
        std::f64::consts::PI * self.0 * self.0
    }
    fn name(&self) -> String {
        format!("circle of {:.1}", self.0)
    }
}

fn words() -> BTreeMap<String, Vec<usize>> {
    let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, word) in "a river and a stone and a cloud above the river".split(' ').enumerate() {
        found.entry(word.to_uppercase()).or_default().push(at);
    }
    found
}

fn sorted() -> Result<Vec<i64>, std::num::ParseIntError> {
    let mut numbers = "31 -4 159 26 5 -35 8979 32 -38 46".split(' ').map(str::parse).collect::<Result<Vec<i64>, _>>()?;
    numbers.sort_by_key(|n| std::cmp::Reverse(n.rem_euclid(50)));
    Ok(numbers)
}

fn wide(mut n: u128) -> u32 {
    let mut digits = 0;
    while n > 0 {
        n /= 7;
        digits += 1;
    }
    digits
}

#[no_mangle]
pub extern "C" fn main(_count: i32, _words: *const *const u8) -> i32 {
    let mut text = String::new();
    for (word, places) in words() {
        write!(text, "{word}{places:?} ").unwrap();
    }
    println!("{}\n{:?} {:?}", text.trim_end(), sorted(), "7x".parse::<i64>().is_err());
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(1.5)), Box::new(Circle(2.0)), Box::new(Square(0.25))];
    let largest = shapes.iter().max_by(|a, b| a.area().total_cmp(&b.area())).unwrap();
    println!("{} {:.3} {}", largest.name(), shapes.iter().map(|s| s.area()).sum::<f64>(), wide(u128::MAX));
    9
}
