// SPDX-License-Identifier: GPL-3.0-or-later
// The last row of a window that stands beside the main one: Close, and right of it what the window is for, as wide as
// in every other. What else belongs there is inserted at the left.
#pragma once

#include <QDialog>

class QHBoxLayout;
class QPushButton;

namespace pipewright {

/// `purpose`: the button that takes what the window made; null: it has none, or it stands where its fields are.
QHBoxLayout* makeClosingRow(QDialog& window, QPushButton* purpose = nullptr);

} // namespace pipewright
