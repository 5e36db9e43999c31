//! Issue 12, first item 3: arguments as with kubectl.

use expect_test::expect;
use kubediff::targets::Wanted;

fn parsed(arguments: &[&str]) -> String {
    let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
    match Wanted::parse(&arguments) {
        Ok(wanted) => format!("{wanted:?}\n")
            .replace("Wish { resource: ", "")
            .replace(", name: Some(", " / ")
            .replace(", name: None }", "")
            .replace(") }", ""),
        Err(error) => format!("{error}\n"),
    }
}

#[test]
fn resources_and_objects() {
    let texts: String = [
        [].as_slice(),
        &["deploy"],
        &["deploy,cm"],
        &["Deploy, cm"],
        &["deploy", "cart"],
        &["deploy", "cart", "front"],
        &["deploy", "cart,front"],
        &["deploy,cm", "cart"],
        &["deploy/cart"],
        &["pod/foo", "deploy/cart"],
        &["pod/foo,deploy/cart"],
        &["deployments.apps/cart"],
        &["apps/v1/deployments"],
        &["apps/v1/deployments/cart"],
        &["apps/v1/deployments", "cart"],
        &["apps/v1/deployments", "v1/pods"],
        &["clusterrole", "system:node"],
        &["v2/x", "vx/y"],
    ]
    .into_iter()
    .map(parsed)
    .collect();
    expect![[r#"
        Wanted([])
        Wanted(["deploy"])
        Wanted(["deploy", "cm"])
        Wanted(["Deploy", "cm"])
        Wanted(["deploy" / "cart"])
        Wanted(["deploy" / "cart", "deploy" / "front"])
        Wanted(["deploy" / "cart", "deploy" / "front"])
        Wanted(["deploy" / "cart", "cm" / "cart"])
        Wanted(["deploy" / "cart"])
        Wanted(["pod" / "foo", "deploy" / "cart"])
        Wanted(["pod" / "foo", "deploy" / "cart"])
        Wanted(["deployments.apps" / "cart"])
        Wanted(["apps/v1/deployments"])
        Wanted(["apps/v1/deployments" / "cart"])
        Wanted(["apps/v1/deployments" / "cart"])
        Wanted(["apps/v1/deployments", "v1/pods"])
        Wanted(["clusterrole" / "system:node"])
        `v2/x` stands beside `vx/y`: name objects as `deploy/cart deploy/v2/x` or as `deploy cart v2/x`
    "#]]
    .assert_eq(&texts);
}

#[test]
fn arguments_that_mean_nothing_say_so() {
    let texts: String = [
        [""].as_slice(),
        &[","],
        &["deploy,"],
        &["deploy", ""],
        &["deploy/"],
        &["/cart"],
        &["deploy//cart"],
        &["deploy/cart", "front"],
        &["cm", "deploy/cart"],
        &["deploy", "ca rt"],
        &["deploy", ".."],
        &["pod/a=b"],
    ]
    .into_iter()
    .map(parsed)
    .collect();
    expect![[r#"
        a name is missing in ``: name resources as in `deploy,cm` and objects as in `deploy/cart`, or leave the argument out to watch everything
        a name is missing in `,`: name resources as in `deploy,cm` and objects as in `deploy/cart`, or leave the argument out to watch everything
        a name is missing in `deploy,`: name resources as in `deploy,cm` and objects as in `deploy/cart`, or leave the argument out to watch everything
        a name is missing in ``: name resources as in `deploy,cm` and objects as in `deploy/cart`, or leave the argument out to watch everything
        a name is missing in `deploy/`: name resources as in `deploy,cm` and objects as in `deploy/cart`, or leave the argument out to watch everything
        a name is missing in `/cart`: name resources as in `deploy,cm` and objects as in `deploy/cart`, or leave the argument out to watch everything
        a name is missing in `deploy//cart`: name resources as in `deploy,cm` and objects as in `deploy/cart`, or leave the argument out to watch everything
        `front` stands beside `deploy/cart`: name objects as `deploy/cart deploy/front` or as `deploy cart front`
        `cm` stands beside `deploy/cart`: name objects as `deploy/cart deploy/cm` or as `deploy cart cm`
        `ca rt` cannot be the name of an object
        `..` cannot be the name of an object
        `a=b` cannot be the name of an object
    "#]].assert_eq(&texts);
}
