//! JSON lines to a writer that is slow, breaks, and comes back.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use expect_test::expect;
use kubediff_delivery::Lines;

use crate::log::Memory;
use crate::running::{Running, quick};

/// Takes some bytes at a time, and fails once after so many.
#[derive(Clone)]
struct Pipe {
    taken: Arc<Mutex<Vec<u8>>>,
    fails_after: Option<usize>,
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = self.taken.lock().expect("no panic");
        if self.fails_after.is_some_and(|most| taken.len() >= most) {
            self.fails_after = None;
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let some = &bytes[..bytes.len().min(10)];
        taken.extend(some);
        Ok(some.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn written(fails_after: Option<usize>) -> String {
    let pipe = Pipe { taken: Arc::default(), fails_after };
    let log = Memory::of([1, 2, 1]);
    let running = Running::start(&log, Lines::to(pipe.clone()), quick());
    log.reaches(3).await;
    running.stop().await;
    String::from_utf8(pipe.taken.lock().expect("no panic").clone()).expect("text")
}

#[tokio::test]
async fn each_record_is_a_line() {
    expect![[r#"
        {"id":"log-1-1","number":1,"change":{"name":"object-1","n":1}}
        {"id":"log-1-2","number":2,"change":{"name":"object-2","n":2}}
        {"id":"log-1-3","number":3,"change":{"name":"object-1","n":3}}
    "#]]
    .assert_eq(&written(None).await);
}

#[tokio::test]
async fn after_a_failure_the_batch_begins_on_a_line_of_its_own() {
    expect![[r#"
        {"id":"log-1-1","number":1,"change":{"name":"object-1","n":1
        {"id":"log-1-1","number":1,"change":{"name":"object-1","n":1}}
        {"id":"log-1-2","number":2,"change":{"name":"object-2","n":2}}
        {"id":"log-1-3","number":3,"change":{"name":"object-1","n":3}}
    "#]]
    .assert_eq(&written(Some(60)).await);
}

/// A reader that does not read.
struct Stuck(std::sync::mpsc::Receiver<()>);

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // It ends when the sender is dropped.
        let _ = self.0.recv();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn k6_a_write_that_blocks_is_visible_and_neither_taken_nor_waited_for() {
    let (reader, stuck) = std::sync::mpsc::channel();
    let log = Memory::of([1, 2, 3, 4]);
    tokio::time::pause();
    let mut running = Running::start(&log, Lines::to(Stuck(stuck)), quick());
    // A thread of the runtime keeps the clock still.
    tokio::task::yield_now().await;
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(running.trouble().await, "it has been busy with one batch for 5 s");
    log.append([5]);
    let status = running.status.wait_for(|status| status.behind == 5).await.expect("a driver").clone();
    assert_eq!((status.position, status.taken), (0, 0));
    running.stop.cancel();
    tokio::task::yield_now().await;
    tokio::time::advance(Duration::from_secs(6)).await;
    running.stop().await;
    assert_eq!(log.settled.borrow().position, 0);
    drop(reader);
}
