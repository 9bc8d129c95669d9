// SPDX-License-Identifier: GPL-3.0-or-later
// Cuts the recording into stretches, each of one layer and pass, and sums their times: the host's time or, if a device
// was recorded, the time of the kernels that were launched in the stretch.
#include "traces/analysis/layerranges.h"

#include "core/base/diagnostic.h"
#include "core/base/formattedtext.h"
#include "core/base/median.h"
#include "core/base/units.h"
#include "core/model/layertable.h"
#include "core/model/transformer.h"
#include "traces/analysis/layermemory.h"
#include "traces/analysis/layerslices.h"
#include "traces/store/launchcalls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

namespace pipewright {

namespace {

/// Times of one layer in one forward pass and its backward.
struct Round {
    Nanoseconds forward = 0, backward = 0, inputGrad = 0, weightGrad = 0;
    double weightPart = 0; ///< estimated part of `backward` for weight gradients
    bool accumulates = false;
};

class LayerRanges {
public:
    LayerRanges(const StoredActivities& trace, std::string where, const LayerRangeOptions& options)
        : m_trace(trace), m_where(std::move(where)), m_options(options), m_slices(layerSlices(trace, options.layers)),
          m_runs(layerRuns(m_slices, !options.layers.empty()))
    {
    }

    LayerProfile run()
    {
        if (m_runs.runs.empty())
            throw noLayers();
        m_rounds.assign(m_runs.runs.size(), std::vector<Round>(m_runs.layers.size()));
        addForwards();
        addNodes();
        addBackwardRanges();
        std::sort(m_stretches.begin(), m_stretches.end(),
                  [](const LayerStretch& a, const LayerStretch& b) { return a.start < b.start; });
        sumTimes();
        dropUnfinished();
        fillTable();
        fillBytes();
        addNotes();
        m_profile.shape = tableShape(m_options.name, std::move(m_table),
                                     m_options.model != nullptr ? m_options.model->dataType : DataType::Fp32,
                                     m_options.model != nullptr ? m_options.model->microbatchSize : 1);
        if (Diagnostics wrong = checkTable(m_profile.shape); !wrong.empty())
            throw Error(std::move(wrong));
        return std::move(m_profile);
    }

private:
    Error noLayers() const
    {
        std::set<std::string> names;
        for (const LayerSlices::Range& range : m_slices.ranges)
            if (names.size() < 8)
                names.insert(range.is.layer);
        if (!m_options.layers.empty() && names.empty())
            return Error(m_where, "no range is called " + inQuotes(m_options.layers),
                         "\"pipewright query\" and the trace's lanes show what they are called");
        if (names.empty())
            return Error(m_where, "no range of the program is in it",
                         "put every layer into a range, as with torch.profiler.record_function(\"block 3\") or "
                         "torch.cuda.nvtx.range(\"block 3\"), and record one training step or more");
        return Error(m_where,
                     fmt::format("no forward pass has ranges of several layers; there are {}",
                                 joined(std::vector(names.begin(), names.end()), ", ")),
                     "name those of layers with --layers \"block [0-9]+|head\", and record a backward too");
    }

    /// The forward stretch that contains a moment; null outside of all layers.
    const LayerStretch* forwardAt(Nanoseconds time) const
    {
        const auto after = std::upper_bound(m_forwards.begin(), m_forwards.end(), time,
                                            [](Nanoseconds t, const LayerStretch& s) { return t < s.start; });
        return after != m_forwards.begin() && time < (after - 1)->end ? &*(after - 1) : nullptr;
    }

    void addForwards()
    {
        for (std::size_t run = 0; run < m_runs.runs.size(); ++run)
            for (std::size_t layer = 0; layer < m_runs.layers.size(); ++layer) {
                const LayerSlices::Range& range = m_slices.ranges[m_runs.runs[run].ranges[layer]];
                m_forwards.push_back({range.start, range.end, range.lane, run, layer, LayerPass::Forward, 0});
            }
        std::sort(m_forwards.begin(), m_forwards.end(),
                  [](const LayerStretch& a, const LayerStretch& b) { return a.start < b.start; });
        m_stretches = m_forwards;
    }

