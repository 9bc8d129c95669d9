// SPDX-License-Identifier: GPL-3.0-or-later
// Sums bytes or FLOPs and time per device, link or kind. O(tasks), or one SQL query over an imported trace's tables.
#include "traces/analysis/achievedrates.h"

#include "core/cluster/devicename.h"
#include "core/design/clusterlinks.h"
#include "core/model/recomputedtensors.h"
#include "core/program/replicasums.h"
#include "traces/store/database.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

namespace pipewright {

namespace {

void add(AchievedRate& rate, double amount, Nanoseconds time)
{
    ++rate.count;
    rate.amount += amount;
    rate.time += time;
    if (time > 0)
        rate.best = std::max(rate.best, amount / (static_cast<double>(time) * 1e-9));
}

struct StageFlops {
    double forward = 0, inputGrad = 0, weightGrad = 0, recompute = 0;
    double of(Op op) const
    {
        switch (op) {
        case Op::F: return forward;
        case Op::I: return inputGrad;
        case Op::W: return weightGrad;
        case Op::B: return inputGrad + weightGrad;
        case Op::R: return recompute;
        case Op::U: break;
        }
        return 0;
    }
};

std::vector<StageFlops> flopsOf(const Design& design)
{
    std::vector<StageFlops> stages;
    if (!design.workload)
        return stages;
    std::size_t layer = 0;
    for (const int layers : design.layersPerStage) {
        StageFlops& stage = stages.emplace_back();
        for (int i = 0; i < layers && layer < design.workload->layers.size(); ++i, ++layer) {
            const Layer& l = design.workload->layers[layer];
            stage.forward += l.forwardFlops;
            stage.inputGrad += l.inputGradFlops;
            stage.weightGrad += l.weightGradFlops;
            const Recompute recompute = design.schedule.recomputeOf(static_cast<int>(stages.size()) - 1);
            (recompute.insideBackward() ? stage.inputGrad : stage.recompute) += recomputedFlops(l, recompute);
        }
    }
    return stages;
}

const char* directionOf(int copyKind)
{
    switch (copyKind) { // CUPTI's numbers
    case 1: return "host to device";
    case 2: return "device to host";
    case 8: return "device to device";
    case 9: return "host to host";
    case 10: return "peer to peer";
    default: return "copies";
    }
}

} // namespace

double AchievedRate::share() const
{
    const double most = ceiling > 0 ? ceiling : best;
    return most > 0 ? rate() / most : 0;
}

std::string beyondCeilings(const std::vector<AchievedRate>& rates)
{
    if (std::none_of(rates.begin(), rates.end(), [](const AchievedRate& rate) { return rate.share() > 1; }))
        return {};
    return "A share above 100 % says that the run was on faster devices or links than the design's; a cluster that "
           "\"pipewright devices --measure\" writes has those of this machine.";
}

std::string rateText(double perSecond, bool flops)
{
    const char* const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
    std::size_t prefix = 0;
    for (; perSecond >= 1000 && prefix + 1 < std::size(prefixes); ++prefix)
        perSecond /= 1000;
    return fmt::format("{:.3g} {}{}", perSecond, prefixes[prefix], flops ? "FLOP/s" : "B/s");
}

Design workedDesign(const TraceReader& trace, const Design& given)
{
    // Other tools, and the user's module in PyTorch, did not run the small model that stands in for an unnamed one.
    const bool ours = trace.holdsDesign() && trace.header().backend != "torch";
    Design design = trace.holdsDesign() ? trace.design() : given;
    if (!ours && design.workload && design.workload->source.starts_with("built in"))
        design.workload.reset();
    return design;
}

std::vector<AchievedRate> achievedRates(const Design& design, const Program& program, const Timeline& measured)
{
    const std::vector<StageFlops> flops = flopsOf(design);
    std::vector<AchievedRate> devices(program.devices.size());
    std::map<std::pair<int, int>, AchievedRate> links;
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        if (measured.start[t] == notRun)
            continue;
        const Nanoseconds time = measured.end[t] - measured.start[t];
        if (task.kind == TaskKind::Compute && task.stage < std::ssize(flops)) {
            const auto& scales = design.costs.microbatches;
            const double scale = task.microbatch() < std::ssize(scales) ? scales[task.microbatch()].time : 1;
            add(devices[task.device], scale * flops[task.stage].of(task.op), time);
        } else if (task.kind == TaskKind::Transfer) {
            if (const auto bytes = static_cast<double>(movedBytes(program, t)); bytes > 0)
                add(links[{task.device, task.destination()}], bytes, time);
        }
    }
    std::vector<AchievedRate> rates;
    for (std::size_t d = 0; d < devices.size(); ++d) {
        AchievedRate& rate = devices[d];
        if (rate.amount <= 0)
            continue;
        rate.what = fmt::format("matrix units of device {}", d);
        rate.flops = true;
        rate.device = static_cast<int>(d);
        rate.ceiling = d < design.cluster.devices.size() ? design.cluster.devices[d].peakFlops : 0;
        rates.push_back(rate);
    }
    Costs ofCluster;
    takeClusterLinks(design.cluster, design.workload ? design.workload->shape.parallel : Parallelism{}, ofCluster);
    for (auto& [pair, rate] : links) {
        rate.what = fmt::format("link {} to {}", pair.first, pair.second);
        std::tie(rate.device, rate.peer) = pair;
        // The cluster's bandwidth where there is one, else that of the costs.
        rate.ceiling = ofCluster.linkBetween(pair.first, pair.second).bytesPerSecond;
        if (rate.ceiling <= 0)
            rate.ceiling = design.costs.linkBetween(pair.first, pair.second).bytesPerSecond;
        rates.push_back(rate);
    }
    return rates;
}

