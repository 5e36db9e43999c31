//! An answer that a client has is not made again, and never taken for right when it is another one by now.

use std::collections::BTreeMap;

use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use kubediff_history::Batch;

use super::browser::{Answer, NOW, Page};
use crate::queries::shop::Shop;
use crate::queries::world::World;
use crate::stories::cast::Cast;
use crate::support;

/// Addresses whose answers nothing but the history decides about.
const STILL: &[&str] = &[
    "/v1/changes",
    "/v1/changes?fold=1&since=2026-03-01T14:00:00Z",
    "/v1/changes?since=2026-03-01&until=2026-03-01T15:00:00Z&order=oldest",
    "/v1/changes/4",
    "/v1/changes/4?objects=1",
    "/v1/histogram?until=2026-03-01T15:00:00Z",
    "/v1/facets?of=kind&since=2026-03-01T14:00:00Z&until=2026-03-01T15:00:00Z",
    "/v1/objects/deploy/shop/cart",
    "/v1/objects/deploy/shop/cart?at=2026-03-01T14:02:00Z",
    "/v1/objects/deploy/shop/cart/versions",
    "/v1/objects/deploy/shop/cart/blame?rev=4",
    "/v1/diff?from=2026-03-01T14:00:00Z&to=2026-03-01T14:02:00Z",
    "/v1/state?kind=deploy&at=2026-03-01T14:02:00Z",
    "/v1/state?kind=deploy&at=%234",
    "/v1/gaps",
    "/v1/kinds",
    "/v1/openapi.json",
    "/?since=2026-03-01T14:00:00Z&until=2026-03-01T15:00:00Z",
    "/?until=2026-03-01T15:00:00Z&fold=0",
    "/change/4",
    "/o/deploy/shop/cart?at=2026-03-01T14:02:00Z",
    "/o/deploy/shop/cart?tab=changes",
    "/o/deploy/shop/cart?tab=related",
    "/diff?from=2026-03-01T14:00:00Z&to=2026-03-01T14:02:00Z",
    "/at/2026-03-01T14:02:00Z/?kind=deploy",
    "/help",
];

/// Addresses whose answers are other ones later, and refusals.
const MOVING: &[&str] = &[
    "/",
    "/?since=-1h&until=2026-03-01T15:00:00Z",
    "/?since=2026-03-01T14:00:00Z&until=15:00",
    "/o/deploy/shop/cart",
    "/o/deploy/shop/cart?rev=4",
    "/o/deploy/shop/cart?tab=changes&at=-1h",
    "/diff?from=2026-03-01T14:00:00Z",
    "/at",
    "/at/-20m/",
    "/at?time=14:02",
    "/search?s=cart",
    "/about",
    "/nothing",
    "/v1/changes?since=-1h",
    "/v1/changes?until=now",
    "/v1/changes?since=14:00",
    "/v1/histogram",
    "/v1/histogram?since=2026-03-01T14:00:00Z",
    "/v1/facets?of=kind",
    "/v1/objects/deploy/shop/cart?at=-20m",
    "/v1/diff?from=2026-03-01T14:00:00Z",
    "/v1/diff?from=-1h&to=2026-03-01T15:00:00Z",
    "/v1/state?kind=deploy",
    "/v1/state?kind=deploy&at=now",
    "/v1/gaps?since=yesterday",
    "/v1/status",
    "/v1/changes?since=soon",
    "/v1/changes/99999",
    "/v1/nothing",
];

fn tag(answer: &Answer) -> Option<&str> {
    answer.header("etag").inspect(|tag| {
        assert!(tag.starts_with("W/\"") && tag.ends_with('"'), "{tag}");
        assert_eq!(answer.header("cache-control"), Some("no-cache, private"));
    })
}

#[test]
fn an_answer_that_the_client_has_is_not_sent_again_until_the_next_commit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let mut cast = Cast::in_rollout(&path);
    let page = Page::at(&path, "2026-03-01T15:30:00Z[UTC]");
    // Until a page has folded what there is, answers with stories have no tags.
    assert_eq!(page.get("/v1/stories/4").status, 200);
    let tags = || -> BTreeMap<&str, String> {
        let tagged = STILL.iter().map(|path| {
            let answer = page.get(path);
            assert_eq!(answer.status, 200, "{path}: {}", answer.text);
            (*path, tag(&answer).unwrap_or_else(|| panic!("{path} has no tag")).to_owned())
        });
        tagged.collect()
    };
    let first = tags();
    assert_eq!(tags(), first);
    for (path, tag) in &first {
        let strong = tag.trim_start_matches("W/");
        for known in [tag.clone(), strong.to_owned(), format!("W/\"0\", {tag}"), format!("\"x\",{strong}")] {
            for method in ["GET", "HEAD"] {
                let answer = page.unless(method, path, &known);
                assert_eq!((answer.status, answer.text.as_str()), (304, ""), "{path}: {known}");
                assert_eq!(self::tag(&answer), Some(tag.as_str()), "{path}");
                assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
            }
        }
        let head = page.unless("HEAD", path, "\"other\"");
        assert_eq!((head.status, self::tag(&head)), (200, Some(tag.as_str())), "{path}");
        for (other, wrong) in first.iter().filter(|(other, _)| *other != path) {
            assert_ne!(wrong, tag, "{path} and {other}");
        }
        let others: Vec<&str> = first.iter().filter(|it| it.0 != path).map(|it| it.1.as_str()).collect();
        let answer = page.unless("GET", path, &others.join(", "));
        assert_eq!((answer.status, answer.text == page.get(path).text), (200, true), "{path}");
    }
    // A browser without a cookie has no use of a tag.
    let outside = page.ask("GET", "/v1/kinds", &page.host, None);
    assert_eq!((outside.status, outside.header("cache-control")), (403, Some("no-store")));

    let commits: [&mut dyn FnMut(&mut Cast); 3] = [
        &mut |cast| cast.scales("cart", "hpa", 3),
        // The time until which everything was watched is no record, and is in answers.
        &mut |cast| {
            let mut batch = Batch::default();
            batch.note("watched-until", "2026-03-01T14:20:00Z");
            cast.world.history().commit(&batch).unwrap();
        },
        &mut |cast| cast.event("e1", "Deployment shop/cart", "Scaled"),
    ];
    let mut former = first;
    for commit in commits {
        commit(&mut cast);
        for (path, tag) in &former {
            assert_eq!(page.unless("GET", path, tag).status, 200, "{path}");
        }
        let now = tags();
        assert!(former.iter().all(|(path, tag)| now[path] != *tag));
        former = now;
    }
}

