// SPDX-License-Identifier: GPL-3.0-or-later
// What `check` finds in the document's design: more than what forbids its prediction, such as devices that lack memory
// and links that would hang. Worked out behind a large design, at once for a small one.
#pragma once

#include "core/predict/memoryremedies.h"
#include "gui/document/document.h"
#include "gui/widgets/latestwork.h"

#include <QObject>

#include <vector>

namespace pipewright {

class Findings : public QObject {
    Q_OBJECT

public:
    explicit Findings(Document& document, QObject* parent = nullptr);

    bool isKnown() const { return m_known; } ///< false while it is being worked out
    const Diagnostics& all() const { return m_all; }
    int overMemory() const { return m_overMemory; } ///< devices, or members of groups

    /// Changes after which no device lacks memory: worked out when they are first asked for, until remediesChanged().
    const std::vector<MemoryRemedy>& remedies();
    bool areRemediesKnown() const { return m_remediesKnown; }

Q_SIGNALS:
    void changed();
    void remediesChanged();

private:
    struct Checked {
        Diagnostics all;
        int overMemory = 0;
    };
    static Checked check(const Design& design);
    void restart();
    void take(Checked checked);

    Document& m_document;
    Diagnostics m_all;
    int m_overMemory = 0;
    bool m_known = false, m_remediesAsked = false, m_remediesKnown = false;
    std::vector<MemoryRemedy> m_remedies;
    LatestWork m_checking, m_remedying;
};

} // namespace pipewright
