// SPDX-License-Identifier: GPL-3.0-or-later
// What a plan is asked for: model, cluster, devices, batch, sequence; limits, families, pins and noise in sections that
// fold. The names of pins and options are those of the command line. It takes the model and the cluster of the design
// where that has any, until somebody chooses others.
#pragma once

#include "core/plan/plan.h"

#include <QStringList>
#include <QWidget>

#include <memory>
#include <string_view>
#include <vector>

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QFormLayout;
class QLineEdit;
class QListWidget;
class QSpinBox;

namespace pipewright {

class NoiseFields;
class PresetLibrary;
class Section;

class PlanFields : public QWidget {
    Q_OBJECT

public:
    explicit PlanFields(QWidget* parent = nullptr);
    ~PlanFields() override;

    /// Its model, its cluster and how many devices and sequences it has are the first choice.
    void setDesign(std::shared_ptr<const Design> design);
    /// Adds a file to the choices and chooses it.
    void chooseModelFile(const QString& path);
    void chooseClusterFile(const QString& path);

    /// Of the present entries, without progress and interruption. Throws Error, `where` being an option of the command
    /// line.
    PlanRequest request() const;
    std::vector<std::string> pins() const; ///< "tensor=8", as entered
    /// Below the fields that they are about; returns the others. Empty: no fault.
    Diagnostics showFaults(const Diagnostics& faults);

    /// What can be pinned, as core/plan's pin() calls it.
    static constexpr std::string_view dimensions[] = {"tensor",   "context", "expert",   "folded_experts",
                                                      "pipeline", "data",    "chunks",   "microbatch_size",
                                                      "zero",     "reshard", "recompute"};
    static bool isNumber(std::string_view dimension); ///< any number can be typed
    static QStringList
    valuesOf(std::string_view dimension); ///< to choose from; others can be typed where they are numbers

    QComboBox* model() const { return m_model; }
    QComboBox* cluster() const { return m_cluster; }
    QSpinBox* devices() const { return m_devices; }
    QSpinBox* batch() const { return m_batch; }
    QSpinBox* sequence() const { return m_sequence; }
    QSpinBox* top() const { return m_top; }
    QLineEdit* memoryLimit() const { return m_memoryLimit; }
    QDoubleSpinBox* timeLimit() const { return m_timeLimit; }
    QDoubleSpinBox* slowNode() const { return m_slowNode; } ///< percent; 0: none is
    QComboBox* framework() const { return m_framework; }
    QComboBox* familySet() const { return m_familySet; }
    QListWidget* families() const { return m_families; }
    QCheckBox* noisy() const { return m_noisy; }
    QComboBox* pin(std::string_view dimension) const; ///< its text is the value; the first one leaves it free

    enum FamilySet { Synchronous, Megatron, Named }; ///< of familySet()

private:
    QWidget* buildFirst();
    QWidget* buildLimits();
    QWidget* buildFamilies();
    QWidget* buildPins();
    QWidget* buildNoise();
    void addRow(QFormLayout& form, const QString& text, QWidget* field, const QString& tip, const std::string& option);
    void addSection(const QString& title, QWidget* body);
    void takeModel();
    void takeCluster();
    bool isOfDesign(const QComboBox* combo) const;
    std::vector<std::string> chosenFamilies() const;

    std::shared_ptr<const Design> m_design; ///< null: none yet
    std::unique_ptr<PresetLibrary> m_presets;
    std::vector<std::pair<std::string, QWidget*>> m_fields; ///< by option, each with a note below
    std::vector<QComboBox*> m_pins;                         ///< of dimensions, in their order
    std::vector<Section*> m_sections;
    QComboBox* m_model;
    QComboBox* m_cluster;
    QSpinBox* m_devices;
    QSpinBox* m_batch;
    QSpinBox* m_sequence;
    QSpinBox* m_top;
    QLineEdit* m_memoryLimit;
    QDoubleSpinBox *m_timeLimit, *m_slowNode;
    QComboBox* m_framework;
    QComboBox* m_familySet;
    QListWidget* m_families;
    QCheckBox* m_noisy;
    NoiseFields* m_noise;
};

} // namespace pipewright
