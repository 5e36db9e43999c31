//! The net differences between two times.

use std::time::Instant;

use serde_json::{Value, json};

use super::timeline::WORK;
use crate::Noise;
use crate::ask::net::Net;
use crate::ask::period::{Period, covered};
use crate::show::render::header::mark;
use crate::text::clock::date_and_time;
use crate::web::address;
use crate::web::params::Params;
use crate::web::problem::Problem;
use crate::web::question::target;
use crate::web::row::{by, differences, title};
use crate::web::store::Asked;
use crate::web::template::{Frame, render, sentence};

const KNOWN: &[&str] = &["from", "to", "kind", "ns", "name"];
/// Objects of a page.
const OBJECTS: usize = 200;

/// The page of differences.
pub(in crate::web) fn diff(asked: &mut Asked<'_>, params: &Params) -> Result<String, Problem> {
    let zone = asked.now.time_zone().clone();
    let frame = Frame::new("Differences", "diff", params, KNOWN);
    let is_asked = params.get("from").is_some();
    let (mut objects, mut remarks, mut head, mut more) = (Vec::new(), Vec::new(), String::new(), 0);
    if is_asked {
        let to = params.get("to").unwrap_or("now");
        let period = Period::read(params.get("from"), Some(to), &asked.now).map_err(Problem::of("from"))?;
        let (from, to) = (period.from.unwrap_or_default(), period.to.unwrap_or_default());
        let target = target(params, asked.reader)?;
        let until = Instant::now() + WORK * 3;
        let mut net = Net::of(asked.reader, &target.scope, (from, to), Noise::default())?;
        while objects.len() < OBJECTS
            && Instant::now() < until
            && let Some(change) = net.next(asked.reader)?
        {
            let tone = match mark(change.verb).0 {
                "+" => "added",
                "-" => "deleted",
                _ => "updated",
            };
            objects.push(json!({
                "title": title(&change.object), "href": address::object(&change.object), "mark": mark(change.verb).0,
                "tone": tone, "verb": change.verb, "differences": differences(&*change.diff), "by": by(&change),
            }));
        }
        more = net.left();
        asked.is_partial = more > 0 && objects.len() < OBJECTS;
        let (from, to) = (date_and_time(from, &zone), date_and_time(to, &zone));
        head = match objects.len() {
            0 if more == 0 => format!("Nothing{} differs between {from} and {to}.", target.of_it()),
            1 => format!("One object{} differs between {from} and {to}.", target.of_it()),
            count => format!("{count} objects{} differ between {from} and {to}.", target.of_it()),
        };
        remarks.extend(net.noise().map(|noise| sentence(&noise)));
        remarks.extend(net.remarks(asked.reader, &zone)?.iter().map(|remark| sentence(remark)));
        if objects.is_empty() {
            remarks.push(sentence(&covered(asked.reader, &zone)?));
        }
    }
    let form: Value = KNOWN.iter().map(|name| ((*name).to_owned(), json!(params.text(name)))).collect();
    let context = json!({
        "page": frame.json(asked), "form": form, "asked": is_asked, "head": head, "objects": objects, "remarks": remarks,
        "more": more,
    });
    Ok(render("diff.html", context)?)
}
