// SPDX-License-Identifier: GPL-3.0-or-later
// Causes of the measured step's difference from the prediction, largest share of the makespan's error first. Selecting
// a row selects the blocks that the cause changed.
#pragma once

#include "gui/document/document.h"
#include "gui/widgets/quietfocus.h"

#include <QTreeWidget>

namespace pipewright {

class CauseTable : public QuietFocus<QTreeWidget> {
    Q_OBJECT

public:
    explicit CauseTable(Document& document, QWidget* parent = nullptr);
    /// The blocks of a row's cause, in order of measured start; for a link, the blocks whose values it carried.
    std::vector<Block> blocksOf(int row) const;

Q_SIGNALS:
    void chosen(const std::vector<pipewright::Block>& blocks);

private:
    void fill();

    Document& m_document;
};

} // namespace pipewright
