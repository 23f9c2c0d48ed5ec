//! iceoryx2 between two processes of its own, each pinned to a processor; what
//! bench/msg/ref is in C.
//!
//!     peer trip|flow COUNT 8|56 CPU CPU
//!
//! trip: round trips, polled; flow: one way, polled, nothing lost. Prints
//! nanoseconds an operation. A tenth of the work comes first and is not counted.

use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::*;
use std::process::{exit, Command};
use std::time::Instant;

type Error = Box<dyn std::error::Error>;
type Out<P> = Publisher<ipc::Service, P, ()>;
type In<P> = Subscriber<ipc::Service, P, ()>;

fn pin(cpu: usize) {
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set);
        if std::env::var_os("PEER_ROOM").is_some() {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        }
    }
}

fn send<P: Copy + std::fmt::Debug + ZeroCopySend + 'static>(out: &Out<P>, p: P) -> Result<(), Error> {
    out.loan_uninit()?.write_payload(p).send()?;
    Ok(())
}

fn receive<P: Copy + std::fmt::Debug + ZeroCopySend + 'static>(from: &In<P>) -> Result<P, Error> {
    loop {
        if let Some(s) = from.receive()? {
            return Ok(*s);
        }
    }
}

/// The ends of this process: what it sends goes to topic a, or b for the child.
fn ends<P: Copy + std::fmt::Debug + ZeroCopySend + 'static>(
    node: &Node<ipc::Service>,
    room: &str,
    child: bool,
) -> Result<(Out<P>, In<P>), Error> {
    let topic = |name: String| -> Result<_, Error> {
        Ok(node
            .service_builder(&name.as_str().try_into()?)
            .publish_subscribe::<P>()
            .enable_safe_overflow(false)
            .subscriber_max_buffer_size(60)
            .open_or_create()?)
    };
    let (a, b) = (topic(format!("{room}/a"))?, topic(format!("{room}/b"))?);
    let (to, from) = if child { (b, a) } else { (a, b) };
    let out = to
        .publisher_builder()
        .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
        .create()?;
    let inn = from.subscriber_builder().create()?;
    // Both ends must be there, or the first messages go nowhere.
    while to.dynamic_config().number_of_subscribers() < 1 || from.dynamic_config().number_of_publishers() < 1 {
        std::thread::yield_now();
    }
    out.update_connections()?;
    inn.update_connections()?;
    Ok((out, inn))
}

fn run<P: Copy + std::fmt::Debug + ZeroCopySend + 'static>(
    mode: &str,
    n: usize,
    room: &str,
    child: bool,
    make: fn(u64) -> P,
) -> Result<f64, Error> {
    set_log_level(LogLevel::Error);
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    let (out, inn) = ends::<P>(&node, room, child)?;
    if child {
        send(&out, make(0))?;
    } else {
        receive(&inn)?;
    }
    let mut start = Instant::now();
    for (i, count) in [n / 10, n].into_iter().enumerate() {
        if i == 1 {
            start = Instant::now();
        }
        for k in 0..count {
            match (mode, child) {
                ("trip", false) => {
                    send(&out, make(k as u64))?;
                    receive(&inn)?;
                }
                ("trip", true) => {
                    let p = receive(&inn)?;
                    send(&out, p)?;
                }
                (_, false) => send(&out, make(k as u64))?,
                (_, true) => {
                    std::hint::black_box(receive(&inn)?);
                }
            }
        }
        if mode == "flow" {
            if child {
                send(&out, make(0))?;
            } else {
                receive(&inn)?;
            }
        }
    }
    Ok(start.elapsed().as_nanos() as f64 / n as f64)
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |i: usize| args.get(i).and_then(|s| s.parse::<usize>().ok());
    let (Some(n), Some(size), Some(here), Some(there)) = (number(2), number(3), number(4), number(5)) else {
        eprintln!("usage: peer trip|flow COUNT 8|56 CPU CPU");
        exit(2);
    };
    let (room, child) = match std::env::var("PEER_ROOM") {
        Ok(r) => (r, true),
        Err(_) => (format!("peer-{}", std::process::id()), false),
    };
    pin(if child { there } else { here });
    let mut kid = None;
    if !child {
        let spawned = Command::new("/proc/self/exe").args(&args[1..]).env("PEER_ROOM", &room).spawn();
        kid = Some(spawned.expect("starting the other process"));
    }
    let result = match size {
        8 => run::<u64>(&args[1], n, &room, child, |k| k),
        _ => run::<[u64; 7]>(&args[1], n, &room, child, |k| [k; 7]),
    };
    if let Some(mut k) = kid {
        if result.is_err() {
            let _ = k.kill();
        }
        let _ = k.wait();
    }
    match result {
        Ok(ns) if !child => println!("{ns:.2}"),
        Ok(_) => {}
        Err(e) => {
            eprintln!("peer: {e}");
            exit(1);
        }
    }
}
