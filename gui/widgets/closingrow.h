// SPDX-License-Identifier: GPL-3.0-or-later
// The last row of a secondary window: Close, and right of it the button for the window's purpose. Both have the same
// least width in every window. Other widgets are inserted at the left.
#pragma once

#include <QDialog>

class QHBoxLayout;
class QPushButton;

namespace pipewright {

/// `purpose`: the button that accepts the window's result; null when there is none, or when it is beside its fields.
QHBoxLayout* makeClosingRow(QDialog& window, QPushButton* purpose = nullptr);

} // namespace pipewright
