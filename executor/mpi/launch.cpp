// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/mpi/launch.h"

#include "core/base/diagnostic.h"

#include <charconv>
#include <cstdint>
#include <optional>

namespace pipewright {

namespace {

int number(const EnvironmentLookup& lookup, const char* name, int least)
{
    const char* text = lookup(name);
    const std::string value = text ? text : "";
    int result = 0;
    const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc() || stop != value.data() + value.size() || result < least)
        throw Error(name,
                    value.empty() ? std::string("is not set, but others of its kind are")
                                  : "\"" + value + "\" is no number that fits",
                    "start the processes with mpirun, srun or torchrun, which set it");
    return result;
}

/// What a launcher says of its processes.
struct Launcher {
    const char *rank, *size;
    const char* here = nullptr;     ///< how many of them are on this machine
    const char* jobs[2] = {};       ///< one of these names the job
    const char* required = nullptr; ///< has to be set too
};
constexpr Launcher launchers[] = {
    {"OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}}, // Open MPI
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},     // MPICH
    {"RANK", "WORLD_SIZE"},                          // torchrun, and this program
    {"SLURM_PROCID", "SLURM_NTASKS", nullptr, {}, "SLURM_STEP_ID"},
};

/// 20000 to 39999, the same for equal names (FNV-1a).
int portOf(const std::string& job)
{
    std::uint64_t hash = 14695981039346656037u;
    for (const char letter : job)
        hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211u;
    return 20000 + static_cast<int>(hash % 20000);
}

std::optional<std::string> jobOf(const EnvironmentLookup& lookup, const Launcher& launcher)
{
    for (const char* name : launcher.jobs)
        if (const char* job = name ? lookup(name) : nullptr)
            return job;
    return std::nullopt;
}

} // namespace

RankEnvironment rankEnvironment(const EnvironmentLookup& lookup)
{
    RankEnvironment result;
    for (const Launcher& launcher : launchers) {
        if (!lookup(launcher.rank) || !lookup(launcher.size) || (launcher.required && !lookup(launcher.required)))
            continue;
        result.launched = true;
        result.rank = number(lookup, launcher.rank, 0);
        result.size = number(lookup, launcher.size, 1);
        if (result.rank >= result.size)
            throw Error(launcher.rank, std::to_string(result.rank) + " of " + std::to_string(result.size),
                        "ranks count from 0");
        const bool allHere = launcher.here && lookup(launcher.here) && number(lookup, launcher.here, 1) == result.size;
        const char* master = lookup("MASTER_ADDR");
        const char* node = lookup("SLURM_STEP_ID") ? lookup("SLURM_LAUNCH_NODE_IPADDR") : nullptr;
        if (master || node)
            result.address = master ? master : node;
        else if (allHere)
            result.address = "127.0.0.1";
        else
            throw Error("MASTER_ADDR", "is not set",
                        "set it to the host of rank 0, for all ranks (mpirun -x MASTER_ADDR=HOST -x MASTER_PORT=PORT)");
        if (lookup("MASTER_PORT"))
            result.port = number(lookup, "MASTER_PORT", 1) + 1;
        else if (lookup("SLURM_STEP_ID"))
            result.port = 20000 + number(lookup, "SLURM_JOB_ID", 0) % 20000;
        else if (const std::optional<std::string> job = jobOf(lookup, launcher))
            result.port = portOf(*job);
        else
            throw Error("MASTER_PORT", "is not set",
                        "set it to a number whose successor is a free port on rank 0's host");
        return result;
    }
    return result;
}

} // namespace pipewright
