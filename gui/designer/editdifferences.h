// SPDX-License-Identifier: GPL-3.0-or-later
// What the last edit, or the drop during a drag, changes on each device: its idle time and its peak, before → after.
// What it changes of the whole step stands beside the verdicts.
#pragma once

#include "gui/designer/baseline.h"
#include "gui/widgets/labels.h"

#include <QWidget>

#include <vector>

class QGridLayout;
class QLabel;

namespace pipewright {

class EditDifferences : public QWidget {
    Q_OBJECT

public:
    EditDifferences(Document& document, const Baseline& baseline, QWidget* parent = nullptr);
    enum Value { Idle, Peak };
    QString value(const QString& device, Value value) const; ///< "222 → 170 ms"; empty where the device is not listed
    QString summary() const;                                 ///< what is said below the devices; empty: nothing

private:
    struct Row {
        int device;
        QString idle, peak;
        Tone idleTone, peakTone;
        double weight; ///< how much it changes, to choose rows by
    };
    struct Labels {
        QLabel *name, *idle, *peak;
        Tone idleTone = Tone::Plain, peakTone = Tone::Plain;
    };
    void showRows(std::vector<Row> rows, int unchanged);
    void showNothing();
    void refresh();
    void tint();
    QString pendingPeak(const Baseline::Pair& pair) const;

    Document& m_document;
    const Baseline& m_baseline;
    QLabel* m_name;
    QWidget* m_table;
    QGridLayout* m_grid;
    QLabel* m_peakHeading;
    std::vector<Labels> m_rows;
    QLabel* m_summary;
};

} // namespace pipewright
