//! `kubediff record` and `kubediff replay`.

use std::path::Path;
use std::process::{Command, Output};

use crate::session::Session;
use crate::shop::Shop;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubediff"));
    command.args(arguments);
    command
}

fn replay(file: &Path, arguments: &[&str]) -> Output {
    command(&["replay", file.to_str().unwrap()]).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_recorded_is_shown_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rollout.jsonl");
    let shop = Shop::open().await;
    shop.create("app", "1").await;
    let mut record = command(&["record", file.to_str().unwrap(), "cm"]);
    record.env("KUBECONFIG", shop.kubeconfig());
    let session = tokio::task::spawn_blocking(|| {
        let mut session = Session::program(record);
        session.note("watching");
        session
    });
    let session = session.await.unwrap();
    shop.patch("app", "2").await;
    shop.create("later", "1").await;
    shop.delete("app").await;
    let ended = |file: std::path::PathBuf| {
        // The recording has each change as soon as it is seen.
        while std::fs::read_to_string(&file).unwrap().lines().count() < 3 {
            std::thread::yield_now();
        }
        session.end_with("-INT")
    };
    let (printed, _, status) = tokio::task::spawn_blocking({
        let file = file.clone();
        move || ended(file)
    })
    .await
    .unwrap();
    assert!(status.success(), "{printed:?}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    let recorded = std::fs::read_to_string(&file).unwrap();
    let again = replay(&file, &["-o", "json", "--objects"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert_eq!(text(&again.stdout), recorded);
    let lines = text(&replay(&file, &["--oneline"]).stdout);
    assert_eq!(lines.lines().count(), 3, "{lines}");
    assert!(lines.contains(r#"data.k "1" -> "2""#), "{lines}");
    let whole = text(&replay(&file, &[]).stdout);
    assert!(whole.contains("later") && whole.contains("configmaps"), "{whole}");
    // A recording can be piped.
    let mut piped = command(&["replay", "-", "-o", "json"]);
    let piped = piped.stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
    assert_eq!(piped.stdout, replay(&file, &["-o", "json"]).stdout);
    assert!(piped.stdout.len() < recorded.len());

    // A second recording does not overwrite the first.
    let refused = command(&["record", file.to_str().unwrap(), "cm"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let message = text(&refused.stderr);
    assert!(message.contains("rollout.jsonl: the recording needs a new file"), "{message}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), recorded);

    let nothing = replay(&folder.path().join("nothing"), &[]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(text(&nothing.stderr).contains("nothing: No such file"), "{}", text(&nothing.stderr));
}