    /// Adds a stretch per operator of the autograd engine. It begins at the end of the operator before, since the
    /// engine also works between operators.
    void addNodes()
    {
        struct Last {
            const LayerStretch* of = nullptr;
            Nanoseconds end = 0;
        };
        std::unordered_map<std::uint32_t, Last> lastOf;
        for (const LayerSlices::Node& node : m_slices.nodes) {
            Last& last = lastOf[node.lane];
            // An operator without a forward operator belongs to the layer of the one before it, whose gradient it
            // passes on.
            const LayerStretch* of = node.forward != LayerSlices::Node::unknown ? forwardAt(node.forward) : last.of;
            m_engine += node.end - node.start;
            if (of != nullptr) {
                const bool follows = last.of != nullptr && last.of->run == of->run;
                m_stretches.push_back({follows ? last.end : node.start, node.end, node.lane, of->run, of->layer,
                                       LayerPass::Backward, node.weightShare});
                m_rounds[of->run][of->layer].accumulates |= node.accumulates;
                m_known += node.end - node.start;
            }
            last = {of, node.end};
        }
        m_byNodes = m_known > 0;
    }

    /// Adds backwards that have ranges of their own. Equal names in a run are matched in reverse order.
    void addBackwardRanges()
    {
        if (m_byNodes)
            return;
        std::map<std::string, std::vector<std::size_t>> layersOf; // by the name in the recording
        const LayerRun& first = m_runs.runs.front();
        for (std::size_t layer = 0; layer < first.ranges.size(); ++layer)
            layersOf[m_slices.ranges[first.ranges[layer]].is.layer].push_back(layer);
        std::vector<Nanoseconds> ends; // of the runs, in order
        for (const LayerRun& run : m_runs.runs)
            ends.push_back(m_slices.ranges[run.ranges.back()].end);
        std::map<std::tuple<std::size_t, std::string, LayerPass>, std::size_t> seen;
        for (const LayerSlices::Range& range : m_slices.ranges) {
            const auto layers = layersOf.find(range.is.layer);
            const auto run = std::upper_bound(ends.begin(), ends.end(), range.start);
            if (range.is.pass == LayerPass::Forward || layers == layersOf.end() || run == ends.begin())
                continue;
            const auto number = static_cast<std::size_t>(run - ends.begin()) - 1;
            const std::size_t before = seen[{number, range.is.layer, range.is.pass}]++;
            if (before < layers->second.size())
                m_stretches.push_back({range.start, range.end, range.lane, number,
                                       layers->second[layers->second.size() - 1 - before], range.is.pass, 0});
        }
    }

    void give(const LayerStretch& stretch, Nanoseconds time)
    {
        Round& round = m_rounds[stretch.run][stretch.layer];
        switch (stretch.pass) {
        case LayerPass::Forward: round.forward += time; break;
        case LayerPass::Backward:
            round.backward += time;
            round.weightPart += static_cast<double>(time) * stretch.weightShare;
            break;
        case LayerPass::InputGrad: round.inputGrad += time; break;
        case LayerPass::WeightGrad: round.weightGrad += time; break;
        }
    }

    void sumTimes()
    {
        const LaunchCalls launches(m_trace);
        std::vector<std::vector<std::pair<Nanoseconds, Nanoseconds>>> ran(m_stretches.size());
        std::int64_t kernels = 0, launched = 0;
        std::set<int> devices;
        for (const Track& track : m_trace.tracks) {
            const TraceLane& lane = m_trace.lanes[track.lane];
            if (lane.kind != TraceLane::Kind::Stream || lane.rank != m_slices.rank)
                continue;
            for (std::size_t i = 0; i < track.size(); ++i) {
                if (track.kind[i] != ActivityKind::Kernel)
                    continue;
                ++kernels;
                devices.insert(lane.device);
                const Nanoseconds call = launches.of(track, i);
                launched += call != LaunchCalls::unknown;
                const auto after = std::upper_bound(m_stretches.begin(), m_stretches.end(), call,
                                                    [](Nanoseconds t, const LayerStretch& s) { return t < s.start; });
                if (call != LaunchCalls::unknown && after != m_stretches.begin() && call < (after - 1)->end)
                    ran[static_cast<std::size_t>(after - m_stretches.begin()) - 1].emplace_back(track.start[i],
                                                                                                track.end[i]);
            }
        }
        if (kernels > 0 && launched == 0)
            throw Error(m_where, "kernels ran, and the calls that launched them were not recorded",
                        "record the host too: ProfilerActivity.CPU beside CUDA, or nsys profile --trace=cuda,nvtx");
        m_device = devices.empty() ? -1 : *devices.begin();
        m_profile.device = devices.empty() ? "CPU" : fmt::format("GPU {}", m_device);
        if (devices.size() > 1)
            m_profile.notes.push_back(
                fmt::format("kernels of {} devices count together: layers are measured on one", devices.size()));
        for (std::size_t i = 0; i < m_stretches.size(); ++i) {
            if (kernels == 0) {
                give(m_stretches[i], m_stretches[i].end - m_stretches[i].start);
                continue;
            }
            std::sort(ran[i].begin(), ran[i].end());
            Nanoseconds covered = 0, until = 0;
            for (const auto& [start, end] : ran[i]) {
                covered += std::max<Nanoseconds>(0, end - std::max(start, until));
                until = std::max(until, end);
            }
            give(m_stretches[i], covered);
        }
    }