std::string nameOf(const AchievedRate& rate, const Cluster& cluster)
{
    if (rate.device < 0) // from another tool's trace
        return rate.what;
    const std::string device = deviceName(cluster, rate.device);
    return rate.peer < 0 ? "matrix units of " + device : "link " + device + " to " + deviceName(cluster, rate.peer);
}

std::vector<AchievedRate> achievedRates(const std::string& trace, Nanoseconds from, Nanoseconds to)
try {
    SQLite::Database database = openTraceDatabase(trace);
    std::vector<AchievedRate> rates;
    const auto ask = [&](const std::string& sql, auto nameOf) {
        SQLite::Statement query(database, sql);
        query.bind(1, from);
        query.bind(2, to);
        while (query.executeStep()) {
            AchievedRate& rate = rates.emplace_back();
            rate.count = query.getColumn(0).getInt64();
            rate.amount = query.getColumn(1).getDouble();
            rate.time = query.getColumn(2).getInt64();
            rate.best = query.getColumn(3).getDouble();
            rate.what = nameOf(query);
        }
    };
    const std::string sums = "SELECT count(*), total(bytes), sum(T.end - T.start), "
                             "max(CASE WHEN T.end > T.start THEN bytes * 1e9 / (T.end - T.start) ELSE 0 END), ";
    const std::string inside = " WHERE bytes > 0 AND T.end > ?1 AND T.start < ?2 ";
    if (database.tableExists("CUPTI_ACTIVITY_KIND_MEMCPY"))
        ask(sums + "rank, T.deviceId, copyKind FROM CUPTI_ACTIVITY_KIND_MEMCPY AS T JOIN LANES USING (laneId)" + inside
                + "GROUP BY rank, T.deviceId, copyKind ORDER BY rank, T.deviceId, copyKind",
            [](SQLite::Statement& query) {
                return fmt::format("{}, rank {}, GPU {}", directionOf(query.getColumn(6).getInt()),
                                   query.getColumn(4).getInt(), query.getColumn(5).getInt());
            });
    if (database.tableExists("COMMUNICATIONS")) // also has calls of the host, which are no transfers
        ask(sums + "rank, value FROM COMMUNICATIONS AS T JOIN LANES USING (laneId) JOIN StringIds ON id = collectiveId"
                + inside + "AND LANES.kind = 'stream' GROUP BY rank, collectiveId ORDER BY rank, value",
            [](SQLite::Statement& query) {
                return fmt::format("{}, rank {}", query.getColumn(5).getString(), query.getColumn(4).getInt());
            });
    return rates;
} catch (const SQLite::Exception& error) {
    rethrowTraceError(trace, error);
}

} // namespace pipewright
