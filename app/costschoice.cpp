// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/costschoice.h"

#include "app/terminal.h"

#include "core/design/redesign.h"
#include "core/design/unevenness.h"
#include "core/files/designfile.h"
#include "core/predict/predict.h"
#include "traces/analysis/costsfrom.h"

#include <fmt/format.h>

#include <utility>

namespace pipewright::app {

void CostsChoice::addTo(CLI::App& command)
{
    command
        .add_option(
            "--costs-from", from,
            "a design or a trace of the same model: its model, machine and costs, carried over to this schedule")
        ->type_name("DESIGN|TRACE");
    command
        .add_option("--costs-of", recorded,
                    "the design that the trace recorded, where the trace is imported and does not hold it")
        ->type_name("DESIGN");
    command.add_flag("--busy-machine", busyMachine,
                     "take a trace too whose devices waited for processor cores for more than a third of their time");
    command
        .add_option(
            "--uneven", uneven,
            "stage times that are not in proportion to their layers' work are put down to the devices' pace or to "
            "the layers themselves (what the recording tells, else devices)")
        ->type_name("devices|layers");
}

Design CostsChoice::read() const
{
    if (from.empty())
        throw !recorded.empty()
            ? Error("--costs-of", "says of which design a trace is, and no trace is given", "add --costs-from TRACE")
            : Error(busyMachine ? "--busy-machine" : "--uneven", "is about costs that come from elsewhere, and none do",
                    "add --costs-from");
    const BusyMachine busy = busyMachine ? BusyMachine::Take : BusyMachine::Refuse;
    if (recorded.empty() && isTraceWithoutDesign(from))
        throw Error(from, "the trace was imported and does not say which design it recorded",
                    "name the design of the schedule that ran: --costs-of DESIGN");
    std::optional<Design> ran;
    if (!recorded.empty())
        ran = readDesign(recorded);
    CarriedCosts costs = readCostsFrom(from, ran ? &*ran : nullptr, busy);
    for (const std::string& note : costs.notes)
        printDiagnostics({{Severity::Note, from, note, {}}});
    return std::move(costs.design);
}

std::optional<Unevenness> CostsChoice::unevenness() const
{
    if (uneven.empty())
        return std::nullopt;
    for (const Unevenness each : {Unevenness::OfDevices, Unevenness::OfLayers})
        if (uneven == nameOf(each))
            return each;
    throw Error("--uneven", "\"" + uneven + "\" is nothing that stages can be uneven by", "devices or layers");
}

std::optional<UnevenEnds> unevenEnds(const CostsChoice& choice, const Design& measured,
                                     const std::function<Design(Unevenness)>& make)
{
    const UnevennessFound found = unevennessOf(measured);
    if (found.known || choice.unevenness())
        return std::nullopt;
    const auto makespan = [&](Unevenness uneven) { return predict(make(uneven)).metrics.makespan; };
    const UnevenEnds ends{found.assumed, found.why, makespan(Unevenness::OfDevices), makespan(Unevenness::OfLayers)};
    return ends.ofDevices == ends.ofLayers ? std::nullopt : std::optional(ends);
}

std::optional<UnevenEnds> takeCosts(const CostsChoice& choice, Design& design)
{
    const Design measured = choice.read();
    const Design base = std::exchange(design, withCostsFrom(design, measured, choice.unevenness()));
    return unevenEnds(choice, measured, [&](Unevenness uneven) { return withCostsFrom(base, measured, uneven); });
}

void printNote(const UnevenEnds& ends)
{
    printDiagnostics(
        {{Severity::Note, "--costs-from",
          fmt::format("the times of stages are not in proportion to their layers' work: {} if the devices "
                      "are uneven, {} if the layers are; assumed: the {} ({})",
                      formatDuration(ends.ofDevices), formatDuration(ends.ofLayers), nameOf(ends.assumed), ends.why),
          "choose with --uneven devices or --uneven layers"}});
}

Json toJson(const UnevenEnds& ends)
{
    return {{"assumed", nameOf(ends.assumed)},
            {"why", ends.why},
            {"makespan_ns", {{"devices", ends.ofDevices}, {"layers", ends.ofLayers}}}};
}

} // namespace pipewright::app
