//! Label selectors: requirements, and the labels that fulfil them.

use std::fmt;
use std::sync::Arc;

use crate::InvalidSelector;
use crate::validity::{Fault, key_fault, value_fault};

/// The labels of one object.
pub trait LabelSet {
    /// The value of a label.
    fn value(&self, key: &str) -> Option<&str>;
}

impl LabelSet for [(&str, &str)] {
    fn value(&self, key: &str) -> Option<&str> {
        self.iter().find(|(other, _)| *other == key).map(|(_, value)| *value)
    }
}

/// A condition on an object's labels: all requirements must hold.
///
/// ```
/// use kube_selector::Selector;
///
/// let selector: Selector = "app in (cart, shop), tier!=db, !legacy".parse()?;
/// assert!(selector.matches(&[("app", "cart")][..]));
/// assert!(!selector.matches(&[("app", "cart"), ("tier", "db")][..]));
/// assert_eq!(selector.to_string(), "app in (cart,shop),!legacy,tier!=db");
/// # Ok::<(), kube_selector::InvalidSelector>(())
/// ```
///
/// A selector is normalised: white space, the order of requirements and values, repetitions, and the choice between `=`, `==`
/// and `in` with one value make no difference. A clone is a reference count.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Selector(Option<Arc<[Requirement]>>);

/// One condition on one label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Requirement {
    key: Box<str>,
    operator: Operator,
    /// Sorted and distinct.
    values: Box<[Box<str>]>,
}

/// How a requirement compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operator {
    /// The label exists and has one of the values.
    In,
    /// The label does not exist, or has none of the values.
    NotIn,
    /// The label exists.
    Exists,
    /// The label does not exist.
    DoesNotExist,
    /// The label exists and is a whole number above the value.
    GreaterThan,
    /// The label exists and is a whole number below the value.
    LessThan,
}

impl Operator {
    /// Whether it compares numbers. The index by labels alone cannot answer such a requirement.
    pub fn compares(self) -> bool {
        matches!(self, Self::GreaterThan | Self::LessThan)
    }
}

impl Requirement {
    /// A condition on the label `key`. `Exists` and `DoesNotExist` take no value, `GreaterThan` and `LessThan` take one.
    ///
    /// # Errors
    ///
    /// When the key or a value is not valid for a label, or the number of values does not fit the operator.
    pub fn new<'a>(
        key: &str,
        operator: Operator,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, InvalidSelector> {
        let requirement = Self::unchecked(key, operator, values);
        match key_fault(key).or_else(|| requirement.values_fault()) {
            None => Ok(requirement),
            Some((reason, remedy)) => Err(InvalidSelector::labels(reason, remedy)),
        }
    }

    pub(crate) fn unchecked<'a>(
        key: &str,
        operator: Operator,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let mut values: Vec<Box<str>> = values.into_iter().map(Box::from).collect();
        values.sort_unstable();
        values.dedup();
        Self { key: key.into(), operator, values: values.into() }
    }

    /// Values that no label can have, or that do not fit the operator.
    pub(crate) fn values_fault(&self) -> Option<Fault> {
        let count = self.values.len();
        let reason = match self.operator {
            Operator::In | Operator::NotIn if count == 0 => {
                "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
            }
            Operator::GreaterThan | Operator::LessThan if count != 1 => {
                "values: Invalid value: for 'Gt', 'Lt' operators, exactly one value is required"
            }
            Operator::Exists | Operator::DoesNotExist if count != 0 => {
                "values: Invalid value: values set must be empty for exists and does not exist"
            }
            _ => return value_fault(&self.key, self.values(), self.operator.compares()),
        };
        Some((reason.to_owned(), "give as many values as the operator takes"))
    }

    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The operator.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values, sorted.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|value| &**value)
    }

    /// Whether it holds for these labels.
    pub fn matches(&self, labels: &(impl LabelSet + ?Sized)) -> bool {
        let value = labels.value(&self.key);
        let is_one_of = |value: &str| self.values.iter().any(|other| **other == *value);
        match self.operator {
            Operator::In => value.is_some_and(is_one_of),
            Operator::NotIn => !value.is_some_and(is_one_of),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => self.numbers(value).is_some_and(|(label, bound)| label > bound),
            Operator::LessThan => self.numbers(value).is_some_and(|(label, bound)| label < bound),
        }
    }

    fn numbers(&self, value: Option<&str>) -> Option<(i64, i64)> {
        Some((value?.parse().ok()?, self.values.first()?.parse().ok()?))
    }
}

