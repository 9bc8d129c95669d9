// SPDX-License-Identifier: GPL-3.0-or-later
// The tables of sums beside a trace: a name at the left, numbers at the right that sort as numbers.
#pragma once

#include <QString>
#include <QStringList>

#include <cstdint>

class QTreeWidget;
class QWidget;

namespace pipewright {

constexpr int sortedValueRole = Qt::UserRole + 1; ///< a cell's sort value; column 0: the row's index in the sum

QTreeWidget* makeSumTable(const QString& name, const QStringList& columns, QWidget* parent);
QString countText(std::int64_t count); ///< "12,345"

} // namespace pipewright
