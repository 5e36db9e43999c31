//! Issue 23: what the server says about itself, from a record on.

use std::collections::BTreeMap;

use kubediff_history::*;

use crate::world::{at, open, retain};

fn document(name: &str, edition: &str) -> Document {
    let content =
        if edition.is_empty() { Vec::new() } else { format!("{{\"is\":\"{edition}\"}}").into_bytes() };
    Document { name: name.to_owned(), edition: edition.to_owned(), content }
}

fn six_records(history: &mut History) {
    let mut batch = Batch::default();
    (0..6).for_each(|_| batch.gap(at(0), at(60), None, "nobody was there"));
    history.commit(&batch).unwrap();
}

/// The contents of a document after each of these records.
fn contents(reader: &mut Reader, name: &str, after: &[u64]) -> Vec<Option<String>> {
    let text = |content| String::from_utf8(content).unwrap();
    after.iter().map(|after| reader.document(name, Number(*after)).unwrap().map(text)).collect()
}

#[test]
fn a_document_is_what_the_server_had_after_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let mut history = open(&folder.path().join("history.db"));
    let is = |edition: &str| Some(format!("{{\"is\":\"{edition}\"}}"));
    let mut reader = history.reader().unwrap();
    assert_eq!(contents(&mut reader, "version", &[0, 1]), [None, None]);
    six_records(&mut history);
    history.document(&document("version", "1.36")).unwrap();
    history.document(&document("schemas", "a")).unwrap();
    // The server was first asked after record 6.
    assert_eq!(contents(&mut reader, "version", &[0, 5, 6, 9]), vec![is("1.36"); 4]);
    six_records(&mut history);
    // The last one of those that come without a record between them counts, and one that is there is not stored again.
    history.document(&document("version", "1.37-rc")).unwrap();
    history.document(&document("version", "1.37")).unwrap();
    history.document(&document("version", "1.37")).unwrap();
    history.document(&document("schemas", "")).unwrap();
    assert_eq!(
        contents(&mut reader, "version", &[6, 11, 12, 99]),
        [is("1.36"), is("1.36"), is("1.37"), is("1.37")]
    );
    assert_eq!(contents(&mut reader, "schemas", &[6, 11, 12, u64::MAX]), [is("a"), is("a"), None, None]);
    let editions =
        [("schemas", ""), ("version", "1.37")].map(|(name, edition)| (name.to_owned(), edition.to_owned()));
    assert_eq!(reader.editions().unwrap(), BTreeMap::from(editions));
    assert_eq!(reader.check().unwrap().problems, [""; 0]);
    six_records(&mut history);
    // Retention leaves what was there when that begins which it keeps.
    for (kept, former) in [(7, is("1.36")), (6, is("1.37"))] {
        let kept = Retention { count: Some(kept), ..Retention::default() };
        retain(&mut history, &kept, at(90_000));
        assert_eq!(contents(&mut reader, "version", &[0, 11, 12])[1], former);
    }
    assert_eq!(contents(&mut reader, "version", &[17]), [is("1.37")]);
}