impl Selector {
    /// Matches every object.
    pub const EVERYTHING: Self = Self(None);

    /// Whether there is no requirement: all objects match.
    pub fn is_everything(&self) -> bool {
        self.0.is_none()
    }

    /// The requirements, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Whether all requirements hold for these labels.
    pub fn matches(&self, labels: &(impl LabelSet + ?Sized)) -> bool {
        self.requirements().iter().all(|requirement| requirement.matches(labels))
    }

    /// Adds a requirement.
    #[must_use]
    pub fn and(self, requirement: Requirement) -> Self {
        self.requirements().iter().cloned().chain([requirement]).collect()
    }

    /// Adds a requirement: the label has this value.
    ///
    /// ```
    /// use kube_selector::Selector;
    ///
    /// let selector = Selector::EVERYTHING.equals("app", "cart")?.none_of("tier", ["db", "cache"])?;
    /// assert_eq!(selector.to_string(), "app=cart,tier notin (cache,db)");
    /// # Ok::<(), kube_selector::InvalidSelector>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Requirement::new`].
    pub fn equals(self, key: &str, value: &str) -> Result<Self, InvalidSelector> {
        self.one_of(key, [value])
    }

    /// Adds a requirement: the label has one of these values.
    ///
    /// # Errors
    ///
    /// As [`Requirement::new`].
    pub fn one_of<'a>(
        self,
        key: &str,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, InvalidSelector> {
        Ok(self.and(Requirement::new(key, Operator::In, values)?))
    }

    /// Adds a requirement: the label does not exist, or has another value.
    ///
    /// # Errors
    ///
    /// As [`Requirement::new`].
    pub fn not_equals(self, key: &str, value: &str) -> Result<Self, InvalidSelector> {
        self.none_of(key, [value])
    }

    /// Adds a requirement: the label does not exist, or has none of these values.
    ///
    /// # Errors
    ///
    /// As [`Requirement::new`].
    pub fn none_of<'a>(
        self,
        key: &str,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, InvalidSelector> {
        Ok(self.and(Requirement::new(key, Operator::NotIn, values)?))
    }

    /// Adds a requirement: the label exists.
    ///
    /// # Errors
    ///
    /// As [`Requirement::new`].
    pub fn exists(self, key: &str) -> Result<Self, InvalidSelector> {
        Ok(self.and(Requirement::new(key, Operator::Exists, [])?))
    }

    /// Adds a requirement: the label does not exist.
    ///
    /// # Errors
    ///
    /// As [`Requirement::new`].
    pub fn does_not_exist(self, key: &str) -> Result<Self, InvalidSelector> {
        Ok(self.and(Requirement::new(key, Operator::DoesNotExist, [])?))
    }
}

impl FromIterator<Requirement> for Selector {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        let mut requirements: Vec<_> = requirements.into_iter().collect();
        requirements.sort();
        requirements.dedup();
        Self((!requirements.is_empty()).then(|| requirements.into()))
    }
}

impl From<&Self> for Selector {
    fn from(selector: &Self) -> Self {
        selector.clone()
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match (self.operator, &*self.values) {
            (Operator::Exists, _) => f.write_str(key),
            (Operator::DoesNotExist, _) => write!(f, "!{key}"),
            (Operator::In, [value]) => write!(f, "{key}={value}"),
            (Operator::NotIn, [value]) => write!(f, "{key}!={value}"),
            (Operator::In, values) => write!(f, "{key} in ({})", values.join(",")),
            (Operator::NotIn, values) => write!(f, "{key} notin ({})", values.join(",")),
            (Operator::GreaterThan, values) => write!(f, "{key}>{}", values.join(",")),
            (Operator::LessThan, values) => write!(f, "{key}<{}", values.join(",")),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements().iter().enumerate() {
            write!(f, "{}{requirement}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selector({self})")
    }
}
