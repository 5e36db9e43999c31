//! The key of hashes and its file (issue 12, item 1: "the key lies beside the history, never in it").

use std::fs;
use std::path::Path;

use expect_test::expect;
use kubediff::{Epoch, HashKey, KeyId, Secrets};

fn set_mode(file: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(file: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(file).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_key_is_made_once_and_only_its_owner_may_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = HashKey::file_beside(&folder.path().join("history.db"));
    assert_eq!(file, folder.path().join("history.db.key"));
    let first = HashKey::open(&file).unwrap();
    assert_eq!(mode(&file), 0o600);
    assert_eq!(HashKey::open(&file).unwrap().id(), first.id());
    // No part of the writing is left.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(!fs::read_to_string(&file).unwrap().contains(&first.id().to_string()));
    assert_eq!(format!("{first:?}"), format!("HashKey({})", first.id()));
}

#[test]
fn a_lost_key_begins_an_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("h.key");
    let former = HashKey::open(&file).unwrap().id();
    assert_eq!(Epoch::since(None, former), Epoch::First);
    fs::remove_file(&file).unwrap();
    let now = HashKey::open(&file).unwrap().id();
    assert_ne!(now, former);
    assert_eq!(Epoch::since(Some(former), now), Epoch::New { former });
    assert_eq!(Epoch::since(Some(now), now), Epoch::Same);
    assert_eq!(now.to_string().parse::<KeyId>(), Ok(now));
    assert!("1234567".parse::<KeyId>().is_err() && "+1234567".parse::<KeyId>().is_err());
}

#[test]
fn a_key_that_the_kubelet_opened_to_the_group_is_private_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db.key");
    let key = HashKey::open(&file).unwrap();
    set_mode(&file, 0o660);
    assert_eq!(HashKey::open(&file).unwrap().id(), key.id());
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn what_is_no_key_file_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("h.key");
    let error = |file: &Path| {
        let text = HashKey::open(file).unwrap_err().to_string();
        text.replace(folder.path().to_str().unwrap(), "FOLDER")
    };
    HashKey::open(&file).unwrap();
    set_mode(&file, 0o640);
    expect!["the key file FOLDER/h.key has mode 640: others may read it; set it with `chmod 600`, or remove the file for a new key"]
        .assert_eq(&error(&file));
    for content in ["", "kubediff-key-1 abc\n", "something else", "\u{0}\u{1}"] {
        fs::write(&file, content).unwrap();
        set_mode(&file, 0o600);
        expect!["FOLDER/h.key is not a key file of kubediff; move it away to get a new key"]
            .assert_eq(&error(&file));
    }
    fs::write(&file, [0xFF; 40]).unwrap();
    assert!(error(&file).contains("is not a key file"));
    expect!["the key file FOLDER/absent/h.key cannot be written"]
        .assert_eq(&error(&folder.path().join("absent/h.key")));
}

#[test]
fn processes_that_start_together_have_one_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("h.key");
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let file = file.clone();
            std::thread::spawn(move || HashKey::open(&file).unwrap().id())
        })
        .collect();
    let written: Vec<KeyId> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let key = HashKey::open(&file).unwrap();
    assert_eq!(written, vec![key.id(); 8]);
    assert_eq!(Secrets::new(key).key_id(), written[0]);
}
