//! Bytes in compressed form: each version is one frame, which refers to a dictionary of its cache.
//!
//! All caches of the process share the working memory for packing and unpacking. Its size depends on how many threads pack at
//! the same time.

mod dictionaries;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zstd_dictionary::{Error, Packer, Packing, Unpacker};

pub(super) use dictionaries::{Current, Draft, Family};

/// The number of idle packers that are kept, 130 to 360 KB each. The caches of one connection thread pack on that thread.
const PACKERS: usize = 2;
/// The number of idle unpackers that are kept, 95 KB each.
const UNPACKERS: usize = 4;
/// A larger buffer is not kept, because it served a rare large object.
const FRAME_BUFFER: usize = 256 << 10;

struct Pool<T> {
    idle: Mutex<Vec<T>>,
    most: usize,
}

static PACKING: Pool<(Packer, Vec<u8>)> = Pool::new(PACKERS);
static UNPACKING: Pool<Unpacker> = Pool::new(UNPACKERS);

impl<T> Pool<T> {
    const fn new(most: usize) -> Self {
        Self { idle: Mutex::new(Vec::new()), most }
    }

    fn take(&self) -> Option<T> {
        self.idle().pop()
    }

    fn give_back(&self, context: T) {
        let mut idle = self.idle();
        if idle.len() < self.most {
            idle.push(context);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<T>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The compressed bytes, or `None` if memory runs out.
pub(super) fn pack(bytes: &[u8], dictionary: Option<&Packing>) -> Option<Box<[u8]>> {
    let (mut packer, mut buffer) = match PACKING.take() {
        Some(idle) => idle,
        None => (Packer::new().ok()?, Vec::new()),
    };
    packer.pack(bytes, dictionary, &mut buffer).ok()?;
    let frame: Box<[u8]> = buffer.as_slice().into();
    if buffer.capacity() > FRAME_BUFFER {
        buffer = Vec::new();
    }
    PACKING.give_back((packer, buffer));
    Some(frame)
}

/// The bytes that were packed.
pub(super) fn unpack(frame: &[u8], length: usize, family: Option<&Arc<Family>>) -> Result<Vec<u8>, Error> {
    let dictionary = family.map(|family| family.unpacking());
    let mut unpacker = match UNPACKING.take() {
        Some(idle) => idle,
        None => Unpacker::new()?,
    };
    let bytes = unpacker.unpack(frame, dictionary.as_deref(), length);
    UNPACKING.give_back(unpacker);
    bytes
}
