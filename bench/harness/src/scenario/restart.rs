//! Compares a restart with a saved cache to one without. A hundredth of the objects changes in between.

use serde_json::json;

use tooling::Error;

use crate::Bench;
use crate::figures::Unit;
use crate::library::{Library, Setup};
use crate::run::{Run, number};

const NAME: &str = "restart";

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Error> {
    let typed = Library::Informer.view("typed").with(&["--subscriptions", "1"]);
    let file = bench.scratch.join("saved.cache");
    let Some(mut run) = bench.start(&typed)? else { return Ok(()) };
    measure(bench, &mut run, &typed.clone().named("nothing saved", &[]))?;
    let cpu = run.meter().cpu()?;
    let saved = run.ask(&format!("save {}", json!({ "file": file })))?;
    let cpu = (run.meter().cpu()? - cpu).as_secs_f64();
    let saving = typed.clone().named("saving", &[]);
    let bytes = number(&saved, "bytes");
    bench.figures.record(NAME, &saving, &[("CPU", Unit::Seconds, cpu), ("file", Unit::Bytes, bytes)]);
    drop(run);

    let changed = bench.options.objects / 100;
    bench.server()?.change(changed, changed)?;
    let setup = typed.named("saved", &["--load"]).with(&[file.display()]);
    let Some(mut run) = bench.start(&setup)? else { return Ok(()) };
    measure(bench, &mut run, &setup)
}

fn measure(bench: &mut Bench<'_>, run: &mut Run, setup: &Setup) -> Result<(), Error> {
    let before = run.meter().cpu()?.as_secs_f64();
    let sync = run.sync(bench.server()?)?;
    // With a saved cache the changed objects arrive after the sync, as updates.
    let sentinel = bench.server()?.sentinel()?;
    run.until(&sentinel)?;
    run.check(bench.server()?)?;
    bench.figures.record(
        NAME,
        setup,
        &[
            ("wall", Unit::Seconds, sync.wall),
            ("CPU", Unit::Seconds, sync.cpu),
            ("CPU before the start", Unit::Seconds, before),
            ("server CPU", Unit::Seconds, sync.server_cpu),
            ("peak memory", Unit::Bytes, sync.peak),
        ],
    );
    Ok(())
}