    /// Drops passes that lack their backward, as the last one of a recording may.
    void dropUnfinished()
    {
        m_rounds.erase(std::remove_if(m_rounds.begin(), m_rounds.end(),
                                      [&](const std::vector<Round>& rounds) {
                                          const bool whole =
                                              std::any_of(rounds.begin(), rounds.end(), [](const Round& round) {
                                                  return round.backward + round.inputGrad + round.weightGrad > 0;
                                              });
                                          m_unfinished += !whole;
                                          return !whole;
                                      }),
                       m_rounds.end());
        if (m_rounds.empty())
            throw Error(m_where, "no backward of a layer is known",
                        "record with PyTorch's profiler, whose arrows lead there, under emit_nvtx(), or give backwards "
                        "ranges of their own: \"block 3 backward\"");
    }

    template<class Value>
    auto valuesOf(std::size_t layer, Value value) const
    {
        std::vector<decltype(value(Round()))> values;
        for (const std::vector<Round>& rounds : m_rounds)
            values.push_back(value(rounds[layer]));
        return values;
    }

    void fillTable()
    {
        bool halvesMeasured = false;
        for (std::size_t i = 0; i < m_runs.layers.size(); ++i) {
            KnownLayer& layer = m_table.emplace_back();
            layer.name = m_runs.layers[i].empty() ? fmt::format("layer {}", i) : m_runs.layers[i];
            layer.forward = medianOf(valuesOf(i, [](const Round& r) { return r.forward; }));
            const Nanoseconds whole = medianOf(valuesOf(i, [](const Round& r) { return r.backward; }));
            const Nanoseconds weight = medianOf(valuesOf(i, [](const Round& r) { return r.weightGrad; }));
            if (weight > 0) { // measured by own ranges; a range called backward is then the input gradient
                halvesMeasured = true;
                layer.inputGrad = medianOf(valuesOf(i, [](const Round& r) { return r.inputGrad + r.backward; }));
                layer.weightGrad = weight;
                layer.backward = layer.inputGrad + layer.weightGrad;
            } else {
                layer.backward = whole;
                layer.weightGrad = estimatedWeightGrad(i, whole);
                layer.inputGrad = whole - layer.weightGrad;
            }
            std::vector<Nanoseconds> sums =
                valuesOf(i, [](const Round& r) { return r.forward + r.backward + r.inputGrad + r.weightGrad; });
            ProfiledLayer& measured = m_profile.layers.emplace_back();
            measured.rounds = static_cast<int>(sums.size());
            std::sort(sums.begin(), sums.end());
            const auto quarter = [&](std::size_t q) { return static_cast<double>(sums[(sums.size() - 1) * q / 4]); };
            measured.spread = quarter(2) > 0 ? (quarter(3) - quarter(1)) / 2 / quarter(2) : 0;
        }
        if (!halvesMeasured)
            m_profile.estimated = {"input_grad", "weight_grad"};
    }

    /// Splits as PyTorch's pipelining does: the first layer's input needs no gradient.
    Nanoseconds estimatedWeightGrad(std::size_t layer, Nanoseconds backward) const
    {
        if (layer == 0)
            return backward;
        if (!m_byNodes)
            return backward / 2;
        const std::vector<bool> accumulates = valuesOf(layer, [](const Round& r) { return r.accumulates; });
        if (std::find(accumulates.begin(), accumulates.end(), true) == accumulates.end())
            return 0;
        const double share = medianOf(valuesOf(layer, [](const Round& r) {
            return r.backward > 0 ? r.weightPart / static_cast<double>(r.backward) : 0.0;
        }));
        return std::llround(static_cast<double>(backward) * share);
    }

