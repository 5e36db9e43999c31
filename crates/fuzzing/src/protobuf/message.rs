//! A writer of protobuf messages, in the given order, and of their framing.

/// The bytes before every envelope.
pub(super) const MAGIC: &[u8] = b"k8s\0";

/// An object in its envelope, as servers send it.
pub(super) fn envelope(api_version: &str, kind: &str, object: impl AsRef<[u8]>) -> Vec<u8> {
    let types = Message::new().bytes(1, api_version).bytes(2, kind);
    let unknown = Message::new().message(1, types).bytes(2, object).bytes(3, "").bytes(4, "");
    [MAGIC, unknown.as_ref()].concat()
}

/// A message, so far.
#[derive(Debug, Clone, Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// Without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// With a field of bytes, text among them.
    pub fn bytes(mut self, number: u32, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        self.varint(u64::from(number) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    /// With a field that is a message.
    pub fn message(self, number: u32, message: Self) -> Self {
        self.bytes(number, message.0)
    }

    /// With a field that is a number or a boolean.
    pub fn number(mut self, number: u32, value: impl Into<i64>) -> Self {
        self.varint(u64::from(number) << 3);
        self.varint(value.into().cast_unsigned());
        self
    }

    /// With a field that is a floating-point number.
    pub fn double(mut self, number: u32, value: f64) -> Self {
        self.varint(u64::from(number) << 3 | 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// With an entry of a map.
    pub fn entry(self, number: u32, key: &str, value: impl AsRef<[u8]>) -> Self {
        self.message(number, Self::new().bytes(1, key).bytes(2, value))
    }

    /// With what `add` adds for each of `values`.
    pub fn each<T>(self, values: impl IntoIterator<Item = T>, add: impl Fn(Self, T) -> Self) -> Self {
        values.into_iter().fold(self, add)
    }

    /// Its bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
