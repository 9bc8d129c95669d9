// SPDX-License-Identifier: GPL-3.0-or-later
// The table below compared schedules: one column each, one row per number people compare schedules by, and in
// every column but the first the signed difference to the first, green where it is a gain.
#pragma once

#include "core/predict/predict.h"

#include <QString>

#include <vector>

class QTableWidget;
class QWidget;

namespace pipewright {

struct ComparedSchedule {
    QString name;
    const Design& design;
    const Prediction* prediction; ///< null: the column says nothing
};

QTableWidget* makeCompareTable(QWidget* parent);
void fillCompareTable(QTableWidget& table, const std::vector<ComparedSchedule>& schedules);

} // namespace pipewright
