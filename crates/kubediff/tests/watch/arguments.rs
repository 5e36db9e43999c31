//! Issue 12, first item 3: arguments as with kubectl.

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use testapi::TestApi;

use crate::session::Session;
use crate::shop::Shop;

/// The value of KUBECONFIG that lists these files.
fn list(files: &[&Path]) -> OsString {
    std::env::join_paths(files).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_file_in_kubeconfig_is_passed_over_as_kubectl_does() {
    let shop = Shop::open().await;
    let files = list(&[Path::new("/nope/config"), shop.kubeconfig()]);
    let notes = tokio::task::spawn_blocking(move || {
        let mut session = Session::with(files, &["cm"]);
        session.note("watching 1 resource in namespace default (the context's; -A for all)");
        session.interrupt().2
    });
    assert!(notes.await.unwrap().success());
}

#[test]
fn where_all_files_are_missing_the_message_names_them() {
    let files = list(&[Path::new("/nope/a"), Path::new("/nope/b")]);
    let (notes, status) = Session::with(files, &["cm"]).wait();
    assert!(notes[0].contains("/nope/a does not exist, /nope/b does not exist"), "{notes:?}");
    assert_eq!(status.code(), Some(3));
    // The one that was named must be there.
    let (notes, status) = Session::with("", &["--kubeconfig", "/nope/c", "cm"]).wait();
    assert!(notes[0].contains("/nope/c"), "{notes:?}");
    assert_eq!(status.code(), Some(3));
    // One that is no kubeconfig is named too.
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "clusters: 7").unwrap();
    let (notes, _) = Session::with(file.path(), &["cm"]).wait();
    assert!(notes[0].contains(&file.path().display().to_string()), "{notes:?}");
}

