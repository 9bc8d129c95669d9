// SPDX-License-Identifier: GPL-3.0-or-later
// How should this model be trained on these GPUs? Asked for a model, a cluster and a batch, it looks for the best whole
// ways to train (core/plan) on another thread: the list and the frontier of step against memory grow while it runs, and
// Cancel keeps the best so far. Each plan can be opened as the document's design in one undo step, and written as the
// configuration of other tools. Closing the window ends the search.
#pragma once

#include "gui/document/document.h"
#include "gui/plan/foundplans.h"
#include "gui/plan/listchange.h"

#include "core/plan/plan.h"
#include "core/plan/planrefine.h"

#include <QDialog>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

class QLabel;
class QMenu;
class QProgressBar;
class QPushButton;
class QScrollArea;

namespace pipewright {

class PlanDetails;
class PlanFields;
class PlanTable;
class PlanWork;
class TradeOffPlot;

class PlanWindow : public QDialog {
    Q_OBJECT

public:
    explicit PlanWindow(Document& document, QWidget* parent = nullptr);
    ~PlanWindow() override;

    void start();
    void cancel(); ///< keeps the best so far
    bool isRunning() const;
    /// Null until a search ended, and while another one runs.
    const std::shared_ptr<const PlanResult>& result() const { return m_result; }
    QString state() const;
    QString costs() const; ///< where the numbers come from
    /// Where plans with this stand, or why there are none: "tensor=16".
    void ask(const QString& pin);
    /// Goes on with a plan past the space of the list, for 30 s at most.
    void refine(int plan);
    /// The plan's design, refined where it was, becomes the document's.
    void open(int plan);
    /// In a format of core/exchange, replacing the file. A configuration that names a schedule file gets it beside it.
    /// False after saying why not.
    bool exportTo(int plan, std::string_view format, const QString& path);

    PlanFields& fields() { return *m_fields; }
    PlanTable& table() { return *m_table; }
    TradeOffPlot& plot() { return *m_plot; }
    PlanDetails& details() { return *m_details; }
    QPushButton* button() const { return m_button; } ///< Plan, or Cancel while running
    QPushButton* openButton() const { return m_open; }
    QPushButton* refineButton() const { return m_refine; } ///< Refine, or Stop while refining
    QMenu* exports() const { return m_exports; }

Q_SIGNALS:
    void finished(); ///< the search ended: found, refused or cancelled
    void answered(); ///< a question, or what the pins cost
    void compared(); ///< with the list before
    void refined();  ///< a plan was, or why it was not

protected:
    void hideEvent(QHideEvent* event) override;

private:
    void build();
    QWidget* buildLeft();
    QWidget* buildRight();
    void fillExports();
    void follow(const PlanProgress& now);
    void take(const std::vector<PlanFound>& plans);
    void settle(std::shared_ptr<const PlanResult> result);
    void refuse(const Diagnostics& why);
    void end();
    void askPinCosts();
    void askDifference();
    const Design& designOf(int plan) const; ///< refined where it was
    void showRefined();
    void sayAnswer(const QString& text, bool bad = false);
    void showFound();
    void showResult();
    void choose(int plan); ///< in the list, the picture and the details
    void refreshButtons();
    void setState(const QString& text, bool bad = false);
    void askForExport(std::string_view format);

    Document& m_document;
    PlanFields* m_fields;
    PlanTable* m_table;
    TradeOffPlot* m_plot;
    PlanDetails* m_details;
    QScrollArea* m_detailsScroll = nullptr;
    QProgressBar* m_progress;
    QLabel* m_state;
    QLabel* m_costs;
    QPushButton* m_button;
    QPushButton* m_copy;
    QPushButton* m_export;
    QPushButton* m_refine;
    QPushButton* m_open;
    QMenu* m_exports;
    bool m_bad = false;       ///< the state tells of a fault
    bool m_cancelled = false; ///< the search of the list
    PlanRequest m_request;
    std::vector<std::string> m_pins; ///< of the request
    FoundPlans m_found;
    std::shared_ptr<const PlanResult> m_result;
    std::optional<ListBefore> m_before; ///< the last list that had a plan
    QString m_changes;                  ///< between the last two lists
    bool m_bothComplete = false;
    QString m_asked; ///< the question under way
    PlanWork* m_search;
    PlanWork* m_unpinned; ///< the best without the pins
    PlanWork* m_question;
    std::map<int, RefinedPlan> m_refined; ///< plans of the list
    int m_refining = -1;                  ///< the plan under way
    PlanWork* m_refinement;
    PlanWork* m_difference; ///< between the last two lists
};

} // namespace pipewright
