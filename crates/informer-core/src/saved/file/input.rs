//! Reads a saved cache.

use std::collections::HashSet;
use std::io::{self, BufRead, Read};
use std::sync::Arc;

use informer_protobuf::Kind;
use zstd::stream::read::Decoder;

use super::output::{ALL, END, NAMESPACE, OBJECT};
use super::{FORMAT, LONGEST_TEXT, LoadError, MAGIC, WINDOW_LOG};
use crate::labels::RecentLabels;
use crate::object::ContentRecord;
use crate::store::SourcePoint;
use crate::wire::scan_protobuf;
use crate::{Object, ObjectKey, ResourceVersion, Scope, Storage};

pub(super) struct Input<R: BufRead> {
    frame: Decoder<'static, Summed<R>>,
}

impl<R: BufRead> Input<R> {
    pub(super) fn begin(input: R) -> Result<Self, LoadError> {
        let mut input = Summed { input, sum: crc32fast::Hasher::new(), failed: false };
        let mut magic = [0; MAGIC.len()];
        let mut format = [0; 4];
        read_head(&mut input, &mut magic)?;
        if magic != *MAGIC {
            return Err(LoadError::foreign());
        }
        read_head(&mut input, &mut format)?;
        let format = u32::from_le_bytes(format);
        if format != FORMAT {
            return Err(LoadError::format(format));
        }
        let mut frame = Decoder::with_buffer(input).map_err(LoadError::io)?.single_frame();
        // A frame that needs more memory than this was not written by this library.
        frame.window_log_max(WINDOW_LOG).map_err(LoadError::io)?;
        Ok(Self { frame })
    }

    pub(super) fn count(&mut self) -> Result<usize, LoadError> {
        usize::try_from(self.number()?).map_err(|_| LoadError::damaged("a number is too large"))
    }

    pub(super) fn number(&mut self) -> Result<u64, LoadError> {
        let mut bytes = [0; 8];
        self.exactly(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub(super) fn text(&mut self) -> Result<String, LoadError> {
        String::from_utf8(self.bytes(LONGEST_TEXT)?).map_err(|_| LoadError::damaged("a string is not UTF-8"))
    }

    /// The buffer grows as bytes arrive, because the length may be wrong.
    fn bytes(&mut self, longest: usize) -> Result<Vec<u8>, LoadError> {
        let mut length = [0; 4];
        self.exactly(&mut length)?;
        let length = u32::from_le_bytes(length);
        if length as usize > longest {
            return Err(LoadError::damaged("a string or an object is too long"));
        }
        let mut bytes = Vec::new();
        let read = (&mut self.frame).take(length.into()).read_to_end(&mut bytes);
        if read.map_err(|error| self.failure(error))? < length as usize {
            return Err(LoadError::damaged("it ends early"));
        }
        Ok(bytes)
    }

    pub(super) fn source(&mut self) -> Result<SourcePoint, LoadError> {
        let scope = match self.byte()? {
            ALL => Scope::All,
            NAMESPACE => Scope::Namespace(self.text()?.into()),
            _ => return Err(LoadError::damaged("a scope is of an unknown kind")),
        };
        let resource_version = ResourceVersion::new(&self.text()?);
        let has_unread = self.byte()? != 0;
        Ok(SourcePoint { scope, resource_version, has_unread })
    }

    /// The next object; `None` after the last one.
    pub(super) fn object(
        &mut self,
        longest: usize,
        storage: &dyn Storage,
    ) -> Result<Option<Object>, LoadError> {
        match self.byte()? {
            OBJECT => {}
            END => return Ok(None),
            _ => return Err(LoadError::damaged("bytes other than objects stand between them")),
        }
        let encoding = self.text()?;
        let content = ContentRecord::from_saved(self.number()?);
        let bytes = self.bytes(longest)?;
        Ok(Some(object_of(&encoding, &bytes, storage)?.with_content(content)))
    }

    fn byte(&mut self) -> Result<u8, LoadError> {
        let mut byte = [0];
        self.exactly(&mut byte)?;
        Ok(byte[0])
    }

    fn exactly(&mut self, bytes: &mut [u8]) -> Result<(), LoadError> {
        self.frame.read_exact(bytes).map_err(|error| self.failure(error))
    }

    /// Distinguishes a failed read from invalid bytes.
    fn failure(&self, error: io::Error) -> LoadError {
        match (self.frame.get_ref().failed, error.kind()) {
            (true, _) => LoadError::io(error),
            (false, io::ErrorKind::UnexpectedEof) => LoadError::damaged("it ends early"),
            (false, _) => LoadError::damaged("it cannot be decompressed"),
        }
    }

    /// Checks that the file ends here and is unchanged.
    pub(super) fn end(mut self) -> Result<(), LoadError> {
        self.exhaust()?;
        let mut input = self.frame.finish();
        input.check()
    }

    /// The actual reason for `error`: a file that seems foreign or newer may be damaged.
    pub(super) fn explain(mut self, error: LoadError) -> LoadError {
        if error.is_io() || error.is_damaged() {
            return error;
        }
        let rest = self.frame.get_mut().pass_over();
        match rest {
            Ok(()) => error,
            Err(worse) => worse,
        }
    }

    /// Reads to the end of the frame, which must be the end of the file.
    fn exhaust(&mut self) -> Result<(), LoadError> {
        match self.frame.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(LoadError::damaged("bytes follow its end")),
            Err(error) => Err(self.failure(error)),
        }
    }
}

fn read_head(input: &mut impl Read, bytes: &mut [u8]) -> Result<(), LoadError> {
    input.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => LoadError::foreign(),
        _ => LoadError::io(error),
    })
}

