//! The schema of Kubernetes' messages: the tables that `cargo xtask messages` writes, and look-ups in them.
//!
//! All of it is constant: no heap, no initialisation, and no pointers that a loader would have to relocate. A field's
//! number leads to a slot, the slot to a member of the JSON object. Members are in the order of JSON.

/// A message.
pub(crate) struct Message {
    pub(crate) form: Form,
    members_at: u16,
    members: u8,
    slots_at: u16,
    slots: u8,
    /// The members that JSON has even if the message lacks them, as bits.
    pub(crate) always: u64,
}

/// The form of a message in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Object,
    /// The list that is its only field.
    List,
    /// The JSON that it carries.
    Json,
    /// JSON that it carries, or an object in an envelope.
    Extension,
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    /// A schema, `true` or `false`.
    OrBool,
    /// The list if it has one, else the schema.
    OrArray,
}

/// A member of an object in JSON.
pub(crate) struct Member {
    name_at: u16,
    name_length: u8,
    pub(crate) many: Many,
    pub(crate) presence: Presence,
    pub(crate) of: Of,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    String,
    Bytes,
    Bool,
    Int32,
    Int64,
    Double,
    Message(u16),
}

/// How many values a member has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Many {
    One,
    List,
    /// A map with string keys.
    Map,
}

/// When JSON has a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Always; a missing value is zero, empty, or `null` for types without an empty value.
    Always,
    /// Always; a missing value is `null`.
    Nullable,
    /// If the message has it, even if zero.
    Given,
    /// If it is neither zero nor empty.
    NotEmpty,
    /// If it is a time.
    NotZero,
}

/// The destination of a field's value.
pub(crate) enum Slot {
    /// The member of this rank.
    Member(u8),
    /// The fields of its message are members too, from this rank on.
    Inline(&'static Message, u8),
}

/// The destinations of a message's fields.
#[derive(Clone, Copy)]
pub(crate) struct Slots(&'static [u8]);

pub(crate) struct Inline {
    message: u16,
    base: u8,
}

/// A kind's place in the text of all kinds.
pub(crate) struct Entry {
    at: u16,
    api_version: u8,
    kind: u8,
    message: u16,
    says_it: bool,
}

/// The number of members of one message that a walk can note.
pub(crate) const MEMBERS_MAX: usize = 64;
const INLINE: u8 = 0x80;
const NO_SLOT: u8 = 0xff;

#[rustfmt::skip]
mod table {
    use super::*;

    include!("schema/table.inc");

    const fn message(form: Form, members_at: u16, members: u8, slots_at: u16, slots: u8, always: u64) -> Message {
        Message { form, members_at, members, slots_at, slots, always }
    }

    const fn member(name_at: u16, name_length: u8, of: Of, many: Many, presence: Presence) -> Member {
        Member { name_at, name_length, many, presence, of }
    }

    const fn inline(message: u16, base: u8) -> Inline {
        Inline { message, base }
    }

    const fn kind(at: u16, api_version: u8, kind: u8, message: u16, says_it: bool) -> Entry {
        Entry { at, api_version, kind, message, says_it }
    }
}

pub(crate) use table::{KUBERNETES, PARTIAL_OBJECT_METADATA};

impl Message {
    #[inline]
    pub(crate) fn numbered(number: u16) -> Option<&'static Self> {
        table::MESSAGES.get(usize::from(number))
    }

    /// Its members, in the order of JSON.
    #[inline]
    pub(crate) fn members(&self) -> &'static [Member] {
        let at = usize::from(self.members_at);
        table::MEMBERS.get(at..at + usize::from(self.members)).unwrap_or_default()
    }

    /// The destinations of its fields.
    #[inline]
    pub(crate) fn slots(&self) -> Slots {
        let at = usize::from(self.slots_at);
        Slots(table::SLOTS.get(at..at + usize::from(self.slots)).unwrap_or_default())
    }

    /// The destination of the field with that number, if it is known.
    #[inline]
    pub(crate) fn slot(&self, number: u32) -> Option<Slot> {
        self.slots().get(number)
    }
}

