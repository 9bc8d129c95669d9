// SPDX-License-Identifier: GPL-3.0-or-later
// What made the measured step as long as it is, largest share of the makespan's error first. Choosing a row chooses the
// blocks that the cause changed.
#pragma once

#include "gui/document/document.h"

#include <QTreeWidget>

namespace pipewright {

class CauseTable : public QTreeWidget {
    Q_OBJECT

public:
    explicit CauseTable(Document& document, QWidget* parent = nullptr);
    /// The blocks of a row: a cause's own, or those whose values a link carried. In time order of the measured step.
    std::vector<Block> blocksOf(int row) const;

Q_SIGNALS:
    void chosen(const std::vector<pipewright::Block>& blocks);

private:
    void fill();

    Document& m_document;
};

} // namespace pipewright
