// SPDX-License-Identifier: GPL-3.0-or-later
// The tray of unplaced blocks. Chips can be dragged into the timeline; N (or Return on a chip) places one at the first
// legal position. Shows a few rows of chips and the number of others, so its cost is constant.
#pragma once

#include "gui/document/document.h"

#include <QWidget>

class QLabel;
class QPushButton;

namespace pipewright {

class BlockChip;

class Tray : public QWidget {
    Q_OBJECT

public:
    explicit Tray(Document& document, QWidget* parent = nullptr);

    /// Places the first unplaced block with a legal position. Returns why not.
    Diagnostics placeNext();
    /// Places all unplaced blocks in the style of the placed ones in one undo step, or none; then returns why.
    Diagnostics placeAll();

Q_SIGNALS:
    void refused(const Diagnostics& diagnostics);

private:
    void refresh();
    void place(Block block); ///< by value, as the chip is reused

    static constexpr int columns = 3;
    static constexpr int shownChips = 9;

    Document& m_document;
    std::vector<Block> m_unplaced;
    QLabel* m_count;
    QLabel* m_hint;
    QWidget* m_chipArea;
    std::vector<BlockChip*> m_chips;
    QPushButton* m_complete;
};

} // namespace pipewright
