// SPDX-License-Identifier: GPL-3.0-or-later
// The inputs of a schedule: layers and their partition into stages, devices, links, and the memory of every device by
// kind. Every change is one undo step; costs follow by core/design/redesign.h. Dragging a border only predicts the
// resulting step.
#pragma once

#include "gui/document/document.h"

#include <QDialog>

#include <functional>

class QComboBox;
class QLabel;
class QTabWidget;

namespace pipewright {

class MemoryBars;
class NodeFields;
class ParallelismFields;
class PartitionBar;
class ModelFields;
class ThisMachine;
struct ModelShape;
class ValueTable;
class ZeroFields;

class ModelWindow : public QDialog {
    Q_OBJECT

public:
    explicit ModelWindow(Document& document, QWidget* parent = nullptr);

    enum Page { Model, Stages, Layers, Devices, Links, Groups }; ///< of tabs()
    ModelFields& model() { return *m_model; }
    QComboBox& clusterPreset() { return *m_clusterPreset; }
    PartitionBar& partition() { return *m_partition; }
    ValueTable& stages() { return *m_stages; }
    ValueTable& layers() { return *m_layers; }
    ValueTable& devices() { return *m_devices; }
    ValueTable& links() { return *m_links; }
    MemoryBars& memory() { return *m_memory; }
    ParallelismFields& groups() { return *m_groups; }
    NodeFields& nodes() { return *m_nodes; }
    QComboBox& communication() { return *m_communication; }
    ThisMachine& machine() { return *m_machine; }
    QTabWidget* tabs() const { return m_tabs; }
    QString fault() const;   ///< why the last edit was refused
    QString effect() const;  ///< of a drag in progress
    QString buses() const;   ///< which transfers wait for each other: on a bus, and in the streams of their devices
    QString mapping() const; ///< which GPUs of the machine the devices run on

    void setModel(const ModelShape& shape, const QString& what);
    void takeModelPreset(const QString& name);
    void setMicrobatches(int microbatches); ///< makes the family's schedule with this many
    void takeClusterPreset(const QString& name);
    void setLayersOfStage(int stage, const QString& text);
    void setRecomputeOfStage(int stage, const QString& text); ///< a name
    void setRecompute(Recompute recompute);                   ///< of every stage
    void setOffloadOfStage(int stage, const QString& text); ///< yes or no; auto: the predictor chooses, for all stages
    void setZero(const Zero& zero);                         ///< what copies of the pipeline share out
    void setDeviceValue(int device, int column, const QString& text);
    /// Sets a device's GPU. GPUs are stated for all devices or none: the first entry sets all, an empty one clears all.
    void setGpu(int device, const QString& text);
    void setMultiprocessors(int device, const QString& text);
    void setLinkValue(int row, int column, const QString& text);
    void addLink(int from, int to); ///< a separate link for one directed pair
    void removeLink();              ///< the chosen pair uses the common link again
    void setCommunication(Communication communication);

protected:
    void showEvent(QShowEvent* event) override;

private:
    void addClusterPresets(QComboBox& combo);
    QWidget* buildModel();
    QWidget* buildStages();
    QWidget* buildDevices();
    QWidget* buildLinks();
    QWidget* buildGroups();
    void refresh();
    void fillStages();
    void fillLayers();
    void fillDevices();
    void fillLinks();
    void describeMapping();
    void fillGroups();
    void showEffect(const std::vector<int>& partition);
    void takePartition(const std::vector<int>& partition);
    void showFault(const QString& text); ///< empty: none
    /// Makes the edit or shows why not, then refreshes the tables.
    void commit(const QString& what, const std::function<Design()>& make);

    static constexpr int gpuColumn = 6, multiprocessorsColumn = 7, halfRateColumn = 8; ///< of the devices

    Document& m_document;
    QTabWidget* m_tabs;
    ModelFields* m_model;
    QComboBox* m_clusterPreset;
    PartitionBar* m_partition;
    QComboBox* m_measure;
    QComboBox* m_recompute;
    ZeroFields* m_zero;
    QLabel* m_effect;
    ValueTable* m_stages;
    ValueTable* m_layers;
    ValueTable* m_devices;
    QLabel* m_mapping;
    ThisMachine* m_machine;
    ValueTable* m_links;
    QLabel* m_buses;
    QComboBox* m_communication;
    ParallelismFields* m_groups;
    NodeFields* m_nodes;
    QLabel* m_inGroups;
    MemoryBars* m_memory;
    MemoryBars* m_modelMemory; ///< the same, below the model's dimensions
    QLabel* m_source;
    QLabel* m_fault;
};

} // namespace pipewright
