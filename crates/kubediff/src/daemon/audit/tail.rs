//! Follows the file of an audit log, also when it rotates.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::audit::{Read, events};
use crate::text::terminal::{escape, say};

/// How often the file is looked at.
const OFTEN: Duration = Duration::from_millis(250);
/// Bytes that are read at once, of what is there at the start and of what comes.
const PART: usize = 1 << 20;
/// A longer line is passed over.
const LINE: usize = 8 << 20;
/// A rotation takes fewer looks than these, which take 10 s.
const LOOKS: u32 = 40;

/// Reads what comes, until it is dropped.
pub(super) async fn run(path: PathBuf, events: mpsc::Sender<Read>) {
    let shown = escape(&path.display().to_string()).into_owned();
    let mut tail = Tail { path, file: None, rest: Vec::new(), is_first: true, missed: 0 };
    let mut failed = None;
    let mut ticks = tokio::time::interval(OFTEN);
    loop {
        ticks.tick().await;
        let looked = tokio::task::spawn_blocking(move || {
            let read = tail.read();
            (tail, read)
        });
        let Ok((next, read)) = looked.await else { return };
        tail = next;
        match read {
            Ok(read) => {
                failed = None;
                if read != Read::default() && events.send(read).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                let error = error.to_string();
                if failed.as_ref() != Some(&error) {
                    say(&format!("the audit log {shown} cannot be read, and is tried again: {error}"));
                }
                failed = Some(error);
            }
        }
    }
}

struct Tail {
    path: PathBuf,
    file: Option<File>,
    /// The beginning of a line.
    rest: Vec<u8>,
    /// Whether nothing was read yet.
    is_first: bool,
    /// How many looks in a row have found that nothing has the name of the open file.
    missed: u32,
}

impl Tail {
    /// What has come since. After a rotation, the rest of the former file comes first.
    fn read(&mut self) -> std::io::Result<Read> {
        let mut read = Read::default();
        if self.file.is_none() {
            self.open()?;
        }
        let is_at_end = self.take(&mut read)?;
        if is_at_end && self.is_replaced()? {
            self.take(&mut read)?;
            self.rest.clear();
            self.open()?;
        }
        Ok(read)
    }

    /// Opens the file. Of one that is there at the start, the last part is read.
    fn open(&mut self) -> std::io::Result<()> {
        self.file = None;
        let mut file = File::open(&self.path)?;
        let length = file.metadata()?.len();
        if std::mem::take(&mut self.is_first) && length > PART as u64 {
            file.seek(SeekFrom::Start(length - PART as u64))?;
            // It begins within a line.
            let mut part = Vec::new();
            file.by_ref().take(PART as u64).read_to_end(&mut part)?;
            let begin = part.iter().position(|byte| *byte == b'\n').map_or(part.len(), |end| end + 1);
            self.rest = part.split_off(begin);
        }
        self.file = Some(file);
        Ok(())
    }

