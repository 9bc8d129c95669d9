// SPDX-License-Identifier: GPL-3.0-or-later
// The selected block: what it is, when it runs and why then, what it frees and feeds, and fields that are the
// numeric twins of dragging: its position in the lane, alone, with its microbatch or in exchange, or where to place it
// from the tray; its stage's device, that device's warm-up, its earliest start, the place of a transfer in its device's
// order. Below, how its lane stands and which times are visible and measured.
#pragma once

#include "gui/document/document.h"

#include <QWidget>

class QComboBox;
class QLabel;

namespace pipewright {

class BlockChip;
class FactList;
class NumberField;
class TimeField;
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
    enum class Along { Nothing, Microbatch, Exchange };
    QWidget* buildFields();
    void refresh();
    void showNothing();
    void applyPosition();
    void applyDevice();
    void applyWarmUp();
    void refreshPlace(); ///< the fields of place, from the design
    void applyPin(std::optional<Nanoseconds> wanted);
    void refreshPin();
    void applySend();
    void refreshSend();
    bool isInTray() const;
    void report(const Diagnostics& diagnostics); ///< none: there is nothing wrong any more

    TimelineView& m_timeline;
    Document& m_document;
    std::optional<Block> m_block;
    BlockChip* m_chip;
    QLabel* m_title;
    QLabel* m_place;
    FactList* m_facts;
    QWidget* m_fields;
    NumberField* m_position;
    QLabel* m_positionOf;
    std::vector<QWidget*> m_ofPlaced; ///< what a block in the tray has not
    QComboBox* m_along;               ///< what goes along when the position changes
    NumberField* m_device;            ///< of the block's stage
    NumberField* m_warmUp;            ///< of that device
    TimeField* m_pin;
    QLabel* m_sendCaption;
    NumberField* m_send; ///< place of the selected transfer among those of the device in whose list it is
    QLabel* m_sendOf;
    QLabel* m_fault;
    QLabel* m_whyHeading;
    QLabel* m_why;
};

} // namespace pipewright
