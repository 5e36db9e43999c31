//! The order of a merged list: items of the patch keep the patch's order, other items keep theirs, and former positions
//! decide how both are interleaved.

use serde_json::Value;

/// Whether two items are the same: by their key, or as a whole if there is no key.
pub(super) fn equal_by(key: Option<&str>, left: &Value, right: &Value) -> bool {
    match key {
        None => left == right,
        Some(key) => left.get(key) == right.get(key),
    }
}

/// Whether `items` are in the order of `order`, which may have more items.
pub(super) fn in_order(items: &[&Value], order: &[Value], key: Option<&str>) -> bool {
    let mut order = order.iter();
    items.iter().all(|item| order.any(|next| equal_by(key, item, next)))
}

/// Sorts `items`: those in `first` by their order there, the others by their order in `before`. `None` if an item has
/// no key.
pub(super) fn join(
    items: Vec<Value>,
    first: &[Value],
    before: &[Value],
    key: Option<&str>,
) -> Option<Vec<Value>> {
    if let Some(key) = key {
        let all_have_it = items.iter().chain(first).chain(before).all(|item| item.get(key).is_some());
        if !all_have_it {
            return None;
        }
    }
    let place = |list: &[Value], item: &Value| list.iter().position(|other| equal_by(key, item, other));
    let (mut said, mut others): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|item| place(first, item).is_some());
    said.sort_by_key(|item| place(first, item));
    others.sort_by_key(|item| place(before, item));

    let mut joined = Vec::with_capacity(said.len() + others.len());
    let mut said = said.into_iter().peekable();
    let mut others = others.into_iter().peekable();
    loop {
        let other_is_next = match (others.peek(), said.peek()) {
            (None, None) => return Some(joined),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(other), Some(said)) => match (place(before, other), place(before, said)) {
                (Some(other), Some(said)) => other < said,
                _ => false,
            },
        };
        joined.extend(if other_is_next { others.next() } else { said.next() });
    }
}
