//! Members come and go.

use crate::support::{Acting, Member, all_are_stamped, owners_see_deletions, server};
use informer::share::ShareBy;

#[tokio::test]
async fn q9_members_divide_the_objects_and_a_leaving_one_hands_its_share_over() {
    for by in [ShareBy::Namespace, ShareBy::Uid] {
        let server = server().await;
        let acting = Acting::default();
        let one = Member::join(&server, "one", by, &acting);
        let status = one.settles(1).await;
        assert!(status.acts_on.is_all());
        all_are_stamped(&server, by, &status.members).await;

        let two = Member::join(&server, "two", by, &acting);
        let three = Member::join(&server, "three", by, &acting);
        let status = two.settles(3).await;
        one.settles(3).await;
        three.settles(3).await;
        all_are_stamped(&server, by, &status.members).await;

        one.leave().await.unwrap();
        let status = two.settles(2).await;
        three.settles(2).await;
        all_are_stamped(&server, by, &status.members).await;

        two.crash();
        let status = three.settles(1).await;
        all_are_stamped(&server, by, &status.members).await;
        three.leave().await.unwrap();
    }
}

/// Issue 20: a member that joined rebuilt the controllers of all others, with a list each.
#[tokio::test]
async fn q9_a_member_that_joins_costs_the_others_no_new_controller() {
    let by = ShareBy::Uid;
    let server = server().await;
    let acting = Acting::default();
    let one = Member::join(&server, "one", by, &acting);
    one.settles(1).await;
    let two = Member::join(&server, "two", by, &acting);
    one.settles(2).await;
    two.settles(2).await;
    let three = Member::join(&server, "three", by, &acting);
    for member in [&one, &two, &three] {
        assert_eq!(member.settles(3).await.controllers, 1);
    }
    let status = three.handle.status();
    all_are_stamped(&server, by, &status.members).await;
    // The others still have the objects in their caches.
    owners_see_deletions(&server, &acting, &status.members).await;
}
