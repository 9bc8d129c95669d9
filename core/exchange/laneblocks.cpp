// SPDX-License-Identifier: GPL-3.0-or-later
// Sorts a device's tasks by start and merges blocks narrower than a pixel into runs with the colour that fills most of
// each pixel. O(tasks log tasks).
#include "core/exchange/laneblocks.h"

#include "core/program/overlaps.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace pipewright {

namespace {

constexpr double narrowest = 1;   // pixels: narrower blocks join a run
constexpr double smallestGap = 3; // pixels: smallest idle gap that is hatched

// Narrow blocks, accumulated per pixel; the colour that fills most of a pixel is drawn.
class Runs {
public:
    explicit Runs(std::vector<LaneShape>& shapes) : m_shapes(shapes) {}

    void add(double from, double to, int colour)
    {
        // A narrow block lies in one pixel, or in two neighbours.
        for (double at = from; at < to || at == from;) {
            const double pixel = std::floor(at);
            if (m_any && pixel != m_pixel)
                closePixel();
            if (!m_any) {
                m_any = true;
                m_pixel = pixel;
                m_from = at;
            }
            const double until = std::min(to, pixel + 1);
            m_share[colour] += until - at;
            m_to = std::max(until, m_from);
            if (until <= at)
                break;
            at = until;
        }
    }

    void flush()
    {
        if (m_any)
            closePixel();
        m_open = false;
    }

private:
    void closePixel()
    {
        const int best = static_cast<int>(std::max_element(m_share.begin(), m_share.end()) - m_share.begin());
        if (m_open && m_shapes.back().colour == best && m_from - m_shapes.back().to < narrowest)
            m_shapes.back().to = m_to;
        else
            m_shapes.push_back({m_from, m_to, none, best});
        m_open = true;
        m_share.fill(0);
        m_any = false;
    }

    std::vector<LaneShape>& m_shapes;
    bool m_open = false; // the last shape is a run that may be extended
    std::array<double, opCount + 1> m_share{};
    bool m_any = false;
    double m_pixel = 0, m_from = 0, m_to = 0;
};

int colourOf(const Task& task)
{
    if (isReduction(task.kind))
        return opCount;
    return static_cast<int>(isUpdate(task.kind) ? Op::U : task.op);
}

LaneShapes laneOf(const Program& program, const Timeline& timeline, const TimeScale& scale,
                  const std::vector<TaskId>& tasks)
{
    LaneShapes lane;
    Runs runs(lane.shapes);
    double busyUntil = scale.left;
    bool halfOpen = false; // the second of a pair comes next
    const auto addGap = [&lane](double from, double to) {
        if (to - from >= smallestGap)
            lane.idle.emplace_back(from, to);
    };
    for (const TaskId id : tasks) {
        double from = scale.x(timeline.start[id]), to = scale.x(timeline.end[id]);
        // An overlapped pair shares its time slot side by side, as the papers draw it.
        const TaskId second = overlapsWith(program, id);
        const bool isFirst = second != none && timeline.start[second] < timeline.end[id];
        const bool isSecond = halfOpen && from < busyUntil;
        if (isFirst)
            to = (from + to) / 2;
        else if (isSecond)
            from = busyUntil;
        halfOpen = isFirst;
        addGap(busyUntil, from);
        busyUntil = std::max(busyUntil, to);
        if (to - from < narrowest) {
            runs.add(from, to, colourOf(program.tasks[id]));
        } else {
            runs.flush();
            lane.shapes.push_back({from, to, id, colourOf(program.tasks[id])});
            lane.shapes.back().joined = isFirst;
        }
    }
    runs.flush();
    addGap(busyUntil, scale.left + scale.width);
    return lane;
}

} // namespace

std::vector<LaneShapes> lanesOf(const Program& program, const Timeline& timeline, const TimeScale& scale, int devices)
{
    std::vector<std::vector<TaskId>> tasksOf(devices);
    const auto add = [&](int device, TaskId id) {
        if (device >= 0 && device < devices)
            tasksOf[device].push_back(id);
    };
    for (TaskId id = 0; id < program.tasks.size(); ++id) {
        const Task& task = program.tasks[id];
        if (moves(task.kind) || timeline.start[id] == notRun || timeline.end[id] <= timeline.start[id])
            continue;
        add(task.device, id);
        if (task.joinsTwoDevices())
            add(task.otherDevice(), id);
    }
    std::vector<LaneShapes> lanes;
    lanes.reserve(tasksOf.size());
    for (std::vector<TaskId>& tasks : tasksOf) {
        std::stable_sort(tasks.begin(), tasks.end(),
                         [&](TaskId a, TaskId b) { return timeline.start[a] < timeline.start[b]; });
        lanes.push_back(laneOf(program, timeline, scale, tasks));
    }
    return lanes;
}

} // namespace pipewright
