//! The key of the hashes that stand for secrets, and the file that keeps it.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use serde::{Serialize, Serializer};
use sha2::Sha256;

const BYTES: usize = 32;

/// The first word of a key file's line.
const FORMAT: &str = "kubediff-key-1";

/// The id of a key is the hash of this text. No value of a Secret is hashed alone under this text's length and content.
///
/// It names the form of the marks, too: those of another form are not comparable.
const ID_TEXT: &[u8] = b"kubediff: the id of this key, marks of namespaces";

/// The key of the hashes that stand for secrets. Never printed.
///
/// Without it nobody can find out by trying which value a hash stands for. Hashes of one key can be compared with each
/// other, those of two keys cannot; [`id`](Self::id) tells them apart.
#[derive(Clone)]
pub struct HashKey([u8; BYTES]);

/// Tells keys apart, and is no secret: eight hexadecimal digits.
///
/// It is recorded with hashes. Where it changes, an epoch begins: hashes before and after say nothing about each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(u32);

/// Which value it is: its hash under the key of the installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ValueId(pub(super) u64);

/// Whether hashes of a key continue those that were recorded before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Epoch {
    /// Nothing was recorded before.
    First,
    /// They have the same key.
    Same,
    /// The key of the recorded hashes is lost: unequal hashes no longer mean unequal values.
    New {
        /// The lost key.
        former: KeyId,
    },
}

/// A text that is no [`KeyId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of a key has eight hexadecimal digits")]
pub struct InvalidKeyId;

/// The system gave no random numbers.
#[derive(Debug, thiserror::Error)]
#[error("no random key for hiding secrets: {0}")]
pub struct NoRandomKey(#[from] getrandom::Error);

/// The file of a key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// It can be read by others.
    #[error("the key file {} has mode {mode:o}: others may read it; set it with `chmod 600`, or remove the file for a new key", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Its content is something else.
    #[error("{} is not a key file of kubediff; move it away to get a new key", .0.display())]
    Malformed(PathBuf),
    /// It cannot be read or written.
    #[error("the key file {} cannot be {doing}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// `read` or `written`.
        doing: &'static str,
        /// Why.
        source: io::Error,
    },
    /// There is no random number for a new one.
    #[error(transparent)]
    Random(#[from] NoRandomKey),
}

impl HashKey {
    /// A new key.
    ///
    /// # Errors
    ///
    /// When the system gives no random numbers.
    pub fn random() -> Result<Self, NoRandomKey> {
        let mut key = [0; BYTES];
        getrandom::fill(&mut key)?;
        Ok(Self(key))
    }

    /// The key that these bytes are.
    pub fn from_bytes(bytes: [u8; BYTES]) -> Self {
        Self(bytes)
    }

    /// Where the key of the history in `history` is kept: the same name with `.key` appended.
    pub fn file_beside(history: &Path) -> PathBuf {
        let mut name = history.as_os_str().to_owned();
        name.push(".key");
        name.into()
    }

    /// Where a daemon keeps the key of this history, unless its configuration says otherwise.
    pub(crate) fn file_of_daemon(history: &Path) -> PathBuf {
        history.with_file_name("kubediff.key")
    }

    /// The key of a history, if it is beside it: the one with the id that the history has noted.
    pub(crate) fn beside(history: &Path, noted: Option<&str>) -> Result<Option<Self>, KeyFileError> {
        for file in [Self::file_beside(history), Self::file_of_daemon(history)] {
            let key = Self::existing(&file)?;
            if key.as_ref().is_some_and(|key| noted.is_none_or(|noted| key.id().to_string() == noted)) {
                return Ok(key);
            }
        }
        Ok(None)
    }

    /// The key in this file, which has mode 0600. A missing file is made, with a new key; of several processes that do
    /// so at the same time, all get the same one.
    ///
    /// Whether the key is the one of the hashes that were recorded before is what [`Epoch::since`] says.
    ///
    /// ```
    /// use kubediff::{Epoch, HashKey};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let history = folder.path().join("history.db");
    /// let file = HashKey::file_beside(&history);
    /// let key = HashKey::open(&file)?;
    /// let again = HashKey::open(&file)?;
    /// assert_eq!(Epoch::since(Some(key.id()), again.id()), Epoch::Same);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When others may read the file, it holds something else, or it cannot be read or made.
    pub fn open(file: &Path) -> Result<Self, KeyFileError> {
        if let Some(key) = Self::existing(file)? {
            return Ok(key);
        }
        let key = Self::random()?;
        match key.write(file) {
            Ok(()) => Ok(key),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::read(file),
            Err(source) => Err(KeyFileError::Io { path: file.to_owned(), doing: "written", source }),
        }
    }

