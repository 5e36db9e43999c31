//! Credentials on a paused clock, with scripted reads.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use http::StatusCode;
use kube_client::Config;
use tokio::time::{sleep, timeout};

use super::*;

/// Credentials whose reads take a second, with the number of reads that have begun.
fn credentials(
    result: impl Fn(usize) -> Result<Option<SystemTime>, &'static str> + Send + Sync + 'static,
) -> (Credentials, Arc<AtomicUsize>) {
    let begun = Arc::<AtomicUsize>::default();
    let counted = begun.clone();
    let read = move || {
        let result = result(counted.fetch_add(1, Ordering::Relaxed) + 1);
        let alive = counted.clone();
        async move {
            sleep(Duration::from_secs(1)).await;
            drop(alive);
            Ok(Fresh { client: client(), expires: result? })
        }
        .boxed()
    };
    (Credentials::new(Box::new(read), None), begun)
}

fn client() -> Client {
    Client::try_from(Config::new(http::Uri::from_static("http://server.example"))).unwrap()
}

fn reads(begun: &AtomicUsize) -> usize {
    begun.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn w15_requests_that_are_refused_together_read_the_credentials_once() {
    let (credentials, begun) = credentials(|_| Ok(None));
    let all = || futures_util::future::join_all((0..100).map(|_| credentials.current()));
    assert!(all().await.iter().all(|current| current.as_ref().unwrap().number == 1));
    assert_eq!(reads(&begun), 1);
    for number in [1, 2] {
        credentials.answered(number, StatusCode::OK);
        credentials.answered(number, StatusCode::UNAUTHORIZED);
        // Late answers to requests with older credentials do not count.
        credentials.answered(number - 1, StatusCode::UNAUTHORIZED);
        let refreshed = futures_util::future::join_all((0..100).map(|_| credentials.refresh())).await;
        assert!(refreshed.iter().all(Result::is_ok));
        assert_eq!(credentials.current().await.unwrap().number, number + 1);
    }
    assert_eq!(reads(&begun), 3);
}

#[tokio::test(start_paused = true)]
async fn w15_credentials_that_are_refused_again_and_again_are_read_at_growing_intervals() {
    let (credentials, begun) = credentials(|_| Ok(None));
    // Some informers ask each second for ten minutes.
    for _ in 0..600 {
        let asked = (0..10).map(|_| async {
            let current = credentials.current().await.unwrap();
            credentials.answered(current.number, StatusCode::UNAUTHORIZED);
            credentials.refresh().await.unwrap();
        });
        futures_util::future::join_all(asked).await;
        sleep(Duration::from_secs(1)).await;
    }
    assert!((15..=40).contains(&reads(&begun)), "{}", reads(&begun));
    // When the server has accepted credentials once and then refuses them, they are read again at once.
    let before = reads(&begun);
    let current = credentials.current().await.unwrap();
    credentials.answered(current.number, StatusCode::OK);
    credentials.answered(current.number, StatusCode::UNAUTHORIZED);
    credentials.refresh().await.unwrap();
    assert_eq!(reads(&begun), before + 1);
}

#[tokio::test(start_paused = true)]
async fn w15_a_read_that_fails_is_not_repeated_by_each_request() {
    let (credentials, begun) = credentials(|number| if number < 4 { Err("no luck") } else { Ok(None) });
    let waited = Instant::now();
    let mut failures = 0;
    loop {
        let all = futures_util::future::join_all((0..58).map(|_| credentials.current())).await;
        if all.iter().all(Result::is_ok) {
            break;
        }
        let error = all.into_iter().find_map(Result::err).unwrap();
        assert_eq!(crate::error_chain(&error), "the credentials cannot be read: no luck");
        failures += 1;
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(reads(&begun), 4);
    // Reads of 1 s each, pauses of 1, 2 and 4 s.
    assert!(failures > 50 && waited.elapsed() < Duration::from_secs(13), "{failures} {:?}", waited.elapsed());
}

#[tokio::test(start_paused = true)]
async fn w15_a_read_goes_on_when_who_asked_is_gone_and_ends_with_the_transport() {
    let (credentials, begun) = credentials(|_| Ok(None));
    assert!(timeout(Duration::from_millis(500), credentials.current()).await.is_err());
    timeout(Duration::from_millis(600), credentials.current()).await.unwrap().unwrap();
    assert_eq!(reads(&begun), 1);

    credentials.answered(1, StatusCode::UNAUTHORIZED);
    assert!(timeout(Duration::from_millis(500), credentials.refresh()).await.is_err());
    assert!(Arc::strong_count(&begun) > 2);
    drop(credentials);
    tokio::task::yield_now().await;
    assert_eq!(Arc::strong_count(&begun), 1);
}

#[tokio::test(start_paused = true)]
async fn w15_credentials_are_renewed_before_they_expire_and_used_until_then() {
    // The server's clock is the machine's, which no test can pause.
    let soon = || Some(SystemTime::now() + Duration::from_millis(200));
    let (credentials, begun) = credentials(move |number| match number {
        1 => Ok(soon()),
        2 => Err("no luck"),
        _ => Ok(None),
    });
    assert_eq!(credentials.current().await.unwrap().number, 1);
    let error = loop {
        match credentials.current().await {
            Ok(current) => assert_eq!(current.number, 1),
            Err(error) => break error,
        }
    };
    assert!(crate::error_chain(&error).contains("no luck"), "{error}");
    assert_eq!(reads(&begun), 2);
    sleep(LONGEST_WAIT).await;
    assert_eq!(credentials.current().await.unwrap().number, 2);
    assert_eq!(reads(&begun), 3);
}
