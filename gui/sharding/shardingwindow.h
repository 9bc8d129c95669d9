// SPDX-License-Identifier: GPL-3.0-or-later
// Sharding: one stage on a group of unequal devices. Shows the synthesised program as a flow, the shares as sliders
// with their step time beside the optimum, and the alternative programs with their costs. The group is edited here and
// becomes a device of the cluster in one undo step. Synthesis runs in the background and does not touch the document.
#pragma once

#include "gui/document/document.h"

#include "core/sharding/sharedstage.h"

#include <QDialog>
#include <QThreadPool>

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>

class QComboBox;
class QHBoxLayout;
class QLabel;
class QPushButton;
class QTableWidget;
class QTreeWidget;
class QVBoxLayout;

namespace pipewright {

class ProgramFlow;
class RatioSliders;

class ShardingWindow : public QDialog {
    Q_OBJECT

public:
    explicit ShardingWindow(Document& document, QWidget* parent = nullptr);
    ~ShardingWindow() override;

    void start(); ///< synthesises the chosen stage on the listed members
    bool isRunning() const { return m_running; }
    QString state() const;
    QString prediction() const; ///< the text beside the sliders
    /// Makes the listed members the stage's device; does nothing while a field is invalid.
    void apply();

    QComboBox* stageBox() const { return m_stage; }
    QTableWidget* members() const { return m_members; }
    QTreeWidget* strategies() const { return m_strategies; }
    QPushButton* applyButton() const { return m_apply; }
    RatioSliders& sliders() { return *m_sliders; }
    ProgramFlow& flow() { return *m_flow; }

Q_SIGNALS:
    void finished(); ///< a synthesis ended or was refused
    void applied();

protected:
    void showEvent(QShowEvent* event) override;

private:
    struct Found { ///< the first strategy is the plan
        sharding::SharedStage stage;
        std::vector<sharding::Alternative> strategies;
    };
    void build();
    QVBoxLayout* buildMembers();
    QVBoxLayout* buildStrategies();
    int device() const;    ///< that holds the chosen stage; -1: none
    Cluster group() const; ///< as listed; throws Error
    void refreshStages();
    void refreshMembers();
    void addMember(const DeviceSpec& device);
    void settle(std::shared_ptr<const Found> found);
    void end(const QString& state, bool bad);
    void showStrategy(int strategy);
    void showShares();

    Document& m_document;
    std::shared_ptr<const Found> m_found;
    bool m_running = false;
    int m_strategy = 0;
    QComboBox* m_stage;
    QTableWidget* m_members;
    QTreeWidget* m_strategies;
    QLabel* m_state;
    QLabel* m_prediction;
    QPushButton* m_start;
    QPushButton* m_apply;
    QPushButton* m_best;
    ProgramFlow* m_flow;
    RatioSliders* m_sliders;
    QThreadPool m_worker;
    std::atomic<int> m_generation{0};
    std::stop_source m_stop; ///< of the synthesis that runs
};

} // namespace pipewright
