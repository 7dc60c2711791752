#pragma once

#include <string>
#include <vector>

#include "analysis/frame/frame.h"
#include "analysis/table/table.h"
#include "results/store.h"

namespace phasor::analysis {

/// A picture of a table with the sentence that belongs under it.
struct Figure {
  std::string name;     // "length"; "length-token_accuracy" for what is not the primary metric
  std::string title;    // "Accuracy against length"
  std::string caption;  // what is drawn, over how many trials, what the band is, and what is not drawn
  std::string svg;
};

/// What a figure is made of. The table must have been made from the frame, and the frame from the folder.
struct FigureSource {
  const Frame& frame;
  const Table& table;
  const results::Folder& folder;
};

/// Every figure that has something to show:
///   length       a reported metric against its slices, where there are two or more; the training length marked
///   width        the primary metric against a column axis of numbers
///   heatmap      the primary metric, rows x columns, where there are two or more of each
///   curves       training loss against steps, of the trials that are reported
///   progress     the selection metric against steps, of the trials that are reported
///   sensitivity  the selection metric against a select axis of numbers, of every trial of the selection
/// Lines are means over replicates (medians for curves), bands reach from the lowest to the highest of them.
std::vector<Figure> figures(const FigureSource& source);

/// The figures of one kind; UserError when `name` is none of the above or this sweep has nothing to show in it.
std::vector<Figure> figures_named(const FigureSource& source, const std::string& name);

}  // namespace phasor::analysis
