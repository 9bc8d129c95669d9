// SPDX-License-Identifier: GPL-3.0-or-later
// The dock's page that compares schedules: the window of comparisons while that is not open by itself.
#pragma once

#include <QWidget>

class QLabel;

namespace pipewright {

class OtherWindows;

class ComparePage : public QWidget {
    Q_OBJECT

public:
    ComparePage(OtherWindows& windows, QWidget* parent);

protected:
    void showEvent(QShowEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void take();

    OtherWindows& m_windows;
    QLabel* m_elsewhere;
    bool m_follows = false; ///< what becomes of the window
};

} // namespace pipewright
