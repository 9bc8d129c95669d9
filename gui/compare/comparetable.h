// SPDX-License-Identifier: GPL-3.0-or-later
// The table of compared schedules: one column each, one row per key number, with signed differences to the first
// column, green for gains.
#pragma once

#include "core/predict/predict.h"
#include "core/predict/spread.h"

#include <QString>

#include <vector>

class QTableWidget;
class QWidget;

namespace pipewright {

struct ComparedSchedule {
    QString name;
    const Design& design;
    const Prediction* prediction; ///< null: the column is empty
};

QTableWidget* makeCompareTable(QWidget* parent);
/// `noise`: for the rows about the step time under noise.
void fillCompareTable(QTableWidget& table, const std::vector<ComparedSchedule>& schedules,
                      const NoiseChoice& noise = {});
/// The height that shows all rows.
int neededHeight(const QTableWidget& table);

} // namespace pipewright
