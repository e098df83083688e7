//! What Rust's run time does by itself, each way by its name: panics with backtraces, in threads too, caught,
//! twice; stack overflows, which it tells from other faults by the address; processes; errors.
use std::process::Command;
use std::thread;

fn inner(n: u32) -> u32 {
    if n == 0 {
        panic!("at the bottom {}", n)
    }
    inner(n - 1) + 1
}

fn deep(n: u64) -> u64 {
    let a = [n; 100];
    if n == u64::MAX {
        return 0;
    }
    deep(n + 1) + a[(n % 100) as usize]
}

struct Loud(bool);

impl Drop for Loud {
    fn drop(&mut self) {
        if self.0 {
            panic!("and again");
        }
        eprintln!("dropped, panicking: {}", thread::panicking());
    }
}

fn processes() {
    let done = Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]).output().unwrap();
    eprintln!("{:?}", done);
    eprintln!("{:?}", Command::new("/nonexistent").spawn().err());
    let mut child = Command::new("sleep").arg("100").spawn().unwrap();
    child.kill().unwrap();
    eprintln!("{:?}", child.wait());
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    match args.get(1).map(|s| s.as_str()) {
        Some("panic") => {
            let _loud = Loud(false);
            inner(3);
        }
        Some("twice") => {
            let _loud = Loud(true);
            inner(1);
        }
        Some("thread") => {
            let worker = thread::Builder::new().name("worker".into());
            let result = worker.spawn(|| inner(2)).unwrap().join();
            eprintln!("joined, panicked: {}", result.is_err());
            std::process::exit(5)
        }
        Some("caught") => eprintln!("{}", std::panic::catch_unwind(|| inner(1)).is_err()),
        Some("overflow") => eprintln!("{}", deep(args.len() as u64)),
        Some("overflow-thread") => eprintln!("{:?}", thread::spawn(|| deep(2)).join().is_err()),
        Some("index") => eprintln!("{}", args[args.len()]),
        Some("abort") => std::process::abort(),
        Some("processes") => processes(),
        _ => {
            let error = std::fs::File::open("/nonexistent").unwrap_err();
            println!("{} {:?} {:?}", error, error.kind(), std::env::current_exe().is_ok());
        }
    }
}
