// SPDX-License-Identifier: GPL-3.0-or-later
// Trains weight policies on the same data from the same initial weights and compares them. Policies are checked in a
// list; a child process trains them and the sequential reference, with live loss curves, remaining time and Cancel. For
// the selected policy: staleness and copies per stage, and its largest stable learning rate. Results are saved as CSV,
// picture or SQLite.
#pragma once

#include "core/predict/policydesigns.h"
#include "gui/document/document.h"
#include "gui/experiment/experimentprocess.h"

#include <QDialog>
#include <QTemporaryDir>

class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QListWidget;
class QProgressBar;
class QPushButton;
class QSpinBox;

namespace pipewright {

class LossPlot;
class StabilityPlot;
class ValueTable;

class ExperimentWindow : public QDialog {
    Q_OBJECT

public:
    explicit ExperimentWindow(Document& document, QWidget* parent = nullptr);

    void start();  ///< all ticked policies
    void cancel(); ///< finished runs stay
    bool isRunning() const { return m_process.isRunning(); }
    void setProgram(const QString& program) { m_program = program; } ///< the binary to start; empty: this one
    const std::vector<ExperimentRun>& runs() const { return m_runs; }
    /// Curves (.csv), picture (.svg) or results (.db). Throws Error when the file cannot be written.
    void saveTo(const QString& path) const;

    QListWidget* policies() const { return m_policies; }
    QComboBox* optimizer() const { return m_optimizer; }
    QSpinBox* updates() const { return m_updates; }
    QDoubleSpinBox* learningRate() const { return m_rate; }
    QDoubleSpinBox* momentum() const { return m_momentum; }
    QPushButton* button() const { return m_button; } ///< Cancel while running, else Train
    ValueTable* results() const { return m_results; }
    ValueTable* stages() const { return m_stages; }
    ValueTable* costs() const { return m_costs; } ///< predicted costs of a step: one row per policy, then this design
    LossPlot& plot() { return *m_plot; }
    StabilityPlot& stability() { return *m_stability; }
    QString state() const;
    QString lesson() const;

Q_SIGNALS:
    void finished(); ///< all runs are done, cancelled or failed

protected:
    void showEvent(QShowEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    QWidget* makeSettings();
    QWidget* makeTraining();
    QWidget* makeLesson();
    QWidget* makeCosts();
    PolicyComparison comparison() const;
    void refreshPolicies(); ///< which can be checked with these settings, and why not
    void refreshDocument(); ///< the design's own row
    void refreshLesson();
    void refreshCosts();
    void refreshResults();
    void takeProgress(const ExperimentProgress& progress, double secondsLeft);
    void end(bool cancelled, const QString& reason);
    void save();
    Design designOf(int row) const; ///< throws Error

    Document& m_document;
    QString m_program;
    std::unique_ptr<QTemporaryDir> m_folder;
    ExperimentProcess m_process;
    std::vector<ExperimentRun> m_runs;
    QStringList m_warnings;
    QListWidget* m_policies;
    QComboBox *m_model, *m_optimizer;
    QSpinBox *m_stageCount, *m_updates, *m_seeds;
    QDoubleSpinBox *m_rate, *m_momentum;
    QPushButton *m_button, *m_save;
    QProgressBar* m_progress;
    QLabel *m_state, *m_lesson;
    LossPlot* m_plot;
    ValueTable *m_results, *m_stages, *m_costs;
    StabilityPlot* m_stability;
    bool m_made = false; ///< false during construction, when the palette changes
    bool m_filling = false;
};

} // namespace pipewright
