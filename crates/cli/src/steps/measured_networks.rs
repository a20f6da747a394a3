//! Networks that `quell bench loggp` measured here, for each MPI and hosts: in the user's cache, and in the folders of traced runs.

use std::path::{Path, PathBuf};

use quell_node::mpi::Wrapper;
use quell_recording::atomic_write;
use quell_request::track::NETWORKS;

use super::mpi_cache::mpi_cache;
use crate::plan::place;

/// Keeps the file of a network for later runs with this MPI on these hosts.
pub fn keep(wrapper: &Wrapper, hosts: &[String], text: &str) -> anyhow::Result<()> {
    let path = place_of(wrapper, hosts)?;
    fs_err::create_dir_all(path.parent().unwrap_or(&path))?;
    Ok(atomic_write(&path, text.as_bytes())?)
}

/// The file of the network within a host.
pub fn of_host(wrapper: &Wrapper, host: &str) -> Option<PathBuf> {
    place_of(wrapper, &[host.to_owned()]).ok().filter(|path| path.is_file())
}

/// The file of the network between any two of these hosts.
fn between(wrapper: &Wrapper, hosts: &[String]) -> Option<PathBuf> {
    let pairs = hosts.iter().flat_map(|one| hosts.iter().map(move |other| [one.clone(), other.clone()]));
    let mut paths =
        pairs.filter(|[one, other]| one != other).filter_map(|pair| place_of(wrapper, &pair).ok());
    paths.find(|path| path.is_file())
}

/// Copies the networks of a run's hosts into its folder, as far as they were measured; returns whether any was.
pub fn copy(wrapper: &Wrapper, hosts: &[String], run: &Path) -> std::io::Result<bool> {
    let intra = hosts.iter().find_map(|host| of_host(wrapper, host));
    let mut copied = false;
    for (found, name) in [intra, between(wrapper, hosts)].into_iter().zip(NETWORKS) {
        if let Some(found) = found {
            fs_err::copy(found, run.join(name))?;
            copied = true;
        }
    }
    Ok(copied)
}

/// The file of the network among these hosts.
fn place_of(wrapper: &Wrapper, hosts: &[String]) -> anyhow::Result<PathBuf> {
    let mut names = vec![format!("{}-{}", wrapper.family, wrapper.version)];
    names.extend(hosts.iter().cloned());
    let name = place::file_name(&names.join("+"));
    Ok(mpi_cache()?.join("networks").join(format!("{name}.toml")))
}