fn object_of(encoding: &str, bytes: &[u8], storage: &dyn Storage) -> Result<Object, LoadError> {
    let mut words = encoding.split(' ');
    let object = match (words.next(), words.next(), words.next()) {
        (Some("json"), None, None) => {
            Object::from_json(bytes).ok().and_then(|object| object.kept_in(storage).ok())
        }
        (Some("protobuf"), Some(api_version), Some(kind)) => {
            let kind = Kind::of(api_version, kind).ok_or_else(|| LoadError::encoding(encoding.to_owned()))?;
            let scanned = scan_protobuf(bytes);
            scanned.and_then(|scanned| scanned.into_object(kind, bytes, storage)).ok()
        }
        _ => return Err(LoadError::encoding(encoding.to_owned())),
    };
    object.ok_or_else(|| LoadError::damaged("an object in it is undecodable"))
}

/// The objects so far.
pub(super) struct Objects<'a> {
    sources: &'a [SourcePoint],
    keys: HashSet<ObjectKey>,
    labels: RecentLabels,
    objects: Vec<Arc<Object>>,
}

impl<'a> Objects<'a> {
    pub(super) fn new(sources: &'a [SourcePoint]) -> Self {
        Self { sources, keys: HashSet::new(), labels: RecentLabels::default(), objects: Vec::new() }
    }

    pub(super) fn add(&mut self, object: Object) -> Result<(), LoadError> {
        if !self.sources.iter().any(|source| source.scope.contains(object.key())) {
            return Err(LoadError::damaged("no source covers an object"));
        }
        if !self.keys.insert(object.key().clone()) {
            return Err(LoadError::damaged("an object occurs twice"));
        }
        self.objects.push(Arc::new(object.sharing_labels(None, &mut self.labels)));
        Ok(())
    }

    pub(super) fn into_vec(self) -> Vec<Arc<Object>> {
        self.objects
    }
}

/// Computes the checksum of all bytes that are read.
struct Summed<R> {
    input: R,
    sum: crc32fast::Hasher,
    /// Whether a read has failed.
    failed: bool,
}

impl<R: BufRead> Summed<R> {
    /// Compares the checksum with the bytes that follow, which must be the last.
    fn check(&mut self) -> Result<(), LoadError> {
        let sum = self.sum.clone().finalize();
        let mut rest = Vec::new();
        // One byte more than expected shows whether the file is too long.
        (&mut self.input).take(5).read_to_end(&mut rest).map_err(LoadError::io)?;
        match <[u8; 4]>::try_from(rest.as_slice()) {
            Ok(written) if u32::from_le_bytes(written) == sum => Ok(()),
            Ok(_) => Err(LoadError::damaged("its checksum does not match")),
            Err(_) => Err(LoadError::damaged("it ends early, or bytes follow its checksum")),
        }
    }

    /// Like `check`, without decoding the rest of the frame: computes the checksum of all bytes except the last four.
    fn pass_over(&mut self) -> Result<(), LoadError> {
        let mut last = Vec::with_capacity(4);
        loop {
            let chunk = self.input.fill_buf().map_err(LoadError::io)?;
            if chunk.is_empty() {
                break;
            }
            let length = chunk.len();
            last.extend_from_slice(chunk);
            self.input.consume(length);
            let sure = last.len().saturating_sub(4);
            self.sum.update(last.get(..sure).unwrap_or_default());
            last.drain(..sure);
        }
        match <[u8; 4]>::try_from(last.as_slice()) {
            Ok(written) if u32::from_le_bytes(written) == self.sum.clone().finalize() => Ok(()),
            _ => Err(LoadError::damaged("its checksum does not match")),
        }
    }
}

impl<R: BufRead> Read for Summed<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(bytes).inspect_err(|_| self.failed = true)?;
        self.sum.update(bytes.get(..read).unwrap_or(bytes));
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Summed<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf().inspect_err(|_| self.failed = true)
    }

    fn consume(&mut self, amount: usize) {
        // The bytes are still in the buffer, so this call reads nothing.
        if let Ok(looked_at) = self.input.fill_buf() {
            self.sum.update(looked_at.get(..amount).unwrap_or(looked_at));
        }
        self.input.consume(amount);
    }
}
