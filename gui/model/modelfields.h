// SPDX-License-Identifier: GPL-3.0-or-later
// The model's dimensions and the batch as fields: a preset to start from, layers, widths, heads, vocabulary, sequence,
// microbatch, precision, recomputation and the cluster; beside them the predicted numbers. A finished entry is emitted
// as a signal. The window makes the edit; an error is shown below the field.
#pragma once

#include "core/model/modelshape.h"

#include <QWidget>

#include <functional>
#include <vector>

class QComboBox;
class QLabel;

namespace pipewright {

class CountField;
class FactList;
struct Design;
struct Prediction;

class ModelFields : public QWidget {
    Q_OBJECT

public:
    explicit ModelFields(QWidget* parent = nullptr);

    void setDesign(const Design& design, const Prediction* prediction);
    void setFault(const QString& text);           ///< below the field that was edited last; empty: no error
    CountField* field(const QString& name) const; ///< by its accessible name; null: there is none
    QComboBox& preset() { return *m_preset; }
    QComboBox& precision() { return *m_precision; }
    QComboBox& framework() { return *m_framework; }
    QComboBox& recompute() { return *m_recompute; } ///< filled by the window, as is that of the stages page
    QComboBox& cluster() { return *m_cluster; }     ///< filled by the window, as is that of the devices page
    FactList& predicted() { return *m_predicted; }

Q_SIGNALS:
    /// `what`: "Set the model's layers to 16", for the undo history.
    void shapeWanted(const pipewright::ModelShape& shape, const QString& what);
    void microbatchesWanted(int microbatches);
    void presetWanted(const QString& name);

private:
    struct Dimension {
        CountField* field;
        std::function<qint64(const ModelShape&)> get;
        std::function<void(ModelShape&, qint64)> set;
        bool ofModel; ///< not of the batch: another value makes another model
    };
    void take(const Dimension& dimension);
    void showFramework(const FrameworkMemory& framework);
    void showPredicted(const Design& design, const Prediction* prediction);

    QComboBox* m_preset;
    QComboBox* m_precision;
    QComboBox* m_framework;
    QComboBox* m_recompute;
    QComboBox* m_cluster;
    CountField* m_microbatches;
    std::vector<Dimension> m_dimensions;
    QLabel* m_note;
    FactList* m_predicted;
    QWidget* m_asked = nullptr; ///< the field that was edited last
    ModelShape m_shape;
};

} // namespace pipewright
