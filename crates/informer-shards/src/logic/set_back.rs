//! A map that somebody edited: each member goes on seeing that, however fast all of them are.

use informer::share::ShareBy;
use informer_controller::internals::Record;

use super::*;

const EDITS: [fn(&str) -> String; 2] = [
    |text| text.replace("one", "?").replace("two", "one").replace('?', "two"),
    |text| text.replace("\"generation\":2", "\"generation\":1"),
];

fn look(text: &str, acknowledged: Option<MapId>) -> Look {
    let found = |name: &str| {
        let record = serde_json::json!({ "holderIdentity": name, "leaseDurationSeconds": 15 });
        let record: Record = serde_json::from_value(record).unwrap();
        (name.to_owned(), FoundMember { record, acknowledged, leaving: false })
    };
    let members = ["one", "two"].map(found).into();
    Look { map: Found::read(text, ShareBy::Uid), members }
}

#[test]
fn q9_a_map_that_somebody_edited_is_acknowledged_by_nobody_and_replaced() {
    for edit in EDITS {
        let names = ["one", "two"].map(str::to_owned).into();
        let text = Map::next(ShareBy::Uid, 2, None, &names);
        let Found::Map(map) = Found::read(&text, ShareBy::Uid) else { panic!("no map: {text}") };
        let mut logic = Logic::new("one", ShareBy::Uid, Timing::default(), 1);
        let mut now = Time::ZERO;
        assert_eq!(logic.looked(now, now, &look(&text, None)), None);
        assert_eq!(logic.plan().acknowledge, Some(map.id()));

        let edited = edit(&text);
        assert_ne!(edited, text);
        let mut next = None;
        for _ in 0..3 {
            next = next.or(logic.looked(now, now, &look(&edited, Some(map.id()))));
            assert_eq!(logic.plan().acknowledge, Some(map.id()));
            now = logic.look_at(now);
        }
        assert_eq!(next.map(|next| next.generation), Some(3));
    }
}
