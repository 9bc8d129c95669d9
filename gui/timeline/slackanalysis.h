// SPDX-License-Identifier: GPL-3.0-or-later
// Slack and critical path of a prediction, as the timeline shows them. Both are computed at their first use,
// O(tasks), so that edits cost nothing while they are not shown.
#pragma once

#include "core/predict/predict.h"
#include "gui/document/timelinelayout.h"
#include "gui/widgets/timecoordinates.h"

#include <QColor>

#include <memory>
#include <optional>
#include <vector>

class QPainter;
class QRectF;

namespace pipewright {

class SlackAnalysis {
public:
    /// Null: there is nothing to analyse.
    void setPrediction(std::shared_ptr<const Prediction> prediction);
    bool isEmpty() const { return !m_prediction; }
    Nanoseconds slackOf(TaskId task); ///< the same rules as slack() of core/predict/criticalpath.h
    Nanoseconds greatestSlack();      ///< of any block; 0 where there is none
    bool isCritical(TaskId task);

    static constexpr double deepestShade = 0.82; ///< opacity over the block of greatest slack
    /// Shades a lane's blocks by their slack in the colour of the lane's ground. O(pixels of the area).
    void shade(QPainter& painter, const Lane& lane, const TimeAxis& axis, const QRectF& area, double scale,
               QColor ground);

private:
    std::shared_ptr<const Prediction> m_prediction;
    std::optional<std::vector<Nanoseconds>> m_slack; ///< per task
    std::optional<Nanoseconds> m_greatest;
    std::optional<std::vector<char>> m_critical; ///< per task
};

} // namespace pipewright
