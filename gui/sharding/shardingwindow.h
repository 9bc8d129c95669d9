// SPDX-License-Identifier: GPL-3.0-or-later
// Sharding: one stage on a group of unequal devices. Shows the synthesised program as a flow, the shares as sliders
// with their step time beside the optimum, and the alternative programs with their costs. The group is edited here and
// becomes a device of the cluster in one undo step. Any plan of the list can be taken over into the design. The sliders
// then show the design's shares, and releasing a slider edits them. Synthesis runs in the background and does not touch
// the document.
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
class QLabel;
class QPushButton;
class QTreeWidget;
class QVBoxLayout;

namespace pipewright {

class ProgramFlow;
class RatioSliders;
class ValueTable;

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
    void usePlan();    ///< puts the shown plan into the design
    void forgetPlan(); ///< removes the stage's plan from the design
    /// Puts the shown plan into the design with one instruction moved. Refused when an instruction would then run
    /// before its inputs are made.
    void moveInstruction(int from, int to);

    QComboBox* stageBox() const { return m_stage; }
    ValueTable* members() const { return m_members; }
    QTreeWidget* strategies() const { return m_strategies; }
    QPushButton* applyButton() const { return m_apply; }
    QPushButton* useButton() const { return m_use; }
    QPushButton* forgetButton() const { return m_forget; }
    RatioSliders& sliders() { return *m_sliders; }
    ProgramFlow& flow() { return *m_flow; }

Q_SIGNALS:
    void finished(); ///< a synthesis ended or was refused
    void applied();

protected:
    void showEvent(QShowEvent* event) override;

private:
    enum MemberColumn { Name, Rate, Memory, MemberColumns };
    static std::vector<QString> memberTexts(const DeviceSpec& device); ///< by column
    struct Found {
        int number = -1; ///< index of the stage
        DeviceSpec lane; ///< the device that holds the stage
        sharding::SharedStage stage;
        std::vector<sharding::Alternative> strategies; ///< found plans, after the design's own if there is one
        bool own = false;                              ///< the first is the design's own plan
    };
    void build();
    QVBoxLayout* buildMembers();
    QVBoxLayout* buildStrategies();
    int device() const;    ///< the device that holds the chosen stage; -1: none
    Cluster group() const; ///< as listed; throws Error
    void refreshStages();
    void refreshMembers();
    void addMember(const DeviceSpec& device);
    bool isAsInDesign() const; ///< the listed members are those of the design's group
    bool isOfDesign() const;   ///< m_found belongs to a stage and a group of the present design
    bool showsOwn() const { return m_found && m_found->own && m_strategy == 0; }
    void settle(std::shared_ptr<Found> found);
    void refreshOwn();
    void listStrategies();
    SetStagePlan shownPlan() const;
    void applyPlan(const SetStagePlan& request);
    QString designText() const; ///< the design's predicted step with the shown plan and shares
    void end(const QString& state, bool bad);
    void showStrategy(int strategy);
    void showShares();

    Document& m_document;
    std::shared_ptr<Found> m_found;
    bool m_running = false;
    int m_strategy = 0;
    QComboBox* m_stage;
    ValueTable* m_members;
    QTreeWidget* m_strategies;
    QLabel* m_state;
    QLabel* m_prediction;
    QPushButton* m_start;
    QPushButton* m_apply;
    QPushButton* m_best;
    QPushButton* m_use;
    QPushButton* m_forget;
    ProgramFlow* m_flow;
    RatioSliders* m_sliders;
    QThreadPool m_worker;
    std::atomic<int> m_generation{0};
    std::stop_source m_stop; ///< of the running synthesis
};

} // namespace pipewright
