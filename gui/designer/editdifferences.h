// SPDX-License-Identifier: GPL-3.0-or-later
// Effect of the last edit, or of the drop during a drag, on makespan, bubble, peak memory and transfers.
#pragma once

#include "core/predict/peakchange.h"
#include "gui/designer/baseline.h"
#include "gui/widgets/factlist.h"

#include <QWidget>

class QLabel;

namespace pipewright {

class EditDifferences : public QWidget {
    Q_OBJECT

public:
    EditDifferences(Document& document, const Baseline& baseline, QWidget* parent = nullptr);
    const FactList& facts() const { return *m_facts; }

private:
    Fact peakFact(const PeakChange& change, Bytes ofFullest, const QString& source, Tone tone) const;
    Fact unknownPeak(const Baseline::Pair& pair) const;
    void showNothing();
    void refresh();

    Document& m_document;
    const Baseline& m_baseline;
    QLabel* m_heading;
    QLabel* m_name;
    FactList* m_facts;
};

} // namespace pipewright
