//! Runs the jobs that are named, or all of them, on the cluster in `MESSINA_CONTACT`; without one, on a
//! simulated cluster that starts and ends with this program.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "printing is the point")]

use messina_jobs::{Failure, JOBS, Place, run};

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let Some(unknown) = wanted
        .iter()
        .find(|name| JOBS.iter().all(|job| job.name != **name))
    {
        for job in JOBS {
            println!("{:12} {}", job.name, job.what);
        }
        return Err(format!("there is no job `{unknown}`").into());
    }
    let place = match std::env::var("MESSINA_CONTACT") {
        Ok(contact) => Place::at(contact),
        Err(_) => Place::simulated().await?,
    };
    for job in JOBS {
        if wanted.is_empty() || wanted.iter().any(|name| name == job.name) {
            println!("== {}: {}", job.name, job.what);
            run(job.name, &place).await?;
        }
    }
    Ok(())
}
