// SPDX-License-Identifier: GPL-3.0-or-later
// Asks for model, cluster and family and previews the schedule. The design is made in a background thread at every
// change; OK is enabled when the latest one is valid, and returns exactly the previewed design.
#pragma once

#include "core/base/diagnostic.h"
#include "core/base/recompute.h"
#include "core/design/newdesign.h"
#include "gui/document/memberpredictor.h"
#include "gui/widgets/latestwork.h"

#include <QDialog>

#include <memory>

class QComboBox;
class QDialogButtonBox;
class QFormLayout;
class QLabel;
class QSpinBox;

namespace pipewright {

class FactList;
class ParallelismFields;
class PresetLibrary;

class NewScheduleDialog : public QDialog {
    Q_OBJECT

public:
    /// Throws Error when the presets cannot be found. `members`: predicts the members of groups, as in the Document.
    explicit NewScheduleDialog(QWidget* parent = nullptr,
                               std::shared_ptr<MemberPredictor> members = std::make_shared<MemberPredictor>());
    ~NewScheduleDialog() override;

    /// Adds the user's own model file (presets/modelfile.h) to the presets and chooses it.
    void chooseModelFile(const QString& path);
    /// The design last previewed; valid after exec() returned Accepted.
    const Design& design() const { return m_design; }

private:
    struct Outcome {
        Design design;
        Diagnostics diagnostics;
        std::vector<std::pair<QString, QString>> numbers;
        bool good = false;
    };
    QWidget* buildForm();
    QWidget* buildPreview();
    void openOwnModel();
    void takeModel();
    void takeFamily();
    /// The new design, and the change made to it afterwards.
    struct Choice {
        NewDesign design;
        Recompute recompute = Recompute::None; ///< in every stage
    };
    Choice choice() const; ///< throws Error
    void request();
    Outcome work(const Choice& choice) const; ///< on the worker
    void showOutcome(const Outcome& outcome);
    /// Writes each diagnostic below the field that it is about; returns those about no shown field.
    Diagnostics markFields(const Diagnostics& diagnostics);

    const std::shared_ptr<MemberPredictor> m_members;
    std::unique_ptr<PresetLibrary> m_presets;
    QComboBox* m_model;
    QString m_takenModel; ///< preset or path, of the entry that was chosen last
    QSpinBox* m_sequence;
    QSpinBox* m_microbatchSize;
    QComboBox* m_cluster;
    QSpinBox* m_devices;
    ParallelismFields* m_groups;
    QComboBox* m_family;
    QLabel* m_description;
    QSpinBox* m_microbatches;
    QSpinBox* m_replicas;
    QComboBox* m_zero;
    QSpinBox* m_chunks;
    QSpinBox* m_group;
    QSpinBox* m_pieces;
    QComboBox* m_recompute;
    QComboBox* m_layout;
    QSpinBox* m_workers;
    QFormLayout* m_form;
    FactList* m_numbers;
    QLabel* m_state;
    QLabel* m_faults;
    QDialogButtonBox* m_buttons;
    Design m_design;
    LatestWork m_work;
};

} // namespace pipewright
