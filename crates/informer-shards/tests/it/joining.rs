//! Members come and go.

use crate::support::{Acting, Member, all_are_stamped, server};
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
