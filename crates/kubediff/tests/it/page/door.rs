//! The door: requests with and without the cookie.

use super::browser::{NOW, Page};
use crate::queries::shop::Shop;

#[test]
fn nobody_is_answered_who_has_not_entered_by_the_link() {
    let shop = Shop::open();
    let page = Page::outside(&shop.path, &["--now", NOW]);
    let here = page.host.clone();
    let port = here.split(':').nth(1).unwrap();
    for path in
        ["/", "/change/1", "/v1/changes", "/v1/live", "/live", "/about", "/enter/", "/enter/AAAA", "/nothing"]
    {
        let answer = page.get(path);
        assert_eq!(answer.status, 403, "{path}");
        assert!(!answer.text.contains("prod") && !answer.text.contains("cart"), "{path}: {}", answer.text);
    }
    // The style of the refusal is no secret.
    assert_eq!(page.get("/static/style.css").status, 200);

    let entered = page.get(&page.entry);
    let cookie = entered.header("set-cookie").unwrap().to_owned();
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    assert_eq!(page.get(&page.entry).status, 403, "the link works once");
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(page.ask("GET", "/", &here, Some(cookie)).status, 200);
    // A page of another site can make a browser ask here, under a name that it lets point here.
    for host in
        ["evil.example", &format!("evil.example:{port}"), &format!("127.0.0.1:{port}"), "127.0.0.1:1", ""]
    {
        let answer = page.ask("GET", "/", host, Some(cookie));
        assert_eq!(answer.status, 421, "{host}");
        assert!(!answer.text.contains("prod"), "{}", answer.text);
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        assert_eq!(page.ask(method, "/", &here, Some(cookie)).status, 405, "{method}");
    }
    assert_eq!(page.ask("HEAD", "/", &here, Some(cookie)).text, "");
}

#[test]
fn every_answer_says_what_may_run_in_it() {
    let shop = Shop::open();
    let page = Page::at(&shop.path, NOW);
    for path in
        ["/", "/nothing", "/v1/changes", "/v1/nothing", "/static/main.js", "/story/7", "/search?s=cart"]
    {
        let answer = page.get(path);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{path}: {policy}");
        assert!(
            policy.contains("require-trusted-types-for 'script'")
                && policy.contains("frame-ancestors 'none'")
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{path}");
        }
        // Nothing is used without asking for it again.
        let cached = answer.header("etag").map_or("no-store", |_| "no-cache, private");
        assert_eq!(answer.header("cache-control"), Some(cached), "{path}");
    }
}

#[test]
fn a_history_that_is_not_there_ends_the_command_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.db");
    let said = crate::queries::run::run(&missing, &["ui"]);
    assert!(said.contains("none.db") && said.ends_with("exit 1\n"), "{said}");
}

#[test]
fn a_port_that_is_taken_is_not_shared() {
    let shop = Shop::open();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    drop(listener);
    let first = Page::with(&shop.path, &["--port", &port]);
    assert_eq!(first.host, format!("127.0.0.1:{port}"));
    let said = crate::queries::run::run(&shop.path, &["ui", "--port", &port]);
    assert!(said.contains("cannot be served on port") && said.ends_with("exit 1\n"), "{said}");
    assert_eq!(first.get("/v1/status").status, 200);
}

#[test]
fn a_file_that_becomes_another_one_is_not_answered_from() {
    let shop = Shop::open();
    let other = Shop::open();
    let page = Page::at(&shop.path, NOW);
    assert_eq!(page.get("/v1/status").status, 200);
    std::fs::rename(&other.path, &shop.path).unwrap();
    let answer = page.get("/v1/status");
    assert_eq!(answer.status, 410, "{}", answer.text);
    assert!(page.get("/").text.contains("Start `kubediff` again"));
    std::fs::remove_file(&shop.path).unwrap();
    assert!(page.get("/").text.contains("The file of the history is gone"));
}