#[test]
fn an_answer_of_the_clock_has_no_tag() {
    let shop = Shop::open();
    let page = Page::at(&shop.path, NOW);
    for path in MOVING {
        let answer = page.get(path);
        assert_eq!((tag(&answer), answer.header("cache-control")), (None, Some("no-store")), "{path}");
    }
}

#[test]
fn a_file_of_the_page_is_sent_once() {
    let shop = Shop::open();
    let page = Page::at(&shop.path, NOW);
    for path in ["/static/main.js", "/static/style.css"] {
        let first = page.get(path);
        let known = tag(&first).expect("it has a tag").to_owned();
        assert!(first.status == 200 && first.text.len() > 1_000, "{path}");
        let again = page.unless("GET", path, &known);
        assert_eq!((again.status, again.text.as_str(), tag(&again)), (304, "", Some(&*known)), "{path}");
        assert_eq!(page.unless("GET", path, "\"other\"").text, first.text, "{path}");
    }
}

/// Where a page says that what the client has is right, it would have sent the same: with a clock that goes on, and commits in between.
#[test]
fn what_is_not_sent_again_would_be_the_same() {
    for seed in 0..support::times(2) {
        let mut random = Rng::with_seed(seed);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.db");
        let mut cast = Cast::new(World::open(&path, [7; 32]));
        let begin = Timestamp::now() - SignedDuration::from_secs(65);
        cast.now = begin;
        cast.has_deployment("cart", "shop/cart:1", &["cart-a", "cart-b"]);
        cast.passes(1.0);
        cast.rolls_out("cart", "argocd", "shop/cart:2");
        let page = Page::with(&path, &[]);
        let at = |seconds: i64| (begin + SignedDuration::from_secs(seconds)).to_string();
        let mut addresses: Vec<String> = STILL.iter().chain(MOVING).map(|it| (*it).to_owned()).collect();
        for seconds in [10, 62, 66, 70, 400] {
            let at = at(seconds);
            addresses.extend([
                format!("/?until={at}"),
                format!("/v1/changes?until={at}&fold=1"),
                format!("/v1/state?kind=deploy&at={at}"),
                format!("/at/{at}/?kind=po"),
                format!("/o/deploy/shop/cart?at={at}"),
                format!("/v1/diff?from={}&to={at}", begin),
            ]);
        }
        addresses.retain(|path| !path.starts_with("/search") && !path.starts_with("/static"));
        let mut had: BTreeMap<&str, (String, String)> = BTreeMap::new();
        let mut unchanged = 0;
        for step in 0..800 {
            if random.u32(..60) == 0 {
                cast.now = Timestamp::now();
                match random.u32(..4) {
                    0 => cast.scales("cart", "hpa", random.u64(1..9)),
                    1 => cast.starts("cart", "old", &format!("cart-{step}")),
                    2 => cast.event(&format!("e{step}"), "Deployment shop/cart", "Scaled"),
                    _ => {
                        cast.world.gap_at(cast.now - SignedDuration::from_secs(1), cast.now, None, "a break")
                    }
                }
                continue;
            }
            let address = random.choice(&addresses).unwrap();
            let Some((tag, text)) = had.get(address.as_str()) else {
                let answer = page.get(address);
                if let Some(tag) = self::tag(&answer).filter(|_| answer.status == 200) {
                    had.insert(address, (tag.to_owned(), answer.text.clone()));
                }
                continue;
            };
            let answer = page.unless("GET", address, tag);
            if answer.status == 304 {
                unchanged += 1;
                let again = page.get(address);
                // The minute may have ended since.
                if self::tag(&again) == Some(tag) {
                    assert_eq!(again.text, *text, "seed {seed}: {address}");
                }
            } else {
                assert_eq!(answer.status, 200, "{address}: {}", answer.text);
                had.remove(address.as_str());
            }
        }
        assert!(unchanged > 30, "seed {seed}: {unchanged}");
    }
}
