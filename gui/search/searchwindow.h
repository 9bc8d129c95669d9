// SPDX-License-Identifier: GPL-3.0-or-later
// Search for a better order: options for movable blocks and memory, best time and bound during the search, Cancel, and
// a comparison of the result with the current schedule before it is kept in one undo step. Runs in the background and
// does not touch the document.
#pragma once

#include "core/search/search.h"
#include "gui/document/document.h"

#include <QDialog>
#include <QThreadPool>

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>

class QComboBox;
class QDoubleSpinBox;
class QFormLayout;
class QLabel;
class QLineEdit;
class QPushButton;
class QSpinBox;
class QTableWidget;

namespace pipewright {

class CompareLanes;
class SearchCurve;

class SearchWindow : public QDialog {
    Q_OBJECT

public:
    /// `selectedBlocks` is called when a search starts.
    SearchWindow(Document& document, std::function<std::vector<Block>()> selectedBlocks, QWidget* parent = nullptr);
    ~SearchWindow() override;

    enum class Scope { Everything, Selected, Unplaced };
    void setScope(Scope scope);
    void start();
    void cancel(); ///< keeps the best so far
    void keep();   ///< the schedule found becomes the design's
    bool isRunning() const { return m_running; }
    /// Null until a search ended with a schedule.
    const SearchResult* result() const { return m_found ? &m_found->result : nullptr; }
    QString state() const;

    SearchCurve& curve() { return *m_curve; }
    QPushButton* button() const { return m_button; } ///< Search, or Cancel while running
    QPushButton* keepButton() const { return m_keep; }
    QComboBox* scopeBox() const { return m_scope; }
    QComboBox* limitBox() const { return m_limit; }
    QDoubleSpinBox* factorBox() const { return m_factor; }
    QLineEdit* sizeBox() const { return m_size; }
    QDoubleSpinBox* secondsBox() const { return m_seconds; }

Q_SIGNALS:
    void finished(); ///< the search ended: found, refused or cancelled

protected:
    void showEvent(QShowEvent* event) override;

private:
    struct Found {
        SearchResult result;
        Design design;
        std::shared_ptr<const Prediction> prediction;
    };
    void build();
    QFormLayout* buildSettings();
    SearchOptions options() const; ///< throws Error when the size is invalid
    std::vector<Block> locked() const;
    void follow(const SearchProgress& now);
    void settle(std::shared_ptr<const Found> found);
    void refuse(const QString& why);
    void end(const QString& state, bool bad = false);
    void refreshScope();
    void refreshFound();
    void setState(const QString& text, bool bad);

    Document& m_document;
    std::function<std::vector<Block>()> m_selectedBlocks;
    Design m_base; ///< the design that is searched
    std::shared_ptr<const Found> m_found;
    bool m_running = false, m_bad = false;
    double m_wanted = 0; ///< seconds
    QComboBox* m_scope;
    QComboBox* m_limit;
    QComboBox* m_objective;
    QDoubleSpinBox* m_factor;
    QLineEdit* m_size;
    QDoubleSpinBox* m_seconds;
    QSpinBox* m_threads;
    QPushButton* m_button;
    QPushButton* m_keep;
    QLabel* m_state;
    QLabel* m_why;
    SearchCurve* m_curve;
    CompareLanes* m_lanes;
    QTableWidget* m_table;
    QThreadPool m_worker;
    std::stop_source m_stop;
    std::atomic<int> m_generation{0};
};

} // namespace pipewright
