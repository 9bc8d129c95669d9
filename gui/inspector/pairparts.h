// SPDX-License-Identifier: GPL-3.0-or-later
// The overlapped pair of the selected block: how long the two blocks take together and where that number comes from,
// and their parts on two rows, to be ordered by hand or reset to the shortest order. Hidden for other blocks.
#pragma once

#include "gui/document/document.h"

#include <QWidget>

class QLabel;
class QPushButton;

namespace pipewright {

class PartRows;

class PairParts : public QWidget {
    Q_OBJECT

public:
    explicit PairParts(Document& document, QWidget* parent = nullptr);
    PartRows& rows() { return *m_rows; }
    QString lengthText() const;

private:
    void refresh();
    void showLength();
    void state(const PartSequence& order);

    Document& m_document;
    std::optional<Overlap> m_pair;
    Nanoseconds m_apart = 0, m_length = 0;   ///< of the two blocks in sequence, and overlapped
    Nanoseconds m_shortest = 0, m_least = 0; ///< see PairTimes::Plan
    bool m_stated = false, m_computed = false;
    QLabel *m_heading, *m_text, *m_part;
    PartRows* m_rows;
    QPushButton* m_forget;
};

} // namespace pipewright
