// SPDX-License-Identifier: GPL-3.0-or-later
// The published schedules with their bubble and memory for the current parameters. A click or Return switches to a
// family in one undo step.
#pragma once

#include "gui/document/document.h"
#include "gui/document/familyestimates.h"

#include <QAbstractItemView>
#include <QWidget>

class QLabel;
class QTreeWidget;
class QTreeWidgetItem;

namespace pipewright {

class FamilyList : public QWidget {
    Q_OBJECT

public:
    explicit FamilyList(Document& document, QWidget* parent = nullptr);
    /// Estimates so far, by index into families(); absent while being worked out.
    const std::vector<std::optional<FamilyEstimate>>& estimates() const { return m_shown; }
    QTreeWidget* list() const { return m_list; }
    void switchTo(std::size_t family);
    int widthOfNames(bool narrow) const; ///< that elides none; `narrow`: small font, long names cut

Q_SIGNALS:
    void refused(const Diagnostics& diagnostics);
    void estimatesChanged();

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void takeEstimate(const FamilyEstimate& estimate);
    void showRow(std::size_t family); ///< the present family at once, others when their estimate is known
    void markPresent();
    Bytes largestPeak() const;
    void captionMemory();

    Document& m_document;
    FamilyEstimates* m_estimates;
    QTreeWidget* m_list;
    QLabel* m_memory; ///< caption of the peaks, with their unit
    std::vector<QTreeWidgetItem*> m_items;
    std::vector<std::optional<FamilyEstimate>> m_shown;
};

} // namespace pipewright