impl Slots {
    /// The destination of the field with that number, if it is known.
    #[inline]
    pub(crate) fn get(self, number: u32) -> Option<Slot> {
        match *self.0.get((number as usize).wrapping_sub(1))? {
            NO_SLOT => None,
            rank if rank < INLINE => Some(Slot::Member(rank)),
            inline => {
                let Inline { message, base } = table::INLINES.get(usize::from(inline - INLINE))?;
                Some(Slot::Inline(Message::numbered(*message)?, *base))
            }
        }
    }
}

impl Member {
    /// The name with quotes and colon.
    #[inline]
    pub(crate) fn label(&self) -> &'static str {
        let at = usize::from(self.name_at);
        table::NAMES.get(at..at + usize::from(self.name_length) + r#""":"#.len()).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn name(&self) -> &'static str {
        let at = usize::from(self.name_at) + 1;
        table::NAMES.get(at..at + usize::from(self.name_length)).unwrap_or_default()
    }
}

impl Entry {
    pub(crate) fn all() -> &'static [Self] {
        &table::KINDS
    }

    /// `apps/v1 Deployment`.
    pub(crate) fn text(&self) -> &'static str {
        let at = usize::from(self.at);
        let length = usize::from(self.api_version) + 1 + usize::from(self.kind);
        table::KIND_NAMES.get(at..at + length).unwrap_or_default()
    }

    pub(crate) fn api_version(&self) -> &'static str {
        self.text().get(..usize::from(self.api_version)).unwrap_or_default()
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.text().get(usize::from(self.api_version) + 1..).unwrap_or_default()
    }

    /// Whether its JSON has `kind` and `apiVersion`.
    pub(crate) fn says_it(&self) -> bool {
        self.says_it
    }

    pub(crate) fn message(&self) -> Option<&'static Message> {
        Message::numbered(self.message)
    }

    /// Whether its first field is an `ObjectMeta`.
    pub(crate) fn has_object_metadata(&self) -> bool {
        let message = table::MESSAGES.get(usize::from(self.message));
        let slot = message.and_then(|message| Some((message, message.slot(1)?)));
        let Some((message, Slot::Member(rank))) = slot else { return false };
        let first = message.members().get(usize::from(rank));
        first.is_some_and(|member| member.of == Of::Message(table::OBJECT_META))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_consistent() {
        assert!(table::KINDS.is_sorted_by_key(|entry| (entry.api_version(), entry.kind())));
        assert_eq!(
            table::KIND_NAMES.len(),
            table::KINDS.iter().map(|entry| entry.text().len()).sum::<usize>()
        );
        for message in &table::MESSAGES {
            let members = message.members();
            assert_eq!(members.len(), usize::from(message.members));
            assert!(members.len() <= MEMBERS_MAX);
            for member in members {
                let label = member.label();
                assert_eq!(label, format!("\"{}\":", member.name()));
                if let Of::Message(number) = member.of {
                    assert!(Message::numbered(number).is_some(), "{label}");
                }
            }
            let mut ranks: Vec<u8> = Vec::new();
            for number in 1..=u32::from(message.slots) {
                match message.slot(number) {
                    Some(Slot::Member(rank)) => ranks.push(rank),
                    Some(Slot::Inline(inlined, base)) => {
                        let count = u8::try_from(inlined.members().len()).unwrap();
                        ranks.extend(base..base + count);
                        let names = |message: &Message, from| {
                            message.members()[from..]
                                .iter()
                                .map(Member::name)
                                .take(count.into())
                                .collect::<Vec<_>>()
                        };
                        assert_eq!(names(inlined, 0), names(message, base.into()));
                    }
                    None => {}
                }
            }
            ranks.sort_unstable();
            assert!(ranks.iter().copied().eq(0..message.members), "each member has one field");
        }
    }

    #[test]
    fn the_tables_are_small() {
        let bytes = size_of_val(&table::MESSAGES)
            + size_of_val(&table::MEMBERS)
            + size_of_val(&table::SLOTS)
            + size_of_val(&table::KINDS)
            + table::NAMES.len()
            + table::KIND_NAMES.len();
        assert!(bytes < 150_000, "{bytes} bytes");
    }
}
