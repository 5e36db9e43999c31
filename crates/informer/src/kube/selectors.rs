//! Converts label selectors between this crate's type and kube's.

use informer_core::{InvalidSelector, Operator, Requirement, Selector};
use kube_core::Expression;

/// Converts a label selector of kube into one of this crate.
///
/// ```
/// use informer::kube::core::{Expression, Selector};
///
/// let theirs: Selector = Expression::In("app".into(), ["cart".into(), "shop".into()].into()).into();
/// let ours = informer::kube::selector(&theirs)?;
/// assert_eq!(ours.to_string(), "app in (cart,shop)");
/// # Ok::<(), informer::InvalidSelector>(())
/// ```
///
/// # Errors
///
/// When a key or a value is not valid for a label: kube does not check them.
pub fn selector(selector: &kube_core::Selector) -> Result<Selector, InvalidSelector> {
    let requirements = selector.clone().into_iter().map(|expression| requirement(&expression));
    requirements.collect()
}

fn requirement(expression: &Expression) -> Result<Requirement, InvalidSelector> {
    let (key, operator, values) = match expression {
        Expression::In(key, values) => (key, Operator::In, values.iter().collect()),
        Expression::NotIn(key, values) => (key, Operator::NotIn, values.iter().collect()),
        Expression::Equal(key, value) => (key, Operator::In, vec![value]),
        Expression::NotEqual(key, value) => (key, Operator::NotIn, vec![value]),
        Expression::Exists(key) => (key, Operator::Exists, vec![]),
        Expression::DoesNotExist(key) => (key, Operator::DoesNotExist, vec![]),
    };
    Requirement::new(key, operator, values.into_iter().map(String::as_str))
}

/// Converts a label selector of this crate into one of kube. Returns `None` if it compares numbers, which kube's selectors
/// cannot.
///
/// ```
/// let ours: informer::Selector = "app=cart, !legacy".parse()?;
/// let theirs = informer::kube::to_selector(&ours).expect("it compares no numbers");
/// assert_eq!(theirs.to_string(), "app=cart,!legacy");
/// # Ok::<(), informer::InvalidSelector>(())
/// ```
pub fn to_selector(selector: &Selector) -> Option<kube_core::Selector> {
    selector.requirements().iter().map(to_expression).collect()
}

fn to_expression(requirement: &Requirement) -> Option<Expression> {
    let key = requirement.key().to_owned();
    let mut values = requirement.values().map(str::to_owned);
    let is_single = requirement.values().count() == 1;
    Some(match requirement.operator() {
        Operator::In if is_single => Expression::Equal(key, values.next()?),
        Operator::NotIn if is_single => Expression::NotEqual(key, values.next()?),
        Operator::In => Expression::In(key, values.collect()),
        Operator::NotIn => Expression::NotIn(key, values.collect()),
        Operator::Exists => Expression::Exists(key),
        Operator::DoesNotExist => Expression::DoesNotExist(key),
        Operator::GreaterThan | Operator::LessThan => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_come_and_go() {
        for text in ["", "a", "!a", "a=b", "a!=b", "a in (b,c)", "a notin (b,c),d=e"] {
            let ours: Selector = text.parse().unwrap();
            let theirs = to_selector(&ours).unwrap();
            assert_eq!(selector(&theirs).unwrap(), ours, "{text}");
        }
        assert!(to_selector(&"a>1".parse().unwrap()).is_none());
        assert!(selector(&Expression::Exists("a b".into()).into()).is_err());
    }
}
