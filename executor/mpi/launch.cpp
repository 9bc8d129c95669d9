// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/mpi/launch.h"

#include "core/base/diagnostic.h"

#include <charconv>
#include <unistd.h>

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

} // namespace

RankEnvironment rankEnvironment(const EnvironmentLookup& lookup)
{
    RankEnvironment result;
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
        if (lookup(name)) {
            result.launcher = RankEnvironment::Launcher::Mpi;
            result.rank = number(lookup, name, 0);
            return result;
        }
    const bool torch = lookup("RANK") && lookup("WORLD_SIZE");
    const bool slurm = lookup("SLURM_PROCID") && lookup("SLURM_NTASKS") && lookup("SLURM_STEP_ID");
    if (!torch && !slurm)
        return result;
    result.launcher = RankEnvironment::Launcher::Sockets;
    result.rank = number(lookup, torch ? "RANK" : "SLURM_PROCID", 0);
    result.size = number(lookup, torch ? "WORLD_SIZE" : "SLURM_NTASKS", 1);
    if (result.rank >= result.size)
        throw Error(torch ? "RANK" : "SLURM_PROCID", std::to_string(result.rank) + " of " + std::to_string(result.size),
                    "ranks count from 0");
    if (const char* master = lookup("MASTER_ADDR"))
        result.address = master;
    else if (const char* host = slurm ? lookup("SLURM_LAUNCH_NODE_IPADDR") : nullptr)
        result.address = host;
    else
        throw Error("MASTER_ADDR", "is not set", "set it to the host of rank 0");
    if (lookup("MASTER_PORT"))
        result.port = number(lookup, "MASTER_PORT", 1) + 1;
    else if (slurm)
        result.port = 20000 + number(lookup, "SLURM_JOB_ID", 0) % 20000;
    else
        throw Error("MASTER_PORT", "is not set", "set it to a number whose successor is a free port on rank 0's host");
    return result;
}

std::vector<std::string> launchCommand(const std::string& program, int ranks, const std::vector<std::string>& command,
                                       bool asRoot)
{
    // The surviving ranks must be able to report a lost one. There may also be more ranks than cores, which then must
    // not spin.
    std::vector<std::string> words{program,
                                   "-n",
                                   std::to_string(ranks),
                                   "--oversubscribe",
                                   "--enable-recovery",
                                   "--quiet",
                                   "--bind-to",
                                   "none",
                                   "--mca",
                                   "mpi_yield_when_idle",
                                   "1",
                                   "--mca",
                                   "btl_vader_single_copy_mechanism",
                                   "none"};
    if (asRoot)
        words.emplace_back("--allow-run-as-root");
    // A word ":" would end the command for the launcher; only a file name can be ":".
    for (const std::string& word : command)
        words.push_back(word == ":" ? "./:" : word);
    return words;
}

std::string findLauncher(const std::string& path)
{
    for (const char* name : {"mpirun", "mpiexec"})
        for (std::size_t begin = 0; begin <= path.size();) {
            const std::size_t end = std::min(path.find(':', begin), path.size());
            const std::string candidate = path.substr(begin, end - begin) + "/" + name;
            if (end > begin && access(candidate.c_str(), X_OK) == 0)
                return candidate;
            begin = end + 1;
        }
    return {};
}

} // namespace pipewright