    /// Takes the lines that are there, a part at a time. Returns whether there are no more.
    fn take(&mut self, read: &mut Read) -> std::io::Result<bool> {
        let Some(file) = &mut self.file else { return Ok(true) };
        let mut part = vec![0; PART];
        let count = file.read(&mut part)?;
        self.rest.extend(part.iter().take(count));
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            if self.rest.len() > LINE {
                self.rest.clear();
                read.malformed += 1;
            }
            return Ok(count == 0);
        };
        let rest = self.rest.split_off(end + 1);
        for line in std::mem::replace(&mut self.rest, rest).split(|byte| *byte == b'\n') {
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match events(line) {
                Some(of_line) => {
                    read.writes.extend(of_line.writes);
                    read.malformed += of_line.malformed;
                }
                None => read.malformed += 1,
            }
        }
        Ok(count == 0)
    }

    /// Whether another file has the name, or the file was emptied.
    fn is_replaced(&mut self) -> std::io::Result<bool> {
        let Some(file) = &mut self.file else { return Ok(true) };
        let there = match self.path.metadata() {
            Ok(there) => there,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.missed = self.missed.saturating_add(1);
                // Between two files, or told before. Whoever writes it may not have noticed.
                return if self.missed == LOOKS { Err(error) } else { Ok(false) };
            }
            Err(error) => return Err(error),
        };
        self.missed = 0;
        let here = file.metadata()?;
        #[cfg(unix)]
        let is_other = {
            use std::os::unix::fs::MetadataExt as _;
            (there.dev(), there.ino()) != (here.dev(), here.ino())
        };
        #[cfg(not(unix))]
        let is_other = false;
        Ok(is_other || here.len() < file.stream_position()?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn event(id: usize) -> String {
        format!(
            r#"{{"auditID":"{id}","stage":"ResponseComplete","verb":"update","requestURI":"/x","user":{{"username":"jane"}},
            "objectRef":{{"resource":"pods","name":"a"}},"responseStatus":{{"code":200}},
            "requestReceivedTimestamp":"2023-11-29T12:00:00.5Z","stageTimestamp":"2023-11-29T12:00:00.6Z"}}"#
        )
        .replace('\n', "")
    }

    fn ids(tail: &mut Tail) -> Vec<String> {
        let read = tail.read().unwrap();
        read.writes
            .into_iter()
            .map(|write| write.id)
            .chain((0..read.malformed).map(|_| "?".to_owned()))
            .collect()
    }

    #[test]
    fn each_line_comes_once_also_when_the_file_rotates() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let mut tail = Tail { path: path.clone(), file: None, rest: Vec::new(), is_first: true, missed: 0 };
        assert_eq!(tail.read().unwrap_err().kind(), ErrorKind::NotFound);
        let mut file = File::create(&path).unwrap();
        write!(file, "{}\nno event\n{}", event(1), &event(2)[..40]).unwrap();
        assert_eq!(ids(&mut tail), ["1", "?"]);
        writeln!(file, "{}", &event(2)[40..]).unwrap();
        assert_eq!(ids(&mut tail), ["2"]);
        assert_eq!(ids(&mut tail), [""; 0]);
        // It is renamed while somebody writes, and another one comes later.
        std::fs::rename(&path, folder.path().join("audit-1.log")).unwrap();
        writeln!(file, "{}", event(3)).unwrap();
        assert_eq!(ids(&mut tail), ["3"]);
        writeln!(file, "{}", event(4)).unwrap();
        let mut next = File::create(&path).unwrap();
        writeln!(next, "{}", event(5)).unwrap();
        let mut found = ids(&mut tail);
        found.extend(ids(&mut tail));
        found.extend(ids(&mut tail));
        assert_eq!(found, ["4", "5"]);
        // It is emptied in place.
        next.set_len(0).unwrap();
        next.seek(SeekFrom::Start(0)).unwrap();
        assert_eq!(ids(&mut tail), [""; 0]);
        writeln!(next, "{}", event(6)).unwrap();
        assert_eq!(ids(&mut tail), ["6"]);
    }

    #[test]
    fn of_a_long_file_the_end_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let lines: Vec<String> = (0..10_000).map(event).collect();
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        let mut tail = Tail { path, file: None, rest: Vec::new(), is_first: true, missed: 0 };
        let found = ids(&mut tail);
        assert!(found.len() < 5_000 && !found.contains(&"?".to_owned()), "{}", found.len());
        assert_eq!(found.last().unwrap(), "9999");
    }

    #[test]
    fn a_file_that_is_removed_is_told_once_until_it_is_there_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let mut tail = Tail { path: path.clone(), file: None, rest: Vec::new(), is_first: true, missed: 0 };
        for id in 0..2 {
            let mut file = File::create(&path).unwrap();
            assert_eq!(ids(&mut tail), [""; 0]);
            std::fs::remove_file(&path).unwrap();
            for _ in 1..LOOKS {
                assert_eq!(ids(&mut tail), [""; 0]);
            }
            assert_eq!(tail.read().unwrap_err().kind(), ErrorKind::NotFound);
            // Whoever has it open writes on.
            writeln!(file, "{}", event(id)).unwrap();
            assert_eq!(ids(&mut tail), [id.to_string()]);
            for _ in 0..LOOKS * 3 {
                assert_eq!(ids(&mut tail), [""; 0]);
            }
        }
    }
}