#[test]
fn the_address_of_a_daemon_is_checked_and_one_that_does_not_answer_is_named() {
    // Nobody listens on this port any more; the other one accepts connections and closes them without an answer.
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    std::thread::spawn(move || silent.incoming().for_each(drop));
    let unanswered = "no daemon answers on";
    for (address, code, words) in [
        ("http://localhost:99999", 2, "is not an address"),
        ("http://localhost:", 2, "is not an address"),
        ("https://localhost", 2, "is not an address"),
        ("localhost", 2, "is not an address"),
        (&format!("http://127.0.0.1:{unused}/"), 1, unanswered),
        (&format!("http://[::1]:{unused}"), 1, unanswered),
        (&format!("http://127.0.0.1:{port}"), 1, unanswered),
    ] {
        let mut status = Command::new(env!("CARGO_BIN_EXE_kubediff"));
        let output = status.args(["status", "--address", address]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(words) && said.contains(address), "{said}");
        assert_eq!(output.status.code(), Some(code), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_by_name() {
    let shop = Shop::open().await;
    for name in ["a", "b", "c"] {
        shop.create(name, "1").await;
    }
    for (arguments, shown) in [
        (["cm/a"].as_slice(), "a"),
        (&["cm", "a"], "a"),
        (&["cm", "a", "c"], "ac"),
        (&["configmaps/a", "cm/c"], "ac"),
        (&["v1/configmaps/b"], "b"),
        (&["v1/configmaps"], "abc"),
    ] {
        let kubeconfig = shop.kubeconfig().to_owned();
        let owned: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        let session = tokio::task::spawn_blocking(move || {
            let arguments: Vec<&str> =
                ["--oneline"].into_iter().chain(owned.iter().map(String::as_str)).collect();
            let mut session = Session::with(&kubeconfig, &arguments);
            session.note("watching");
            session
        });
        let session = session.await.unwrap();
        for name in ["a", "b", "c"] {
            shop.patch(name, arguments.join(" ").as_str()).await;
        }
        let texts = arguments.join(" ");
        let lines = tokio::task::spawn_blocking(move || {
            let mut session = session;
            for _ in shown.chars() {
                session.line(&[" configmaps default/"]);
            }
            session.interrupt().0
        });
        let lines = lines.await.unwrap();
        let mut named: Vec<char> = lines
            .iter()
            .filter_map(|line| line.split_once(" configmaps default/")?.1.chars().next())
            .collect();
        // Each object has a watch of its own.
        named.sort_unstable();
        let named: String = named.into_iter().collect();
        assert_eq!(named, shown, "{texts}: {lines:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_does_not_exist_yet_is_waited_for() {
    let shop = Shop::open().await;
    let kubeconfig = shop.kubeconfig().to_owned();
    let session = tokio::task::spawn_blocking(move || {
        let mut session = Session::with(&kubeconfig, &["cm/later"]);
        session.note("configmaps/later does not exist in namespace default");
        session.note("watching 1 object in namespace default");
        session
    });
    let mut session = session.await.unwrap();
    shop.create("other", "1").await;
    shop.create("later", "1").await;
    let lines = tokio::task::spawn_blocking(move || {
        session.line(&["+ configmaps default/later"]);
        session.interrupt().0
    });
    assert!(!lines.await.unwrap().iter().any(|line| line.contains("other")));
}

#[tokio::test(flavor = "multi_thread")]
async fn server_token_cluster_and_user_override_the_kubeconfig() {
    let builder = TestApi::builder().token("open-sesame", "ali").anonymous(false);
    let shop = Shop::with(builder, Some("wrong")).await;
    let text = std::fs::read_to_string(shop.kubeconfig()).unwrap();
    let kubeconfig = kube_client::config::Kubeconfig::from_yaml(&text).unwrap();
    let cluster = kubeconfig.clusters[0].name.clone();
    let user = kubeconfig.auth_infos[0].name.clone();
    let path = shop.kubeconfig().to_owned();
    let url = shop.server.url();
    let ended = tokio::task::spawn_blocking(move || {
        let (notes, status) = Session::with(&path, &["cm"]).wait();
        assert!(
            notes[0].ends_with(": 401: the token was not accepted; log in again, or choose another user"),
            "{notes:?}"
        );
        assert!(notes[0].starts_with(&format!("kubediff: {url}")), "{notes:?}");
        assert_eq!((notes.len(), status.code()), (1, Some(3)));
        let arguments = [
            "--token",
            "open-sesame",
            "--cluster",
            &cluster,
            "--user",
            &user,
            "-s",
            &url,
            "--request-timeout",
            "20s",
            "cm",
        ];
        let mut session = Session::with(&path, &arguments);
        session.note("watching");
        session.interrupt().2
    });
    assert!(ended.await.unwrap().success());
}

/// A server that accepts connections and says nothing.
#[test]
fn ctrl_c_before_anything_could_be_watched_is_no_success() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let session = Session::with("/nope", &["--server", &url, "cm"]);
    let connection = silent.accept().unwrap();
    let (_, notes, status) = session.interrupt();
    drop(connection);
    assert_eq!(notes, [format!("kubediff: nothing was watched: {url} has not answered yet")]);
    assert_eq!(status.code(), Some(3));
}

#[test]
fn a_silent_server_is_waited_for_as_long_as_the_request_timeout_says() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let arguments = ["--server", &url, "--request-timeout", "300ms", "cm"];
    let (notes, status) = Session::with("/nope", &arguments).wait();
    // The limit of the request and that of discovery pass together.
    let [note] = &notes[..] else { panic!("{notes:?}") };
    assert!(note.starts_with(&format!("kubediff: {url}: ")) && note.contains("within 0.3 s"), "{note}");
    assert_eq!(status.code(), Some(3));
}

/// Mended before: the error names the command.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_credential_plugin_is_named() {
    let shop = Shop::open().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = format!(
        "current-context: c\nclusters: [{{name: c, cluster: {{server: '{}'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         users: [{{name: u, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, command: no-such-plugin, \
         interactiveMode: Never}}}}}}]\n",
        shop.server.url()
    );
    std::fs::write(file.path(), text).unwrap();
    let path = file.path().to_owned();
    let (notes, status) =
        tokio::task::spawn_blocking(move || Session::with(&path, &["cm"]).wait()).await.unwrap();
    assert!(notes[0].contains("the credential plugin `no-such-plugin` could not be run"), "{notes:?}");
    assert_eq!(status.code(), Some(3));
}

#[cfg(unix)]
#[test]
fn a_hangup_cleans_up() {
    let mut session = Session::demo(&["--color", "never"]);
    let kubeconfig = session.note("export KUBECONFIG=");
    let (_, path) = kubeconfig.split_once('=').unwrap();
    assert!(Path::new(path).exists());
    session.note("watching");
    let (lines, _, status) = session.end_with("-HUP");
    assert!(status.success(), "{status}");
    assert!(
        lines.iter().any(|line| line.contains(" changes ") && line.contains(" in ")),
        "a summary: {lines:#?}"
    );
    assert!(!Path::new(path).exists(), "{path} was left behind");
}
