// SPDX-License-Identifier: GPL-3.0-or-later
// One stage shared out among a group of mixed devices: the synthesised program as a flow, the shares as sliders
// with the step time that they give beside the optimum, and why this program: the others and what they cost. The
// group itself is edited here too and becomes a lane of the cluster as one undoable command. Synthesis runs in the
// background and never touches the document.
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

    void start(); ///< synthesises the stage chosen on the members listed
    bool isRunning() const { return m_running; }
    QString state() const;
    QString prediction() const; ///< what stands beside the sliders
    /// The members listed become the stage's device. Nothing happens while they are not readable.
    void apply();

    QComboBox* stageBox() const { return m_stage; }
    QTableWidget* members() const { return m_members; }
    QTreeWidget* ways() const { return m_ways; }
    QPushButton* applyButton() const { return m_apply; }
    RatioSliders& sliders() { return *m_sliders; }
    ProgramFlow& flow() { return *m_flow; }

Q_SIGNALS:
    void finished(); ///< a synthesis came to its end, or was refused
    void applied();

protected:
    void showEvent(QShowEvent* event) override;

private:
    struct Found { ///< the first way is the plan
        sharding::SharedStage stage;
        std::vector<sharding::Alternative> ways;
    };
    void build();
    QVBoxLayout* buildMembers();
    QVBoxLayout* buildWays();
    int device() const;    ///< that holds the stage chosen; -1: none
    Cluster group() const; ///< as listed; throws Error
    void refreshStages();
    void refreshMembers();
    void addMember(const DeviceSpec& device);
    void settle(std::shared_ptr<const Found> found);
    void end(const QString& state, bool bad);
    void showWay(int way);
    void showShares();

    Document& m_document;
    std::shared_ptr<const Found> m_found;
    bool m_running = false;
    int m_way = 0;
    QComboBox* m_stage;
    QTableWidget* m_members;
    QTreeWidget* m_ways;
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