    void fillBytes()
    {
        if (const TraceCounter* allocated = allocatedBytes(m_trace, m_slices.rank, m_device)) {
            fillFromMemory(*allocated, m_slices.operators, m_stretches, m_runs.runs.size(), m_table, m_profile);
            return;
        }
        if (m_options.model == nullptr) {
            m_profile.unknown = {"saved", "saved_for_weight_grad", "parameters", "output"};
            m_profile.notes.push_back("the recording says nothing of memory, and bytes are 0: record with "
                                      "profile_memory=True, or name a model of as many layers with --model");
            return;
        }
        const std::vector<Layer> layers = layersOf(*m_options.model);
        if (layers.size() != m_table.size())
            throw Error("--model", fmt::format("has {} layers, and the recording {}", layers.size(), m_table.size()),
                        "choose the ranges with --layers, or give a model of as many");
        for (std::size_t i = 0; i < layers.size(); ++i) {
            Bytes saved = 0, late = 0;
            for (const SavedTensor& tensor : layers[i].saved)
                switch (tensor.lifetime) {
                case Lifetime::UntilInputGrad: saved += tensor.bytes(); break;
                case Lifetime::UntilWeightGrad:
                    saved += tensor.bytes();
                    late += tensor.bytes();
                    break;
                case Lifetime::FromInputGrad: break;
                }
            m_table[i].saved = saved;
            m_table[i].savedForWeightGrad = late;
            m_table[i].parameters = layers[i].parameters * bytesOf(m_options.model->dataType);
            m_table[i].output = layers[i].outputBytes;
        }
        for (const char* column : {"saved", "saved_for_weight_grad", "parameters", "output"})
            m_profile.estimated.emplace_back(column);
        m_profile.notes.push_back("bytes are those of the model " + m_options.model->name
                                  + ", as the recording says nothing of memory");
    }

    void addNotes()
    {
        m_profile.tool = m_trace.tool;
        std::vector<std::string>& notes = m_profile.notes;
        if (!m_profile.estimated.empty() && m_profile.estimated.front() == "input_grad")
            notes.push_back(m_byNodes
                                ? "autograd computes both gradients of an operator at once: weight gradients are taken "
                                  "for half of the products' time"
                                : "backwards have one range each: half of it is taken for weight gradients");
        if (m_device < 0 && m_byNodes)
            notes.push_back("times of a CPU hold what the profiler itself does for every operator");
        if (m_runs.others + m_unfinished > 0)
            notes.push_back(fmt::format("{} of {} forward passes have other layers or no backward, and were left out",
                                        m_runs.others + m_unfinished,
                                        m_runs.others + static_cast<int>(m_runs.runs.size())));
        constexpr double matters = 0.05;
        if (m_byNodes && static_cast<double>(m_engine - m_known) > matters * static_cast<double>(m_engine))
            notes.push_back(fmt::format("{:.0f} % of the backward belongs to no range of a layer",
                                        100 * static_cast<double>(m_engine - m_known) / static_cast<double>(m_engine)));
        if (m_trace.ranks > 1)
            notes.push_back(fmt::format("of {} ranks these are rank {}'s", m_trace.ranks, m_slices.rank));
    }

    const StoredActivities& m_trace;
    const std::string m_where;
    const LayerRangeOptions& m_options;
    LayerSlices m_slices;
    LayerRuns m_runs;
    std::vector<LayerStretch> m_forwards, m_stretches; ///< by start
    std::vector<std::vector<Round>> m_rounds;          ///< by run, then layer
    std::vector<KnownLayer> m_table;
    LayerProfile m_profile;
    Nanoseconds m_engine = 0, m_known = 0; ///< time of the engine's operators: all, and those of known layers
    bool m_byNodes = false;
    int m_device = -1, m_unfinished = 0;
};

} // namespace

LayerProfile layersOfRanges(const StoredActivities& trace, const std::string& where, const LayerRangeOptions& options)
{
    return LayerRanges(trace, where, options).run();
}

} // namespace pipewright
