// SPDX-License-Identifier: GPL-3.0-or-later
// The selected block: what it is, when it runs and why then, what it frees and feeds, and fields that are the
// numeric twins of dragging: its position in the lane, its stage's device, that device's warm-up, its earliest
// start, the place of what it sends in its device's order of transfers, and how its lane stands.
#pragma once

#include "gui/document.h"

#include <QWidget>

class QLabel;
class QLineEdit;
class QSpinBox;

namespace pipewright {

class BlockChip;
class FactList;
class TimelineView;

class Inspector : public QWidget {
    Q_OBJECT

public:
    explicit Inspector(TimelineView& timeline, QWidget* parent = nullptr); ///< of the timeline's document
    QString why() const;
    /// Idle time behind the last block of a device, which no block of its own explains. Shown until the
    /// selection or the design changes.
    void explainTail(int device, Nanoseconds start, Nanoseconds end);
    const FactList& facts() const { return *m_facts; }

private:
    void refresh();
    void showNothing();
    void applyPosition();
    void applyDevice();
    void applyWarmUp();
    void refreshPlace(); ///< the fields of place, from the design
    void applyPin();
    void applySend();
    void refreshSend();
    void report(const Diagnostics& diagnostics);

    TimelineView& m_timeline;
    Document& m_document;
    std::optional<Block> m_block;
    BlockChip* m_chip;
    QLabel* m_title;
    QLabel* m_place;
    FactList* m_facts;
    QWidget* m_fields;
    QSpinBox* m_position;
    QLabel* m_positionOf;
    QSpinBox* m_device; ///< of the block's stage
    QSpinBox* m_warmUp; ///< of that device
    QLineEdit* m_pin;
    QLabel* m_sendCaption;
    QSpinBox* m_send; ///< place of the block's first transfer among those of its device
    QLabel* m_sendOf;
    QLabel* m_fault;
    QLabel* m_whyHeading;
    QLabel* m_why;
};

} // namespace pipewright
