// SPDX-License-Identifier: GPL-3.0-or-later
// The tray: blocks that a complete schedule has and this one does not place. Chips can be dragged into
// the timeline; N (or Return on a chip) places at the first legal position. Shows a few rows of chips
// and says how many more there are, so its cost does not grow with the number of unplaced blocks.
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

    /// Places the first unplaced block that can go anywhere. Returns what forbade it.
    Diagnostics placeNext();
    /// Places every unplaced block in the style of the placed ones, as one undo command; or none, and says why.
    Diagnostics placeAll();

Q_SIGNALS:
    void refused(const Diagnostics& diagnostics);

private:
    void refresh();
    void place(Block block); ///< by value: the chip that names it shows another one then

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