    /// The key in this file; `None` where there is none.
    pub(crate) fn existing(file: &Path) -> Result<Option<Self>, KeyFileError> {
        match Self::read(file) {
            Err(KeyFileError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    fn read(path: &Path) -> Result<Self, KeyFileError> {
        let failed = |source| KeyFileError::Io { path: path.to_owned(), doing: "read", source };
        let file = File::open(path).map_err(failed)?;
        let mut mode = mode(&file).map_err(failed)?;
        // So the kubelet leaves each file of a volume with an `fsGroup`, when a pod starts.
        if mode == 0o660 && private_again(&file).is_ok() {
            mode = 0o600;
        }
        // So it mounts a Secret there: nobody can change its files, and the group is the pod's.
        if mode & 0o077 != 0 && !(mode == 0o440 && is_of_root(&file).map_err(failed)?) {
            return Err(KeyFileError::Exposed { path: path.to_owned(), mode });
        }
        let mut text = String::new();
        // More than a key is no key.
        match file.take(1024).read_to_string(&mut text) {
            Err(error) if error.kind() != io::ErrorKind::InvalidData => return Err(failed(error)),
            _ => {}
        }
        parse(&text).map(Self).ok_or_else(|| KeyFileError::Malformed(path.to_owned()))
    }

    /// The file appears at once with all of its content, or not at all.
    fn write(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut part = path.as_os_str().to_owned();
        // Not the name that somebody else writes to at the same time.
        part.push(format!(".{}.part", self.id()));
        let part = PathBuf::from(part);
        let written = private(&part).and_then(|mut file| {
            writeln!(file, "{FORMAT} {}", hexadecimal(&self.0))?;
            file.sync_all()?;
            // Unlike a rename, a link never replaces a key that hashes were made with.
            fs::hard_link(&part, path)
        });
        let removed = fs::remove_file(&part);
        written.and(removed)?;
        File::open(folder)?.sync_all()
    }

    /// Which key it is.
    pub fn id(&self) -> KeyId {
        KeyId(self.hash(&[ID_TEXT]).first_chunk().map_or(0, |start| u32::from_be_bytes(*start)))
    }

    /// Which value these bytes are.
    pub(super) fn value_id(&self, bytes: &[u8]) -> ValueId {
        ValueId(self.hash(&[bytes]).first_chunk().map_or(0, |start| u64::from_be_bytes(*start)))
    }

    /// The hash that stands for a value in objects of a namespace. It is long enough that a tenant who tries values finds no two with the same hash.
    pub(super) fn mark(&self, namespace: &str, value: ValueId) -> u64 {
        let hash = self.hash(&[namespace.as_bytes(), &[0], &value.0.to_be_bytes()]);
        hash.first_chunk().map_or(0, |start| u64::from_be_bytes(*start))
    }

    /// The salt and the key of the hashes that texts are searched by.
    pub(super) fn of_search(&self) -> (u64, [u8; 16]) {
        let hash = self.hash(&[b"kubediff: a search", &[0]]);
        let salt = hash.first_chunk().map_or(0, |start| u64::from_be_bytes(*start));
        (salt, hash.last_chunk().copied().unwrap_or_default())
    }

    /// The name of a print.
    pub(super) fn name_of_print(&self, plain: &[u8]) -> [u8; 8] {
        self.hash(&[b"kubediff: a print", &[0], plain]).first_chunk().copied().unwrap_or_default()
    }

    /// Makes a print unreadable, and readable again: at most 32 bytes.
    pub(super) fn cover(&self, name: &[u8], plain: &[u8]) -> Vec<u8> {
        let cover = self.hash(&[b"kubediff: the cover of a print", &[0], name]);
        plain.iter().zip(cover).map(|(byte, cover)| byte ^ cover).collect()
    }

    fn hash(&self, parts: &[&[u8]]) -> [u8; 32] {
        // HMAC takes keys of every length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return [0; 32] };
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    }
}

impl Epoch {
    /// The epoch that begins with the key `now`, when the last recorded hashes have the key `last`.
    pub fn since(last: Option<KeyId>, now: KeyId) -> Self {
        match last {
            None => Self::First,
            Some(last) if last == now => Self::Same,
            Some(former) => Self::New { former },
        }
    }
}

fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Only the owner may take the group's permissions.
#[cfg(unix)]
fn private_again(file: &File) -> io::Result<()> {
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))
}

#[cfg(not(unix))]
fn private_again(_: &File) -> io::Result<()> {
    Ok(())
}

/// The permissions; none for anybody else where there is no such thing.
#[cfg(unix)]
fn mode(file: &File) -> io::Result<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(file.metadata()?.permissions().mode() & 0o777)
}

#[cfg(unix)]
fn is_of_root(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    Ok(file.metadata()?.uid() == 0)
}

#[cfg(not(unix))]
fn is_of_root(_: &File) -> io::Result<bool> {
    Ok(false)
}

#[cfg(not(unix))]
fn mode(_: &File) -> io::Result<u32> {
    Ok(0o600)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parse(text: &str) -> Option<[u8; BYTES]> {
    let digits = text.strip_prefix(FORMAT)?.strip_prefix(' ')?.trim_end().as_bytes();
    let mut bytes = [0; BYTES];
    if digits.len() != 2 * BYTES {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HashKey").field(&self.id()).finish()
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for KeyId {
    type Err = InvalidKeyId;

    fn from_str(text: &str) -> Result<Self, InvalidKeyId> {
        let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        if text.len() != 8 || !text.chars().all(is_digit) {
            return Err(InvalidKeyId);
        }
        u32::from_str_radix(text, 16).map(Self).map_err(|_| InvalidKeyId)
    }
}

/// As it is printed.
impl Serialize for KeyId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
