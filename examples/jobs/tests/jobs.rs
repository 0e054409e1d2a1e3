//! Every job runs on the simulated cluster. A program's own tests can look like this: no server has to be
//! installed, and nodes can be made to fail.

use messina_jobs::{JOBS, Place, run};

#[tokio::test]
async fn every_job_runs() {
    let place = Place::simulated().await.expect("loopback addresses");
    for job in JOBS {
        let ran = run(job.name, &place).await;
        assert!(ran.is_ok(), "{}: {ran:?}", job.name);
    }
}

#[tokio::test]
async fn a_name_that_is_none_is_an_error() {
    let place = Place::simulated().await.expect("loopback addresses");
    let error = run("sailing", &place).await.expect_err("no such job");
    assert!(error.to_string().contains("sailing"), "{error}");
}
