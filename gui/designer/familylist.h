// SPDX-License-Identifier: GPL-3.0-or-later
// The published schedules with their bubble and memory for the current parameters: as points of peak against bubble,
// and as a list in which those that fit into memory come first; a click on a heading sorts it. A click on a point or a
// row, or Return, switches to a family in one undo step.
#pragma once

#include "gui/document/document.h"
#include "gui/document/familyestimates.h"

#include <QAbstractItemView>
#include <QWidget>

class QPushButton;
class QTreeWidget;
class QTreeWidgetItem;

namespace pipewright {

class TradeOffPlot;

class FamilyList : public QWidget {
    Q_OBJECT

public:
    explicit FamilyList(Document& document, QWidget* parent = nullptr);
    /// Estimates so far, by index into families(); absent while being worked out.
    const std::vector<std::optional<FamilyEstimate>>& estimates() const { return m_shown; }
    QTreeWidget* list() const { return m_list; }
    QTreeWidgetItem* row(std::size_t family) const { return m_items[family]; }
    TradeOffPlot& plot() { return *m_plot; } ///< its points are the families, in their order
    void sortBy(int column);                 ///< again: the other way round
    void switchTo(std::size_t family);
    int widthOfNames(bool narrow) const; ///< that elides none; `narrow`: small font, long names cut

Q_SIGNALS:
    void refused(const Diagnostics& diagnostics);
    void estimatesChanged();

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    /// Works estimates out, for a large design only when a person asks.
    void request(bool asked = false);
    void takeEstimate(const FamilyEstimate& estimate);
    void showRow(std::size_t family); ///< the present family at once, others when their estimate is known
    void markPresent();
    Bytes largestPeak() const;
    void captionColumns();
    void arrange();    ///< once all estimates are known, so that no row moves while they come in
    void showPoints(); ///< of the plot
    FamilyEstimate shownOf(std::size_t family) const; ///< of the present schedule in its family's row
    bool isPresent(std::size_t family) const;
    std::optional<FamilyEstimate> own() const; ///< the present schedule while it is of no family
    void showOwn();
    void showNumbers(QTreeWidgetItem& item, const FamilyEstimate& shown);
    void choose(const QTreeWidgetItem* item);

    Document& m_document;
    FamilyEstimates* m_estimates;
    QTreeWidget* m_list;
    TradeOffPlot* m_plot;
    QPushButton* m_ask;       ///< shown for a large design
    std::int64_t m_asked = 0; ///< with so many blocks it was pressed
    int m_sorted = 1;         ///< column
    bool m_ascending = true;
    std::vector<std::pair<int, std::size_t>> m_order; ///< groups and families of the rows, as arranged last
    std::vector<QTreeWidgetItem*> m_items;
    QTreeWidgetItem* m_own; ///< the present schedule while it is of no family; else hidden
    std::vector<std::optional<FamilyEstimate>> m_shown;
};

} // namespace pipewright
