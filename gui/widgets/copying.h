// SPDX-License-Identifier: GPL-3.0-or-later
// Copies of tables and trees for a spreadsheet: the chosen rows as text whose columns are parted by tabs, or the whole
// table as CSV (RFC 4180).
#pragma once

#include <QString>

class QAbstractItemView;

namespace pipewright {

/// Adds both to the view's context menu, and Ctrl+C for the chosen rows; all rows where none is chosen.
void makeCopyable(QAbstractItemView& view);

enum class CopyAs { Tabs, Csv };
/// The view's headings and rows as it shows them, hidden columns left out; `chosen`: the selected rows only.
QString copyOf(const QAbstractItemView& view, CopyAs as, bool chosen);

} // namespace pipewright
