//! A dictionary, and how it grows.
//!
//! A frame refers to content by its distance from the dictionary's end. So content that is added *before* the existing
//! content leaves older frames decodable. The dictionary grows, and memory holds one form of it for all frames that were ever
//! made with it.

use std::sync::{Arc, PoisonError, RwLock};

use zstd_dictionary::{Dictionary, Form, Packing, Unpacking, finalize};

/// A dictionary in its newest form, held by each object that was packed with any of its forms.
pub(in super::super) struct Family {
    /// The lock is held only to clone or swap the `Arc`.
    unpacking: RwLock<Arc<Unpacking>>,
}

/// The dictionary that new objects are packed with.
#[derive(Clone)]
pub(in super::super) struct Current {
    pub(in super::super) family: Arc<Family>,
    pub(in super::super) packing: Arc<Packing>,
}

/// A dictionary in the making: the statistics and the content of a former one, if any, with more content before it.
#[derive(Clone)]
pub(in super::super) struct Draft {
    /// The length of the statistics that a finalized dictionary begins with.
    header: usize,
    dictionary: Option<Dictionary>,
}

impl Family {
    pub(in super::super) fn new(unpacking: Unpacking) -> Self {
        Self { unpacking: RwLock::new(Arc::new(unpacking)) }
    }

    pub(in super::super) fn unpacking(&self) -> Arc<Unpacking> {
        self.unpacking.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The bytes of memory that the dictionary takes.
    pub(in super::super) fn held_bytes(&self) -> usize {
        let unpacking = self.unpacking();
        unpacking.held_bytes() + unpacking.bytes().len()
    }

    /// Replaces the newest form by one that has grown from it.
    pub(in super::super) fn grow(&self, unpacking: Unpacking) {
        let unpacking = Arc::new(unpacking);
        let mut place = self.unpacking.write().unwrap_or_else(PoisonError::into_inner);
        let former = std::mem::replace(&mut *place, unpacking);
        drop(place);
        drop(former);
    }
}

impl Draft {
    pub(in super::super) const EMPTY: Self = Self { header: 0, dictionary: None };

    pub(in super::super) fn len(&self) -> u64 {
        self.dictionary.as_ref().map_or(0, |dictionary| dictionary.bytes().len() as u64)
    }

    /// A draft with `content` before its own content.
    pub(in super::super) fn with(&self, content: &[Vec<u8>]) -> Option<Self> {
        let (bytes, form) = match &self.dictionary {
            Some(dictionary) => (dictionary.bytes(), dictionary.form()),
            None => (&[][..], Form::Raw),
        };
        let (header, old) = bytes.split_at_checked(self.header).unwrap_or_default();
        let mut bytes =
            Vec::with_capacity(bytes.len() + content.iter().map(|part| part.len()).sum::<usize>());
        bytes.extend_from_slice(header);
        content.iter().for_each(|part| bytes.extend_from_slice(part));
        bytes.extend_from_slice(old);
        Some(Self { header: self.header, dictionary: Some(Dictionary::new(bytes.into(), form).ok()?) })
    }

    /// Gives a new dictionary the statistics of these samples. A dictionary that has grown keeps those of its first form,
    /// because its older frames were made with them.
    pub(in super::super) fn finalized(self, samples: &[Vec<u8>]) -> Self {
        match &self.dictionary {
            Some(dictionary) if dictionary.form() == Form::Raw => {
                let content = dictionary.bytes();
                let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
                let Ok(bytes) = finalize(content, &samples) else { return self };
                let header = bytes.len() - content.len();
                match Dictionary::new(bytes.into(), Form::Finalized) {
                    Ok(dictionary) => Self { header, dictionary: Some(dictionary) },
                    Err(_) => self,
                }
            }
            _ => self,
        }
    }

    pub(in super::super) fn packing(&self) -> Option<Packing> {
        self.dictionary.as_ref()?.packing().ok()
    }

    pub(in super::super) fn unpacking(&self) -> Option<Unpacking> {
        self.dictionary.as_ref()?.unpacking().ok()
    }
}
