// SPDX-License-Identifier: GPL-3.0-or-later
// The selected block: a headline, why it starts when it does, panels added by others (suggestions, the last edit), its
// facts, and, folded, fields for every edit by dragging: position in the lane (alone, with its microbatch, or in
// exchange) or place from the tray, its stage's device, earliest start, and order of transfers. Below, folded too, are
// fields of its lane with the warm-up, and of the visible and measured range.
#pragma once

#include "gui/document/document.h"

#include <QWidget>

class QComboBox;
class QLabel;
class QVBoxLayout;

namespace pipewright {

class BlockChip;
class FactList;
class NumberField;
struct BlockAnswers;
class RemedyButton;
class Section;
class TimeField;
class TimelineView;

class Inspector : public QWidget {
    Q_OBJECT

public:
    explicit Inspector(TimelineView& timeline, QWidget* parent = nullptr); ///< of the timeline's document
    QString why() const;
    /// Explains idle time after a device's last block. Shown until the selection or the design changes.
    void explainTail(int device, Nanoseconds start, Nanoseconds end);
    const FactList& facts() const { return *m_facts; }
    QString whyHeading() const;       ///< "Why GPU 1 waits before it · predicted"
    void addBelowWhy(QWidget* panel); ///< in the order of the calls, above the facts
    Section& editSection() { return *m_editSection; }
    Section& viewSection() { return *m_viewSection; }

private:
    enum class Along { Nothing, Microbatch, Exchange };
    QWidget* buildFields();
    QWidget* buildLaneFields();
    void showWhy(const BlockAnswers& answers);
    void refresh();
    void showNothing();
    void applyPosition();
    void applyDevice();
    void applyWarmUp();
    void refreshDevice(); ///< the block's stage and device; during a drag the device it would move to
    void refreshPlace();  ///< the fields of the block's place, from the design
    void applyPin(std::optional<Nanoseconds> wanted);
    void refreshPin();
    void applySend();
    void refreshGather(int device, const Transfer& gather);
    void showSend(bool isThere);
    void refreshSend();
    bool isInTray() const;
    void applyOrReport(const EditRequest& request);
    void report(const Diagnostics& diagnostics); ///< empty: clears the message

    TimelineView& m_timeline;
    Document& m_document;
    std::optional<Block> m_block;
    BlockChip* m_chip;
    QLabel* m_title;
    QLabel* m_place;
    bool m_previewing = false; ///< at the last change of the preview
    FactList* m_facts;
    Section *m_factSection, *m_editSection, *m_viewSection;
    QVBoxLayout* m_belowWhy;
    QWidget* m_fields;
    NumberField* m_position;
    QLabel* m_positionOf;
    std::vector<QWidget*> m_ofPlaced; ///< hidden for blocks in the tray
    QComboBox* m_along;               ///< which blocks move with the position
    NumberField* m_device;            ///< of the block's stage
    QWidget* m_warmUpRow;             ///< in the lane's fields
    NumberField* m_warmUp;            ///< of the block's device
    TimeField* m_pin;
    QLabel* m_sendCaption;
    NumberField* m_send; ///< the selected transfer's position in its device's list of transfers
    QLabel* m_sendOf;
    QLabel* m_fault;
    RemedyButton* m_remedy; ///< the fix for that error
    QLabel* m_whyHeading;
    QLabel* m_why;
};

} // namespace pipewright
