// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/export/activitypicture.h"
#include "traces/store/kernelgroups.h"

#include "core/exchange/picturetheme.h"
#include "core/exchange/svgwriter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace pipewright {

namespace {

constexpr double width = 1400, left = 190, right = 20, top = 40, rowHeight = 22, legendStep = 150;
constexpr std::size_t mostRows = 48;
constexpr const PictureTheme& theme = lightTheme;

std::string_view colourOf(DeviceTimeCause cause)
{
    switch (cause) {
    case DeviceTimeCause::Computing: return theme.colourOf(Op::F);
    case DeviceTimeCause::Communication: return theme.colourOf(Op::U);
    case DeviceTimeCause::Copies: return theme.colourOf(Op::W);
    case DeviceTimeCause::HostGap: return theme.bad;
    case DeviceTimeCause::BackToBack: return theme.hairline;
    case DeviceTimeCause::Waiting: return theme.colourOf(Op::I);
    case DeviceTimeCause::NotKnown: return theme.dim;
    }
    return theme.dim;
}

/// A slice's colour by its cause; host ranges and calls have their own.
std::string_view colourOf(const StoredActivities& trace, const Track& track, std::uint32_t slice)
{
    const ActivityKind kind = track.kind[slice];
    if (kind == ActivityKind::Kernel)
        return colourOf(trace.lanes[track.lane].communication
                                || KernelGroups::standard().isCommunication(trace.strings[track.name[slice]])
                            ? DeviceTimeCause::Communication
                            : DeviceTimeCause::Computing);
    if (runsOnDevice(kind))
        return colourOf(DeviceTimeCause::Copies);
    return theme.colourOf(Op::R);
}

void legend(SvgWriter& svg, double y, std::initializer_list<DeviceTimeCause> causes)
{
    double x = left;
    for (const DeviceTimeCause cause : causes) {
        svg.fill({x, y - 9, 10, 10}, colourOf(cause), 2);
        svg.text(x + 15, y, nameOf(cause), {11, theme.dim});
        x += legendStep;
    }
}

std::string laneName(const StoredActivities& trace, const TraceLane& lane)
{
    std::string name = trace.ranks > 1 ? fmt::format("rank {}, ", lane.rank) : std::string();
    if (lane.device >= 0)
        name += fmt::format("GPU {}, ", lane.device);
    name += lane.name;
    constexpr std::size_t longest = 28;
    return name.size() > longest ? name.substr(0, longest) : name;
}

} // namespace

std::string activitySvg(const StoredActivities& trace, Nanoseconds from, Nanoseconds to)
{
    to = std::max(to, from + 1);
    std::vector<const Track*> rows;
    for (const auto kind : {TraceLane::Kind::Stream, TraceLane::Kind::Thread}) {
        for (const Track& track : trace.tracks)
            if (track.row == 0 && trace.lanes[track.lane].kind == kind)
                rows.push_back(&track);
        if (!rows.empty())
            break;
    }
    std::stable_sort(rows.begin(), rows.end(), [&](const Track* a, const Track* b) {
        const TraceLane &l = trace.lanes[a->lane], &r = trace.lanes[b->lane];
        return std::tuple(l.rank, l.device, l.sortIndex) < std::tuple(r.rank, r.device, r.sortIndex);
    });
    const std::size_t shown = std::min(rows.size(), mostRows);
    const double plot = width - left - right, bottom = top + rowHeight * static_cast<double>(shown);
    SvgWriter svg(width, bottom + 30, "Streams of the trace");
    svg.fill({0, 0, width, bottom + 30}, theme.panel);
    svg.text(left, 16, formatDuration(from), {11, theme.dim, true});
    svg.text(width - right, 16, formatDuration(to), {11, theme.dim, true, false, Anchor::End});
    legend(svg, 32, {DeviceTimeCause::Computing, DeviceTimeCause::Communication, DeviceTimeCause::Copies});
    for (std::size_t r = 0; r < shown; ++r) {
        const double y = top + rowHeight * static_cast<double>(r);
        svg.text(12, y + 14, laneName(trace, trace.lanes[rows[r]->lane]), {11, theme.text});
        svg.line(left, y + rowHeight - 2, width - right, y + rowHeight - 2, theme.hairline);
        std::vector<VisibleSlice> visible;
        findVisible(*rows[r], from, to, static_cast<int>(plot), visible);
        std::map<std::string_view, std::string> paths;
        const auto xOf = [&](Nanoseconds time) {
            return left
                   + plot * static_cast<double>(std::clamp(time, from, to) - from) / static_cast<double>(to - from);
        };
        for (const VisibleSlice& slice : visible) {
            const double x = xOf(slice.start);
            appendRectangle(paths[colourOf(trace, *rows[r], slice.slice)],
                            {x, y + 3, std::max(0.5, xOf(slice.end) - x), rowHeight - 7});
        }
        for (const auto& [colour, path] : paths)
            svg.filledPath(path, colour);
    }
    if (shown < rows.size())
        svg.text(12, bottom + 20, fmt::format("and {} more", rows.size() - shown), {11, theme.dim});
    return std::move(svg).finish();
}

std::string deviceTimeSvg(const DeviceTimes& times)
{
    const double whole = static_cast<double>(std::max<Nanoseconds>(1, times.to - times.from));
    const std::size_t shown = std::min(times.devices.size(), mostRows);
    const double plot = width - left - right, bottom = top + rowHeight * static_cast<double>(shown);
    SvgWriter svg(width, bottom + 30, "Where the devices' time went");
    svg.fill({0, 0, width, bottom + 30}, theme.panel);
    legend(svg, 26,
           {DeviceTimeCause::Computing, DeviceTimeCause::Communication, DeviceTimeCause::Copies,
            DeviceTimeCause::HostGap, DeviceTimeCause::BackToBack, DeviceTimeCause::Waiting,
            DeviceTimeCause::NotKnown});
    for (std::size_t r = 0; r < shown; ++r) {
        const DeviceTime& device = times.devices[r];
        const double y = top + rowHeight * static_cast<double>(r);
        svg.text(12, y + 14, device.name,
                 {11, static_cast<int>(r) == times.straggler ? theme.bad : theme.text, false,
                  static_cast<int>(r) == times.straggler});
        double x = left;
        for (int cause = 0; cause < deviceTimeCauses; ++cause) {
            const double part = plot * static_cast<double>(device.time[cause]) / whole;
            if (part > 0)
                svg.fill({x, y + 3, part, rowHeight - 6}, colourOf(static_cast<DeviceTimeCause>(cause)));
            x += part;
        }
    }
    if (shown < times.devices.size())
        svg.text(12, bottom + 20, fmt::format("and {} more", times.devices.size() - shown), {11, theme.dim});
    return std::move(svg).finish();
}

} // namespace pipewright
