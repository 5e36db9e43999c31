//! The rate limiters. The numbers are those of client-go's tests (I10).

use std::time::Duration;

use informer_core::control::Retries;
use informer_core::queue::{Exponential, RateLimiter, TokenBucket, default_rate_limiter};
use informer_core::{ObjectKey, Time};

use super::milliseconds;

fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// The waits, in milliseconds, of so many failures in a row at one time.
fn waits<const N: usize>(limiter: &mut impl RateLimiter<&'static str>, key: &'static str) -> [u64; N] {
    std::array::from_fn(|_| milliseconds(limiter.when(Time::ZERO, &key)))
}

#[test]
fn q3_waits_of_an_item_double_until_it_is_forgotten() {
    let mut limiter = Exponential::new(ms(1), Duration::from_secs(1));
    assert_eq!(waits(&mut limiter, "one"), [1, 2, 4, 8, 16]);
    assert_eq!(limiter.retries(&"one"), 5);
    assert_eq!(waits(&mut limiter, "two"), [1, 2]);
    assert_eq!(limiter.retries(&"two"), 2);
    limiter.forget(&"one");
    assert_eq!(limiter.retries(&"one"), 0);
    assert_eq!(waits(&mut limiter, "one"), [1]);
    assert_eq!(limiter.retries(&"two"), 2);
}

#[test]
fn q3_waits_do_not_overflow() {
    let hours = |hours: u64| Duration::from_secs(3_600 * hours);
    for (first, longest) in [
        (ms(1), Duration::from_secs(1_000)),
        (Duration::from_secs(60), hours(1_000)),
        (Duration::from_nanos(1), Duration::MAX),
        (Duration::MAX, Duration::MAX),
        (Duration::ZERO, Duration::ZERO),
        (hours(2), hours(1)),
    ] {
        let mut limiter = Exponential::new(first, longest);
        let mut before = Duration::ZERO;
        for _ in 0..1_000 {
            let wait = limiter.when(Time::ZERO, &"one");
            assert!(wait >= before && wait <= longest, "{wait:?} after {before:?}");
            assert!(
                wait == longest || before == Duration::ZERO || wait == 2 * before,
                "{wait:?} after {before:?}"
            );
            before = wait;
        }
        assert_eq!(before, longest);
    }
}

#[test]
fn q3_a_bucket_limits_all_items_together_after_a_burst() {
    let mut bucket = TokenBucket::new(ms(100), 3);
    let mut wait = |at: u64, key| bucket.when(Time::ZERO + ms(at), &key).as_millis();
    assert_eq!([wait(0, "a"), wait(0, "b"), wait(0, "a")], [0, 0, 0]);
    assert_eq!([wait(0, "a"), wait(0, "b"), wait(50, "c")], [100, 200, 250]);
    // Six were asked for by 50 ms; the tokens of 400 to 600 ms are free.
    assert_eq!([wait(600, "a"), wait(600, "a"), wait(600, "a"), wait(600, "a")], [0, 0, 0, 100]);
    // A full bucket gets no fuller.
    assert_eq!([wait(60_000, "a"), wait(60_000, "a"), wait(60_000, "a"), wait(60_000, "a")], [0, 0, 0, 100]);
}

#[test]
fn q3_a_bucket_of_odd_sizes_never_refuses() {
    let waits = |interval, burst| waits::<3>(&mut TokenBucket::new(interval, burst), "a");
    assert_eq!(waits(ms(100), 0), [100, 200, 300]);
    assert_eq!(waits(Duration::ZERO, 0), [0, 0, 0]);
    let mut bucket = TokenBucket::new(Duration::MAX, 1);
    assert_eq!(bucket.when(Time::ZERO + ms(1), &"a"), Duration::ZERO);
    assert!(bucket.when(Time::ZERO + ms(2), &"a") < Duration::MAX);
}

#[test]
fn q3_the_default_is_5_ms_doubling_to_1000_s_and_10_per_second_after_100() {
    let mut limiter = default_rate_limiter();
    let first: [u64; 18] = waits(&mut limiter, "one");
    assert_eq!(first, std::array::from_fn(|doublings| 5 << doublings));
    assert_eq!(waits(&mut limiter, "one"), [1_000_000, 1_000_000]);
    assert_eq!(limiter.retries(&"one"), 20);
    limiter.forget(&"one");
    assert_eq!(limiter.retries(&"one"), 0);
    assert_eq!(waits(&mut limiter, "one"), [5]);
    // 20 of the burst are spent.
    let burst: Vec<_> = (0..80).map(|key| format!("key-{key}")).collect();
    let mut limiter = default_rate_limiter();
    for _ in 0..20 {
        limiter.when(Time::ZERO, &"one".to_owned());
    }
    assert!(burst.iter().all(|key| limiter.when(Time::ZERO, key) == ms(5)));
    assert_eq!(limiter.when(Time::ZERO, &"next".to_owned()), ms(100));
    assert_eq!(limiter.when(Time::ZERO, &"and next".to_owned()), ms(200));
}

/// Issue 20: an outage of 4 s in which an object changed 40 times made it wait 999.9 s after it.
#[test]
fn q3_only_time_makes_the_waits_of_a_failing_key_longer() {
    let key = ObjectKey::new(None, "a").unwrap();
    let mut retries = Retries::new(Exponential::new(ms(5), Duration::from_secs(1_000)));
    let (mut now, mut due, mut attempts) = (Time::ZERO, Time::ZERO, 0);
    while now < Time::from_start(Duration::from_secs(4)) {
        // Each change leads to an attempt, and so does the end of each wait.
        due = now + retries.failed(now, &key);
        attempts += 1;
        now = due.min(now + ms(100));
    }
    let wait = due.since(now);
    assert!(wait <= Duration::from_secs(4), "{wait:?} after {attempts} attempts");
    assert_eq!(retries.failures(&key), attempts);
    retries.settled(&key);
    assert_eq!((retries.failures(&key), retries.failed(now, &key)), (0, ms(5)));
}
